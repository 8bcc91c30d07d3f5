"""Traces as files: everything in plain arrays, and curves as tables."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_flag,
    check_number,
)
from keyhole.base.files import reading_arrays, write_arrays, writing_atomically
from keyhole.game.comparators import new_sums
from keyhole.game.log import Log
from keyhole.game.log_checks import check_log
from keyhole.game.run_end import RunEnd

if TYPE_CHECKING:
    from keyhole.game.trace import Trace

COMPARATORS = ("prefix", "final")
"""Regret is against the best ranking of the rounds so far, or of the whole game."""
_EXACT = ("sorted", "exhaustive", "local", "none")
_TEXTS = ("ranker", "world", "measure", "sees")
_CURVES = ("scores", "best", "greedy")
_OF_AN_END = ("totals", "scores", "greedy", "best", "snapshots", "offsets")


# --------------------------------------------------------------------------- all there is


def write_trace(path: Path | str, trace: "Trace") -> None:
    """Write a trace as plain arrays, those of all runs stacked."""
    settings = {name: getattr(trace, name) for name in (*_TEXTS, "comparator", "exact", "seconds")}
    arrays: dict[str, Any] = {
        "settings": json.dumps({**settings, "is_loss": bool(trace.is_loss)}),
        "rounds": trace.rounds,
        **{name: getattr(trace, name) for name in _CURVES},
        **_stacked("state/", trace.states),
        **_stacked("end/", [_arrays_of(end) for end in trace.ends]),
    }
    for run, log in enumerate(trace.logs):
        arrays |= {f"log/{run}/{name}": array for name, array in log._asdict().items()}
    write_arrays(path, arrays)


def _stacked(prefix: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    names = runs[0] if runs else ()
    return {f"{prefix}{name}": np.stack([run[name] for run in runs]) for name in names}


def _arrays_of(end: RunEnd) -> dict[str, Any]:
    """Return what is needed to go on with a run; its state and its log are kept elsewhere."""
    own = {name: getattr(end, name) for name in _OF_AN_END}
    return {**own, "sums": end.sums.sums, "offset": end.sums.offset}


def read_trace(path: Path | str) -> dict[str, Any]:
    """Return the fields of a trace that :func:`write_trace` wrote, or raise."""
    with reading_arrays(path, "a trace saved by Trace.save") as arrays:
        settings = _checked_settings(json.loads(str(arrays["settings"])))
        rounds = _checked_rounds(arrays["rounds"])
        n_runs = len(np.atleast_1d(arrays["scores"]))
        curves = {name: _floats(arrays, name, (n_runs, len(rounds))) for name in _CURVES}
        if not (n_runs and np.isfinite(curves["scores"]).all()):
            raise InvalidInput("`scores` must be finite, and of at least one run")
        states = _unstacked("state/", arrays, n_runs)
        return {
            "rounds": rounds,
            **curves,
            **settings,
            "states": tuple(states),
            "logs": tuple(_logs(arrays, n_runs)),
            "ends": tuple(_ends(arrays, states, n_runs)),
        }


def _checked_rounds(rounds: NDArray[Any]) -> IntArray:
    is_flat = rounds.ndim == 1 and rounds.dtype.kind in "iu" and len(rounds) > 0
    if not is_flat or rounds[0] < 1 or bool((np.diff(rounds) < 1).any()):
        raise InvalidInput("`rounds` must be whole numbers that rise from 1 or more")
    return rounds.astype(np.int64)


def _floats(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int | None, ...]
) -> FloatArray:
    """Return an array of floats of some shape, in which None stands for any length."""
    array = arrays[name]
    fits = array.dtype == np.float64 and array.ndim == len(shape)
    if not fits or any(n not in (None, own) for n, own in zip(shape, array.shape, strict=True)):
        wanted = " by ".join("any" if n is None else str(n) for n in shape)
        raise InvalidInput(
            f"`{name}` must be {wanted} floats, got {array.dtype} of shape {array.shape}"
        )
    if np.isinf(array).any():
        raise InvalidInput(f"`{name}` must not be infinite")
    return array


def _checked_settings(settings: Any) -> dict[str, Any]:
    texts = {name: settings[name] for name in _TEXTS}
    if not all(isinstance(text, str) for text in texts.values()):
        raise InvalidInput(f"{', '.join(_TEXTS)} must be text")
    return {
        **texts,
        "is_loss": check_flag(settings["is_loss"], "`is_loss`"),
        "comparator": check_choice(settings["comparator"], "`comparator`", COMPARATORS),
        "exact": check_choice(settings["exact"], "`exact`", _EXACT),
        "seconds": check_number(settings["seconds"], "`seconds`", at_least=0.0),
    }


def _unstacked(
    prefix: str, arrays: Mapping[str, NDArray[Any]], n_runs: int
) -> list[dict[str, NDArray[Any]]]:
    """Return the arrays of each run, none where none were kept."""
    own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
    for name, array in own.items():
        if array.ndim < 1 or len(array) != n_runs:
            raise InvalidInput(f"`{prefix}{name}` must be of {n_runs} runs, got {array.shape}")
    if not own:
        return []
    return [{name: array[run] for name, array in own.items()} for run in range(n_runs)]


def _logs(arrays: Mapping[str, NDArray[Any]], n_runs: int) -> list[Log]:
    kept = [run for run in range(n_runs) if f"log/{run}/rounds" in arrays]
    if kept and len(kept) != n_runs:
        raise InvalidInput(f"there must be logs of all {n_runs} runs or of none, got {len(kept)}")
    return [
        Log(**check_log({name: arrays[f"log/{run}/{name}"] for name in Log._fields}))
        for run in kept
    ]


def _ends(
    arrays: Mapping[str, NDArray[Any]], states: list[dict[str, NDArray[Any]]], n_runs: int
) -> list[RunEnd]:
    """Return what a game goes on from, checked for all that compiled code will index."""
    if not any(name.startswith("end/") for name in arrays):
        return []
    n_points, n_sums = arrays["end/snapshots"].shape[1], arrays["end/sums"].shape[-1]
    shapes: dict[str, tuple[int | None, ...]] = {
        "totals": (n_runs, 2),
        "scores": (n_runs, None),
        "greedy": (n_runs, None),
        "best": (n_runs, None),
        "snapshots": (n_runs, n_points, n_sums),
        "offsets": (n_runs, n_points),
        "sums": (n_runs, n_sums),
        "offset": (n_runs, 1),
    }
    own = {name: _floats(arrays, f"end/{name}", shape) for name, shape in shapes.items()}
    ends = []
    for run, state in enumerate(states):
        sums = new_sums(n_sums)
        sums.sums[:], sums.offset[:] = own["sums"][run], own["offset"][run]
        curves = {name: own[name][run] for name in _OF_AN_END}
        ends.append(RunEnd(state=state, sums=sums, log=None, **curves))
    return ends


# --------------------------------------------------------------------------- tables


def columns(trace: "Trace") -> dict[str, Any]:
    """Return the curves as columns, a row for each run and checkpoint, and text that all share."""
    n_points = len(trace.rounds)
    return {
        "run": np.repeat(np.arange(trace.n_runs), n_points),
        "round": np.tile(trace.rounds, trace.n_runs),
        "score": trace.scores.reshape(-1),
        "best": trace.best.reshape(-1),
        "greedy": trace.greedy.reshape(-1),
        "regret": trace.regret.reshape(-1),
        **{name: getattr(trace, name) for name in _TEXTS},
    }


def write_table(path: Path | str, table: Mapping[str, Any]) -> None:
    """Write columns as CSV, numbers as exactly as they are; what is not known stays empty."""
    arrays = [column for column in table.values() if not isinstance(column, str)]
    texts = [text for text in table.values() if isinstance(text, str)]
    with writing_atomically(Path(path)) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(table)
        for values in zip(*arrays, strict=True):
            cells = ["" if value != value else repr(value.item()) for value in values]  # noqa: PLR0124
            writer.writerow([*cells, *texts])
        lines.detach()  # flushed, and left open for whoever puts it in its place
