"""Descent on pairs, streams and forests: CPU time, beside NumPy and scikit-learn.

``python -m bench.policies`` takes a million steps per size of context, on one thread; it exits
with 1 if a million steps with tens of features take half a second or more.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

from keyhole.policies.forest import join_forests
from keyhole.policies.online import OnlineRankers
from keyhole.policies.pairs import fit_pairs

N_STEPS = 1_000_000
SIZES = ((16, 20, 500), (20, 800, 180_000), (64, 40, 350), (90, 1, 16), (617, 3, 80))
"""Features, positive and negative examples: the data sets of the thesis, and its bank."""
BAR_SECONDS, BAR_FEATURES = 0.5, 90
TURNS = 3


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the median CPU time of a few turns, the first one not counted."""
    work()
    used = []
    for _ in range(TURNS):
        began = time.process_time()
        work()
        used.append(time.process_time() - began)
    return median(used)


def numpy_descent(positives: Any, negatives: Any, n_steps: int, l2: float = 0.01) -> Any:
    """Return the weights of the same steps, as one would write them."""
    numbers = np.random.default_rng(0)
    weights, average = np.zeros(positives.shape[1]), np.zeros(positives.shape[1])
    curvature = 2.0 * positives.shape[1]
    rows = numbers.integers(len(positives), size=n_steps)
    others = numbers.integers(len(negatives), size=n_steps)
    for step in range(n_steps):
        difference = positives[rows[step]] - negatives[others[step]]
        pull = 1.0 / (1.0 + np.exp(difference @ weights))
        weights += (pull * difference - l2 * weights) / (curvature + l2 * step)
        average += 4.0 / (step + 4.0) * (weights - average)
    return average


def descents(console: Console, n_steps: int) -> bool:
    """Measure steps along pairs; return whether the bar is kept."""
    table = Table(title="A million steps of descent on pairs, CPU seconds of one thread")
    for name in ("features", "positives", "negatives", "l2", "l1", "hinge", "times NumPy"):
        table.add_column(name, justify="right")
    kept = True
    numbers = np.random.default_rng(0)
    for n_features, n_positives, n_negatives in SIZES:
        positives = numbers.normal(size=(n_positives, n_features)) + 0.3
        negatives = numbers.normal(size=(n_negatives, n_features))
        fit = partial(fit_pairs, positives, negatives, n_steps=n_steps)
        seconds = cpu_seconds(fit)
        began, share = time.process_time(), min(100, n_steps)
        numpy_descent(positives, negatives, n_steps // share)
        slow = share * (time.process_time() - began)
        others = [cpu_seconds(partial(fit, l1=0.01)), cpu_seconds(partial(fit, loss="hinge"))]
        cells = [f"{n_features}", f"{n_positives:,}", f"{n_negatives:,}", f"{seconds:.3f}"]
        table.add_row(*cells, *(f"{other:.3f}" for other in others), f"{slow / seconds:.0f}")
        kept = kept and (n_features > BAR_FEATURES or seconds < BAR_SECONDS * n_steps / N_STEPS)
    console.print(table)
    return kept


def streams_and_forests(console: Console, share: float = 1.0) -> None:
    """Measure learning from a stream, and forests against scikit-learn's own scores."""
    numbers = np.random.default_rng(0)
    n_impressions, n_contexts = int(share * 1_000_000), max(1, int(share * 20_000))
    visitors, ads = (
        numbers.normal(size=(n_impressions, 20)),
        numbers.integers(5, size=n_impressions),
    )
    clicks = (numbers.random(len(ads)) < 0.003).astype(float)
    stream = cpu_seconds(lambda: OnlineRankers(5, 20).learn(visitors, ads, clicks))
    rows, labels = numbers.normal(size=(1500, 8)), numbers.integers(2, size=1500)
    forest = RandomForestClassifier(200, random_state=0).fit(rows, labels)
    unseen, flat = numbers.normal(size=(n_contexts, 8)), join_forests([forest], 8)
    ours = cpu_seconds(lambda: flat.scores(unseen))
    theirs = cpu_seconds(lambda: forest.predict_proba(unseen))
    console.print(f"{n_impressions:,} impressions of a stream, 20 features: {stream:.2f} s")
    console.print(
        f"{n_contexts:,} contexts through 200 trees: {ours:.2f} s, scikit-learn {theirs:.2f} s "
        f"({theirs / ours:.1f} times)"
    )


def main() -> int:
    """Measure, print, and return 1 if the promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.policies", description=__doc__)
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the steps, to see that it works"
    )
    share, console = parser.parse_args().share, Console()
    kept = descents(console, int(share * N_STEPS))
    streams_and_forests(console, share)
    verdict = "[green]PASS[/]" if kept else "[bold red]FAIL[/]"
    console.print(
        f"a million steps, up to {BAR_FEATURES} features, under {BAR_SECONDS} s: {verdict}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
