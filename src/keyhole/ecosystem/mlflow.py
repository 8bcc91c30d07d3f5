"""Results in an MLflow run: parameters, metrics by round, files and figures.

Each function writes to the run that is open, as ``mlflow.log_metric`` does::

    with mlflow.start_run():
        log_trace(trace, figure=trace.plot(), ranker=ranker, world=world)
"""

import csv
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, shown
from keyhole.base.files import plain
from keyhole.contracts.registry import Configured
from keyhole.game.trace import Trace, mean_and_error
from keyhole.offline.evaluation import Evaluation

_AT_ONCE = 1000
"""Metrics that MLflow takes in one call."""
_LONGEST = 500
"""Characters of a parameter; what is longer is shown by its ends."""

Point = tuple[str, float, int]
"""The name of a metric, its value, and the round it is of."""


def log_trace(trace: Trace, *, figure: Any = None, **parameters: Any) -> None:
    """Log a game: its curves as metrics whose steps are rounds, and the totals of every run.

    ``average_regret`` and ``average_score`` are means over the runs, per round and up to it;
    ``_error`` follows the names of their standard errors. What is not known is left out. The totals
    by run and checkpoint are kept as ``trace.json``.

    Parameters
    ----------
    figure
        Matplotlib axes or a figure, to be kept as ``regret.png``.
    parameters
        What was played, by any name. Rankers, worlds and the like become a parameter for each
        setting (``ranker.name``, ``ranker.horizon``, …), anything else one as it is shown.
    """
    client, run_id = _open_run()
    _log_parameters(client, run_id, {**parameters, "runs": trace.n_runs})
    totals = {"average_regret": trace.regret, "average_score": trace.scores}
    points: list[Point] = []
    for name, per_run in totals.items():
        means, errors = mean_and_error(per_run / trace.rounds)
        points += _points(name, trace.rounds, means)
        points += _points(f"{name}_error", trace.rounds, errors)
    _log_metrics(client, run_id, points)
    kept = {name: getattr(trace, name) for name in ("rounds", "scores", "best", "greedy")}
    client.log_dict(run_id, plain({**kept, "is_loss": trace.is_loss}), "trace.json")
    _log_figure(client, run_id, figure, "regret.png")


def log_evaluation(evaluation: Evaluation, *, figure: Any = None, **parameters: Any) -> None:
    """Log an evaluation of logged data: every estimate and bound as a metric, the verdict as a tag.

    Metrics are called after their place in ``evaluation.as_dict()``, which is kept whole as
    ``evaluation.json``: ``difference/importance-weighted/bounds/betting``, say. ``figure`` is kept
    as ``evaluation.png``.
    """
    client, run_id = _open_run()
    record = evaluation.as_dict()
    said = {name: record[name] for name in ("decided_by", "confidence", "rows")}
    _log_parameters(client, run_id, {**parameters, **said})
    client.set_tag(run_id, "verdict", evaluation.verdict)
    numbers = {name: value for name, value in _leaves(record, "/") if name not in said}
    _log_metrics(client, run_id, ((n, v, 0) for n, v in numbers.items() if _is_number(v)))
    client.log_dict(run_id, plain(record), "evaluation.json")
    _log_figure(client, run_id, figure, "evaluation.png")


def log_folder(folder: Path | str, **parameters: Any) -> None:
    """Log what a command wrote to its ``--out`` folder: ``play``, ``learn``, ``reproduce``, ….

    Every file becomes an artifact, figures among them. The curves of ``curves.csv`` are metrics by
    round, called ``LABEL/average_regret`` and ``LABEL/standard_error``; single numbers at the top
    of a JSON file are metrics too, and single words parameters.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidInput(f"`folder` must be a folder that a command wrote, got {folder}.")
    client, run_id = _open_run()
    words, points = dict(parameters), list(_points_of_table(folder / "curves.csv"))
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        for name, value in record.items() if isinstance(record, dict) else ():
            if _is_number(value):
                points.append((name, float(value), 0))
            elif isinstance(value, str | bool):
                words[name] = value
    _log_parameters(client, run_id, words)
    _log_metrics(client, run_id, points)
    client.log_artifacts(run_id, str(folder))


def _open_run() -> tuple[Any, str]:
    """Return MLflow's client and the id of the run that is open, or raise."""
    import mlflow

    run = mlflow.active_run()
    if run is None:
        raise InvalidInput("An MLflow run must be open, got none: with mlflow.start_run(): …")
    return mlflow.MlflowClient(), run.info.run_id


def _log_parameters(client: Any, run_id: str, parameters: Mapping[str, Any]) -> None:
    for name, value in _leaves(parameters, "."):
        text = value if isinstance(value, str) else shown(value, _LONGEST)
        client.log_param(run_id, _name(name), text[: 2 * _LONGEST])


def _log_metrics(client: Any, run_id: str, points: Iterable[Point]) -> None:
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    metrics = [Metric(_name(name), value, now, step) for name, value, step in points]
    for first in range(0, len(metrics), _AT_ONCE):
        client.log_batch(run_id, metrics=metrics[first : first + _AT_ONCE])


def _log_figure(client: Any, run_id: str, given: Any, name: str) -> None:
    if given is not None:
        client.log_figure(run_id, getattr(given, "figure", None) or given, name)


def _points(name: str, rounds: Any, values: Any) -> Iterator[Point]:
    for step, value in zip(rounds.tolist(), values.tolist(), strict=True):
        if np.isfinite(value):
            yield name, value, step


def _points_of_table(path: Path) -> Iterator[Point]:
    if not path.is_file():
        return
    with path.open(newline="") as file:
        _, _, y, *_ = header = next(csv.reader(file))
        for label, x, value, error, *_ in csv.reader(file):
            for name, number in ((y, value), (header[3], error)):
                if number and np.isfinite(float(number)):
                    yield f"{label}/{name}", float(number), int(x)


def _leaves(tree: Mapping[str, Any], between: str, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what is at the ends of mappings in mappings, named by the way there."""
    for name, value in tree.items():
        whole = f"{above}{between}{name}" if above else str(name)
        inner = value.described() if isinstance(value, Configured) else value
        if isinstance(inner, Mapping):
            yield from _leaves(inner, between, whole)
        else:
            yield whole, inner


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and bool(np.isfinite(float(value)))
    )


def _name(name: str) -> str:
    """Return a name without what MLflow has no place for."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]
