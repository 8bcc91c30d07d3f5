"""The pictures of the README and of the pages, played and drawn by the package itself.

python -m bench.site.pictures --out docs/images
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

import keyhole
from bench.site.drawing import save_svg
from bench.site.papers import curves_of, figure_of, read_kept
from keyhole import FTPL, Flips, Hopeless, Keystone, Random, RTopK, play
from keyhole.data.bandit.campaign import Campaign
from keyhole.data.bandit.log import BanditLog
from keyhole.lab.figures.styles import COLOURS
from keyhole.lab.study import find_study
from keyhole.offline.estimators import importance_weighted
from keyhole.offline.target import target_of
from keyhole.policies.base import Always

_SHOWN = 40
"""Rounds of a game that a picture of its lists has room for."""


def regret() -> Figure:
    """Average regret of six rankers on the thesis's crowd."""
    crowd, rounds = Flips(20), 10_000
    rankers = {
        "Random: learns nothing": Random(20),
        "RTop-1F, the papers': sees 1 of 20": RTopK(20, horizon=rounds),
        "FTPL, its theorem's noise: sees all 20": FTPL(20, horizon=rounds),
        "FTPL, adaptive: sees all 20": keyhole.ranker("adaptive-ftpl", n_items=20),
        "Leader: sees all 20": keyhole.ranker("leader", n_items=20),
        "Keystone: sees 1 of 20": Keystone(20, k=1),
    }
    traces = [play(ranker, crowd, rounds=rounds, runs=10) for ranker in rankers.values()]
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = keyhole.plot(*traces, ax=figure.add_subplot(), labels=list(rankers), log_x=True)
    axes.set(xlim=(50, rounds), ylim=(0, 1.75))
    axes.set_xlabel("users so far (bars: two standard errors over ten games)", fontsize=9)
    return figure


def game() -> Figure:
    """Lists of the first rounds, and of late ones: who likes what stands where."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    lists = _lists(1, 3_000)
    parts = {"the first users": 0, "3,000 users later": -_SHOWN}
    for place, (title, first) in enumerate(parts.items()):
        axes = figure.add_subplot(1, 2, place + 1)
        _draw_lists(axes, lists[first:][:_SHOWN], np.inf)
        axes.set(title=title, xlabel="users, one after the other")
        axes.set_ylabel("position in the list" if not place else "")
    return figure


def feedback() -> Figure:
    """The same lists through keyholes of three sizes: what is hidden is grey."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    lists = _lists(1, 400)[-_SHOWN:]
    for place, (title, k) in enumerate({"top 1": 1, "top 5": 5, "full": 20}.items()):
        axes = figure.add_subplot(1, 3, place + 1)
        _draw_lists(axes, lists, k)
        axes.set(title=title, xlabel="users")
        axes.set_ylabel("position in the list" if not place else "")
    return figure


def propensity() -> Figure:
    """What an ad is thought to earn, from a log that showed it to those who like it."""
    campaign = Campaign([0.04, 0.05, 0.03], n_features=8, n_informative=4, seed=1)
    visitors, numbers = campaign.visitors(40_000, seed=3), np.random.default_rng(3)
    chances = campaign.click_chances(visitors)
    likes = np.exp(2 * np.log(chances / chances.mean(axis=0)))
    shown = 0.1 / 3 + 0.9 * likes / likes.sum(axis=1, keepdims=True)  # nothing is ruled out
    actions = (numbers.random((len(visitors), 1)) > shown.cumsum(axis=1)).sum(axis=1)
    rows = np.arange(len(visitors))
    clicks = numbers.random(len(visitors)) < chances[rows, actions]
    log = BanditLog.of(visitors, actions, clicks, shown[rows, actions])
    sizes = np.geomspace(500, len(log), 40).astype(int)
    parts = [log.rows(slice(0, size)) for size in sizes]
    estimates = [importance_weighted(part, target_of(part, Always(3, 0))) for part in parts]
    mean = np.array([estimate.value for estimate in estimates])
    spread = np.array([2 * estimate.error for estimate in estimates])
    naive = [part.rewards[part.actions == 0].mean() for part in parts]
    figure, axes = _empty(7.2, 3.2)
    axes.plot(sizes, naive, color=COLOURS[1], ls="--", label="clicks of those who were shown it")
    axes.plot(sizes, mean, color=COLOURS[0], label="weighted by propensity, ± 2 standard errors")
    axes.fill_between(sizes, mean - spread, mean + spread, color=COLOURS[0], alpha=0.2, lw=0)
    axes.axhline(chances[:, 0].mean(), color="0.2", ls=":", label="truth, if all were shown it")
    axes.set(xscale="log", ylim=(0, None), xlabel="rows of the log", ylabel="clicks per visitor")
    axes.legend(frameon=False, fontsize=9)
    return figure


def monitoring() -> Figure:
    """Regret on both sides of a pair of crowds that look alike, by two measures."""
    rounds = 50_000
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    for place, measure in enumerate(("NDCG", "DCG")):
        sides = [
            play(RTopK(3, horizon=rounds), Hopeless(pair="worst-three", side=side), measure=measure,
                 rounds=rounds, runs=20)
            for side in (0, 1)
        ]  # fmt: skip
        axes = figure.add_subplot(1, 2, place + 1)
        keyhole.plot(*sides, ax=axes, labels=["crowd 1", "crowd 2"], log_x=True)
        axes.set(xlim=(300, rounds), ylim=(0, 0.08), title=measure, xlabel="users so far")
    return figure


def winners() -> Figure:
    """The study of that name, from what is kept of it."""
    return figure_of(find_study("winners"), curves_of(read_kept("winners")), Path())


PICTURES: dict[str, Callable[[], Figure]] = {
    "regret": regret,
    "game": game,
    "feedback": feedback,
    "propensity": propensity,
    "monitoring": monitoring,
    "winners": winners,
}


def _empty(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _lists(seed: int, rounds: int) -> Any:
    """Return what users think of each position, for lists that a ranker really showed."""
    crowd = Flips(20)
    trace = play(Keystone(20, k=1), crowd, rounds=rounds, seed=seed, record=True)
    rankings = trace.logs[0].rankings.reshape(rounds, 20)
    liked = [crowd.relevance(round=round, seed=seed) for round in range(rounds)]
    return np.array([row[ranking] for row, ranking in zip(liked, rankings, strict=True)])


def _draw_lists(axes: Any, lists: Any, k: float) -> None:
    """Draw users as columns and positions as rows; what is below position k is grey."""
    hidden = np.arange(lists.shape[1]) >= k
    codes = np.where(hidden, 2, lists).T
    axes.imshow(codes, cmap=ListedColormap(["#f3f0e8", COLOURS[0], "0.75"]), vmin=0, vmax=2,
                aspect="auto", interpolation="nearest")  # fmt: skip
    axes.set_yticks([0, 4, 9, 14, 19], ["1", "5", "10", "15", "20"])


def main() -> int:
    """Draw the pictures into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--only", choices=PICTURES, help="one of them")
    options = parser.parse_args()
    for name, draw in PICTURES.items():
        if options.only in (None, name):
            size = save_svg(draw(), options.out / f"{name}.svg")
            print(f"{name}.svg  {size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
