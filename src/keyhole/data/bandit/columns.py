"""The columns of a log: numbers, whole numbers, names and moments, or which row is none."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, shown

Names = tuple[str, ...] | None


class UnusableRow(InvalidInput):
    """A row that no log can have; readers of files say on which line it was."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"Row {row} of a BanditLog: {reason}.")
        self.row = row
        self.reason = reason


def plain(values: Any, name: str, n_dims: int = 1) -> Any:
    """Return a column or a frame of pandas or polars as an array, anything else as it is.

    Examples
    --------
    >>> import polars
    >>> plain(polars.Series(["tea", "milk"]), "actions").tolist()
    ['tea', 'milk']
    """
    if not hasattr(values, "to_numpy"):
        return values
    array = values.to_numpy()
    if array.ndim != n_dims:
        raise InvalidInput(
            f"{name} of a BanditLog must have {n_dims} dimensions, got {array.ndim}."
        )
    return array


def numbers(values: Any, name: str, n_dims: int) -> FloatArray:
    """Return a column of a log as an array of numbers, or raise."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        for row, cells in enumerate(values if np.iterable(values) else [values]):
            in_rows = n_dims == 2 and np.iterable(cells) and not isinstance(cells, str)
            for cell in cells if in_rows else [cells] * (n_dims == 1):
                if not is_number(cell):
                    raise InvalidInput(
                        f"{name} of a BanditLog must be numbers, got {shown(cell)} in row {row}."
                    ) from None
        raise InvalidInput(
            f"{name} of a BanditLog must be numbers in rows of one length."
        ) from None
    if array.ndim != n_dims:
        raise InvalidInput(
            f"{name} of a BanditLog must have {n_dims} dimensions, got {array.ndim}."
        )
    return array


def is_number(cell: Any) -> bool:
    """Return whether Python reads a number in a cell."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def whole(values: Any, name: str) -> IntArray:
    """Return a column of a log as whole numbers, or raise."""
    found = numbers(values, name, 1)
    bad = ~(np.isfinite(found) & (found == np.floor(found)) & (np.abs(found) < 2.0**53))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"{name} of a BanditLog must be whole numbers, got {found[row]} in row {row}."
        )
    return found.astype(np.int64)


def different_names(names: Sequence[str] | None, what: str, length: int) -> Names:
    """Return so many different names, or None where there are none, or raise."""
    if names is None:
        return None
    try:
        given = tuple(str(name) for name in names)
    except TypeError:
        raise InvalidInput(
            f"{what} must be {length} different names, got {shown(names)}."
        ) from None
    if isinstance(names, str) or len(given) != length or len(set(given)) != length:
        raise InvalidInput(f"{what} must be {length} different names, got {len(given)}.")
    return given


def seconds_of(moments: Any) -> FloatArray:
    """Return moments as numbers that grow with time, or say which row is none.

    Numbers stay what they are; text is read as ISO 8601 and becomes seconds since 1970.

    Examples
    --------
    >>> seconds_of(["1970-01-02", "1970-01-01 00:00:01.5+00:00"]).tolist()
    [86400.0, 1.5]
    """
    try:
        seconds = np.array(moments, dtype=np.float64)
    except (TypeError, ValueError):
        seconds = np.array([second_of(moment, row) for row, moment in enumerate(moments)])
    bad = ~np.isfinite(seconds)
    if seconds.ndim != 1 or bad.any():
        row = int(np.argmax(bad)) if seconds.ndim == 1 else 0
        raise UnusableRow(row, f"a time must be a finite number, got {seconds[row]}")
    return seconds


def second_of(moment: Any, row: int = 0) -> float:
    """Return one moment as a number."""
    if is_number(moment):
        return float(moment)
    try:
        found = datetime.fromisoformat(str(moment).strip())
    except ValueError:
        raise UnusableRow(
            row,
            f"a time must be a number or like 2026-01-31 12:00:00, got {shown(moment)}",
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
