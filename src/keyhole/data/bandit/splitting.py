"""Which rows of a log come first: by time, by their order, or by chance."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keyhole.base.errors import (
    FloatArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_number,
    check_seed,
)
from keyhole.data.bandit.columns import UnusableRow, second_of
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of, uniforms

if TYPE_CHECKING:
    from keyhole.data.bandit.log import BanditLog

SPLITS = ("time", "rows", "random")
_SPLIT_USE = 12
"""Draws of worlds and of studies have lower numbers."""

Moment = float | str
Rows = NDArray[np.bool_]


def first_rows(log: "BanditLog", share: float, by: str, at: Moment | None, seed: int) -> Rows:
    """Return which rows are in the first part; options are those of :meth:`BanditLog.split`."""
    check_choice(by, "`by` of a split", SPLITS)
    share = check_number(share, "`share` of a split", above=0.0, at_most=1.0)
    if at is not None and by == "random":
        raise InvalidInput("`at` of a split is for splits by time or by rows, got by='random'.")
    if by == "random":
        first = _by_chance(log, share, check_seed(seed))
    else:
        first = _before(_order(log, by), share, None if at is None else _moment(at, by))
    if first.all() or not first.any():
        raise InvalidInput(
            f"A split must leave rows in both parts, got {int(first.sum())} and "
            f"{int((~first).sum())} of {len(log)}."
        )
    return first


def _order(log: "BanditLog", by: str) -> FloatArray:
    """Return a number for each row that grows with time."""
    if by == "rows":
        return np.arange(len(log), dtype=np.float64)
    if log.times is None:
        raise InvalidInput(
            "A log must have times to be split by time, got none: by='rows' takes its rows to be "
            "in order, by='random' deals them by chance."
        )
    return log.times


def _moment(at: Any, by: str) -> float:
    if by == "rows":
        return float(check_integer(at, "`at` of a split by rows", at_least=0))
    try:
        return second_of(at)
    except UnusableRow as error:
        raise InvalidInput(f"`at` of a split: {error.reason}.") from None


def _before(order: FloatArray, share: float, moment: float | None) -> Rows:
    """Return the rows before a moment: the given one, or that whose share is the nearest."""
    if moment is None:
        moments, counts = np.unique(order, return_counts=True)
        # The last moment cannot begin before itself: both parts have one, where there are two.
        shares = np.concatenate([[0.0], np.cumsum(counts)[:-1]]) / len(order)
        nearest = int(np.argmin(np.abs(shares[1:] - share))) + 1 if len(moments) > 1 else 0
        moment = float(moments[nearest])
    return order < moment


def _by_chance(log: "BanditLog", share: float, seed: int) -> Rows:
    """Return rows dealt by chance; those of one group are dealt together."""
    if log.groups is None:
        group, sizes = np.arange(len(log)), np.ones(len(log), np.int64)
    else:
        _, group, sizes = np.unique(log.groups, return_inverse=True, return_counts=True)
    keys = np.empty(len(sizes))
    uniforms(Draw(seed, stream_of(WORLD_STREAM, 0), 0), _SPLIT_USE, keys)
    dealt = np.argsort(keys, kind="stable")
    reached = np.cumsum(sizes[dealt])
    n_first = int(np.argmin(np.abs(reached - share * len(log)))) + 1
    is_first = np.zeros(len(sizes), np.bool_)
    is_first[dealt[: min(n_first, max(1, len(sizes) - 1))]] = True
    return is_first[group]
