"""What keyhole learn tells: records, a table, curves and a figure."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import keyhole
from keyhole.base.files import plain, write_atomically
from keyhole.cli.terminal import escape, lower_is_better, say, show_table, shown_number, to_json
from keyhole.contracts.measures import Measure
from keyhole.data.letor.queries import QuerySet
from keyhole.experiment.description import Experiment
from keyhole.game.stream import LetorStream
from keyhole.game.trace import RunMean, Trace
from keyhole.lab.figures.layout import save_figure
from keyhole.lab.figures.panels import Panel
from keyhole.lab.figures.styles import readable
from keyhole.lab.results import Curve, curves_csv, list_axes


@dataclass(frozen=True)
class Learnt:
    """An experiment, what was learnt in it, and its scores on lists held out."""

    experiment: Experiment
    trace: Trace
    test: dict[str, RunMean]

    @property
    def curve(self) -> Curve:
        """The running mean of the lists shown."""
        return Curve(
            self.experiment.ranker, self.trace.rounds, self.trace.scores / self.trace.rounds
        )


def record_of(
    learnt: Learnt,
    queries: QuerySet | LetorStream,
    held_out: QuerySet | None,
    measures: Sequence[Measure],
) -> Any:
    """Return results as plain data."""
    trace, asked = learnt.trace, learnt.experiment
    curve = zip(trace.rounds, trace.scores.mean(axis=0) / trace.rounds, strict=True)
    record = {
        "average_score": trace.average_score.mean,
        "average_score_error": trace.average_score.error,
        "average_greedy_score": trace.average_greedy_score.mean,
        "curve": [[int(t), float(score)] for t, score in curve],
        "ranker": asked.ranker,
        "measure": str(measures[0]),
        "is_loss": measures[0].is_loss,
        "rounds": int(trace.rounds[-1]),
        "runs": trace.n_runs,
        "seed": asked.seed,
        "queries": queries.n_queries,
        "documents": queries.n_documents,
        "features": queries.n_features,
        "dropped_queries": queries.n_dropped,
        "seconds": trace.seconds,
        "version": keyhole.__version__,
        "options": asked.ranker_options,
        **_after(trace, asked.world_options.get("permute_at")),
    }
    if held_out is not None:
        record |= {
            "test": {name: score.mean for name, score in learnt.test.items()},
            "test_errors": {name: score.error for name, score in learnt.test.items()},
            "test_losses": [measure.label for measure in measures if measure.is_loss],
            "test_queries": held_out.n_queries,
            "test_documents": held_out.n_documents,
            "test_dropped_queries": held_out.n_dropped,
        }
    return plain(record)


def _after(trace: Trace, change: int | None) -> dict[str, Any]:
    """Return the score of the lists shown after labels were permuted, if they were."""
    if change is None:
        return {}
    first = int(np.searchsorted(trace.rounds, change))
    if first >= len(trace.rounds) - 1:
        return {"average_score_after": None}
    totals = trace.scores[:, -1] - trace.scores[:, first]
    n_after = int(trace.rounds[-1] - trace.rounds[first])
    return {"average_score_after": float(totals.mean()) / n_after}


def write_results(
    folder: Path, learnt: Sequence[Learnt], record: Any, measure: Measure, title: str
) -> None:
    """Write results.json, curves.csv and the figure learn.png and learn.svg."""
    curves, axes = [each.curve for each in learnt], list_axes(measure.label)
    write_atomically(folder / "results.json", to_json(record).encode())
    write_atomically(folder / "curves.csv", curves_csv(curves, axes))
    notes = [
        f"{readable(each.curve.label).partition(', ')[0]} on the lists held out: "
        + ", ".join(f"{name} {score.mean:.4f}" for name, score in each.test.items())
        for each in learnt
        if each.test
    ]
    save_figure(folder, "learn", title, [Panel("", curves)], axes, measure.label, notes)


def say_where(model: Path | None, folder: Path | None) -> None:
    """Say where the model and the results are, and what the model is for."""
    if model is not None:
        named = shlex.quote(str(model))
        say(f"The model is in {model}; keyhole rank {named} FILE ranks with it.")
    if folder is not None:
        say(f"Figure and results are in {folder}.")


def print_results(records: Sequence[Any]) -> None:
    """Print a table of what was learnt, and one of the scores on lists held out, if there are."""
    rows = [
        (
            escape(record["ranker"]),
            f"{record['rounds']:,}",
            shown_number(record["average_score"], record["average_score_error"]),
            f"{record['average_greedy_score']:.4f}",
        )
        for record in records
    ]
    first = records[0]
    show_table(
        escape(first["measure"]) + lower_is_better(first["is_loss"]),
        ("ranker", "rounds>", "average score>", "without exploring>"),
        rows,
    )
    for record in records:
        if record.get("average_score_after") is not None:
            say(
                f"{record['ranker']}, after labels were permuted: "
                f"{record['average_score_after']:.4f}."
            )
    say(
        f"{first['queries']} queries, {first['documents']} documents, {first['features']} "
        f"features; {first['dropped_queries']} queries without a relevant document left out."
    )
    if "test" in first:
        _print_test(records)


def _print_test(records: Sequence[Any]) -> None:
    first = records[0]
    headings = [f"{name}{lower_is_better(name in first['test_losses'])}>" for name in first["test"]]
    rows = [
        [
            escape(record["ranker"]),
            *(
                shown_number(record["test"][name], record["test_errors"][name])
                for name in first["test"]
            ),
        ]
        for record in records
    ]
    show_table(f"held out: {first['test_queries']} queries", ["ranker", *headings], rows)
    if first["test_dropped_queries"]:
        say(
            f"{first['test_dropped_queries']} of the queries held out are without a relevant "
            f"document and left out."
        )
