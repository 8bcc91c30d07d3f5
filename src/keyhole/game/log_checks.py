"""Whether arrays are a log: all that a replay will index or learn from, checked before it does."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import (
    MAX_ROUND,
    InvalidInput,
    as_array,
    check_integer,
    check_ranking,
    check_seed,
)
from keyhole.kernels.checking import all_finite, first_bad_list, first_bad_value

_LARGEST_FLOAT = float(np.finfo(np.float64).max)


def check_log(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a log as compiled code takes them, or raise unless they are one."""
    checked: dict[str, Any] = {
        "seed": check_seed(_number(fields["seed"])),
        "run": check_integer(_number(fields["run"]), "`run`", at_least=0, at_most=2**31),
        "rounds": _array(fields, "rounds", np.int64, "iu"),
        "explored": _array(fields, "explored", np.bool_, "b"),
        "propensities": _array(fields, "propensities", np.float64, "f"),
        "starts": _array(fields, "starts", np.int64, "iu"),
        "rankings": _array(fields, "rankings", np.int64, "iu"),
        "values": _array(fields, "values", np.float64, "f"),
        "features": _rows(fields, "features"),
        "notes": np.require(_rows(fields, "notes"), np.float64),
    }
    if not checked["notes"].size:  # of a ranker that takes none
        checked["notes"] = np.empty((len(checked["rounds"]), 0))
    _check_lengths(checked)
    _check_rows(checked)
    _check_lists(checked)
    return checked


def _number(value: Any) -> Any:
    """Return the one number of an array, or what else was given."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def _array(fields: Mapping[str, Any], name: str, dtype: Any, kinds: str) -> NDArray[Any]:
    """Return a flat array of some kind of numbers, or raise."""
    given = as_array(fields[name], f"`{name}` of a log")
    if given.ndim != 1 or given.dtype.kind not in kinds:
        raise InvalidInput(
            f"`{name}` of a log must be a flat array of {np.dtype(dtype)}, got {given.dtype} of "
            f"shape {given.shape}."
        )
    return np.require(given, dtype, ["C", "W"])


def _rows(fields: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Return rows of finite floats, 32 bits wide if they were, or raise."""
    given = as_array(fields[name], f"`{name}` of a log")
    if given.ndim != 2 or given.dtype.kind != "f":
        raise InvalidInput(
            f"`{name}` of a log must be rows of floats, got {given.dtype} of shape {given.shape}."
        )
    kind = np.float32 if given.dtype == np.float32 else np.float64
    rows = np.require(given, kind, ["C", "W"])
    if not all_finite(rows.reshape(-1)):
        raise InvalidInput(f"`{name}` of a log must be finite.")
    return rows


def _check_lengths(log: Mapping[str, Any]) -> None:
    n_rows, starts = len(log["rounds"]), log["starts"]
    lengths = {"explored": n_rows, "propensities": n_rows, "notes": n_rows, "starts": n_rows + 1}
    for name, length in lengths.items():
        if len(log[name]) != length:
            raise InvalidInput(
                f"`{name}` of a log of {n_rows} rounds must have {length} entries, got "
                f"{len(log[name])}."
            )
    if starts[0] != 0 or bool((np.diff(starts) < 1).any()):
        raise InvalidInput("`starts` of a log must rise from 0: every list has an item.")
    for name in ("rankings", "values", "features"):
        if len(log[name]) != starts[-1]:
            raise InvalidInput(
                f"`{name}` of a log must have the {starts[-1]} entries of its lists, got "
                f"{len(log[name])}."
            )


def _check_rows(log: Mapping[str, Any]) -> None:
    rounds, propensities = log["rounds"], log["propensities"]
    if len(rounds) and not 0 <= rounds.min() <= rounds.max() < MAX_ROUND:
        raise InvalidInput(
            f"`rounds` of a log must be between 0 and {MAX_ROUND - 1}, got {rounds.min()} to "
            f"{rounds.max()}."
        )
    impossible = (propensities <= 0.0) | np.isinf(propensities)
    if bool(impossible.any()):
        raise InvalidInput(
            f"`propensities` of a log must be positive, or NaN where they are not known, got "
            f"{propensities[impossible][0]}."
        )


def _check_lists(log: Mapping[str, Any]) -> None:
    starts, values = log["starts"], log["values"]
    where = first_bad_value(values, _LARGEST_FLOAT)
    if where >= 0:
        raise InvalidInput(
            f"`values` of a log must be finite and not negative, or NaN where they were hidden, "
            f"got {values[where]} at index {where}."
        )
    longest = int(np.diff(starts).max(initial=0))
    row = first_bad_list(starts, log["rankings"], np.zeros(longest, np.bool_))
    if row >= 0:
        ranking = log["rankings"][starts[row] : starts[row + 1]]
        check_ranking(ranking, len(ranking), f"ranking {row} of a log")
