"""Is a vector in the span of others? The answer comes with its proof, in fractions."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Vector = list[Fraction]


def _first(row: Vector) -> int:
    return next((column for column, entry in enumerate(row) if entry), -1)


class Span:
    """The span of integer or rational rows, in reduced echelon form.

    Every kept row remembers which of the given rows it is a sum of.

    Examples
    --------
    >>> span = Span([[1, 1, 0], [0, 1, 1]])
    >>> [str(c) for c in span.coefficients([1, 3, 2])]
    ['1', '2']
    >>> [str(c) for c in span.refutation([1, 0, 0])]      # at right angles to every row
    ['1', '-1', '1']
    """

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.n_rows = len(rows)
        self._kept: dict[int, tuple[Vector, Vector]] = {}
        for index, given in enumerate(rows):
            row = [Fraction(entry) for entry in given]
            origin = [Fraction(int(other == index)) for other in range(self.n_rows)]
            self._reduce(row, origin)
            pivot = _first(row)
            if pivot >= 0:
                scale = row[pivot]
                row, origin = [x / scale for x in row], [x / scale for x in origin]
                for kept, source in self._kept.values():
                    _subtract(kept, source, row, origin, kept[pivot])
                self._kept[pivot] = (row, origin)

    def _reduce(self, row: Vector, origin: Vector) -> None:
        for pivot, (kept, source) in self._kept.items():
            _subtract(row, origin, kept, source, row[pivot])

    def coefficients(self, target: Sequence[Any]) -> Vector | None:
        """Return what to multiply the given rows with to get ``target``; None if nothing does."""
        row, origin = [Fraction(entry) for entry in target], [Fraction(0)] * self.n_rows
        self._reduce(row, origin)
        return None if any(row) else [-entry for entry in origin]

    def refutation(self, target: Sequence[Any]) -> Vector | None:
        """Return a vector at right angles to every row but not to ``target``."""
        row = [Fraction(entry) for entry in target]
        self._reduce(row, [Fraction(0)] * self.n_rows)
        free = _first(row)
        return None if free < 0 else self._normal(free, len(row))

    def normals(self, n_columns: int) -> list[Vector]:
        """Return a basis of all vectors at right angles to every row."""
        return [self._normal(c, n_columns) for c in range(n_columns) if c not in self._kept]

    def _normal(self, free: int, n_columns: int) -> Vector:
        normal = [Fraction(int(column == free)) for column in range(n_columns)]
        for pivot, (kept, _) in self._kept.items():
            normal[pivot] = -kept[free]
        return normal


def _subtract(row: Vector, origin: Vector, other: Vector, source: Vector, share: Fraction) -> None:
    if share:
        for column, entry in enumerate(other):
            if entry:
                row[column] -= share * entry
        for index, entry in enumerate(source):
            if entry:
                origin[index] -= share * entry
