"""Worlds read off an array: people by items, or one recorded round per row."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import IntArray, InvalidInput, check_relevance, shown
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import scalar, shuffled

_PERSON, _ORDER = 0, 1


class TableParams(NamedTuple):
    """Relevance, one row per person or round."""

    table: Any


@kernel
def _random_row(params: Any, draw: Any, out: Any) -> None:
    row = int(scalar(draw, draw.round, _PERSON, 0) * params.table.shape[0])
    for item in range(out.shape[0]):
        out[item] = params.table[row, item]


@kernel
def _row_in_turn(params: Any, draw: Any, out: Any) -> None:
    row = shuffled(draw, 0, _ORDER, draw.round, params.table.shape[0])
    for item in range(out.shape[0]):
        out[item] = params.table[row, item]


@kernel
def _next_row(params: Any, draw: Any, out: Any) -> None:
    for item in range(out.shape[0]):
        out[item] = params.table[draw.round, item]


class Ratings(World):
    """A crowd of real people: each round one of them, at random, with all their ratings.

    Parameters
    ----------
    table
        Relevance of every item (column) for every person (row); see
        :func:`keyhole.read_ratings` for files.
    item_names
        Names of the columns, for reports.

    Examples
    --------
    >>> Ratings([[0, 1, 2]]).relevance(round=3).tolist()
    [0.0, 1.0, 2.0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_random_row)

    def __init__(self, table: ArrayLike, *, item_names: Sequence[str] | None = None) -> None:
        values = check_relevance(table, f"`table` of {type(self).__name__}")
        if values.ndim != 2 or 0 in values.shape:
            raise InvalidInput(
                f"`table` of {type(self).__name__} must have two dimensions and at least one row "
                f"and column, got shape {values.shape}."
            )
        if item_names is not None and not (
            isinstance(item_names, list | tuple) and all(isinstance(n, str) for n in item_names)
        ):
            raise InvalidInput(f"`item_names` must be a list of names, got {shown(item_names)}.")
        if item_names is not None and len(item_names) != values.shape[1]:
            raise InvalidInput(
                f"`item_names` must have one name per column ({values.shape[1]}), "
                f"got {len(item_names)}."
            )
        self.n_items = values.shape[1]
        self.item_names = None if item_names is None else tuple(item_names)
        self.max_grade = float(values.max())
        self.is_binary = bool(((values == 0.0) | (values == 1.0)).all())
        self.params = TableParams(values)

    def relabelled(self, labels: IntArray) -> Self:
        names = None if self.item_names is None else [self.item_names[i] for i in labels]
        return type(self)(np.ascontiguousarray(self.params.table[:, labels]), item_names=names)


class Recorded(Ratings):
    """A recorded sequence: row t is the relevance in round t, and there are no more rounds.

    Examples
    --------
    >>> Recorded([[0, 1], [1, 0]]).relevance(round=1).tolist()
    [1.0, 0.0]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_next_row)

    def __init__(self, table: ArrayLike, *, item_names: Sequence[str] | None = None) -> None:
        super().__init__(table, item_names=item_names)
        self.length = self.params.table.shape[0]


class Shuffled(Recorded):
    """A crowd of real people, each of whom comes once, in an order that every run draws anew.

    Examples
    --------
    >>> crowd = Shuffled([[0, 1], [1, 0], [2, 2]])
    >>> sorted(crowd.relevance(round=t).tolist() for t in range(3))
    [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_row_in_turn)
