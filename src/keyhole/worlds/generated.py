"""Query-document lists drawn at random: separable ones (E3), and ones shaped like real sets."""

import math
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import (
    FloatArray,
    IntArray,
    InvalidInput,
    check_choice,
    check_integer,
    check_number,
    check_relevance,
    check_seed,
)
from keyhole.base.limits import check_length
from keyhole.contracts.worlds import World, WorldKernel
from keyhole.kernels.compiled import kernel
from keyhole.kernels.draw import (
    WORLD_STREAM,
    Draw,
    normals,
    scalar,
    start_of_item,
    stream_of,
    to_unit,
    uniform,
    uniforms,
    word,
)

_FEATURES, _ALONG, _QUALITY, _NOISE, _LENGTH = 0, 1, 2, 3, 4
_WEIGHTS, _MEANS = 8, 9  # of the world, not of a round
_BITS = np.uint64(0xFFFF)
_STEEPEST = 0.5
"""What an informative feature takes of the quality, at most; the rest is noise of its own."""
_WIDTH = 0.5
"""Documents of one grade are spread over this much of the separator's axis."""


def _fixed_draw(seed: int) -> Draw:
    return Draw(seed, stream_of(WORLD_STREAM, 0), 0)


# --------------------------------------------------------------------------- separable


class SeparableParams(NamedTuple):
    """Grade by item, mean by grade, the separator, and the spread about the means."""

    grades: Any
    means: Any
    separator: Any
    spread: float


@kernel
def _separable_relevance(params: Any, draw: Any, out: Any) -> None:
    for item in range(out.shape[0]):
        out[item] = params.grades[item]


@kernel
def _separable_query(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    n_items, n_features = matrix.shape
    n_pairs = (n_features + 1) // 2
    for item in range(n_items):
        begin = start_of_item(draw, _FEATURES, item, 2 * n_pairs)
        grade = int(params.grades[item])
        along = 0.0
        for pair in range(n_pairs):  # Box-Muller, both numbers
            radius = math.sqrt(-2.0 * math.log(to_unit(word(begin, 2 * pair))))
            angle = 2.0 * math.pi * to_unit(word(begin, 2 * pair + 1))
            column = 2 * pair
            value = params.means[grade, column] + params.spread * (radius * math.cos(angle))
            matrix[item, column] = value
            along += value * params.separator[column]
            column += 1
            if column < n_features:
                value = params.means[grade, column] + params.spread * (radius * math.sin(angle))
                matrix[item, column] = value
                along += value * params.separator[column]
        shift = params.grades[item] + _WIDTH * uniform(draw, _ALONG, item) - along
        for column in range(n_features):
            matrix[item, column] += shift * params.separator[column]
    return 0, n_items


class Separable(World):
    """Lists whose grades a linear ranker can tell apart, with a margin.

    Parameters
    ----------
    n_items, n_features, n_grades
        Documents per list, features, and grades 0, 1, ...; as many documents of each grade as
        the numbers allow, the best ones last.
    spread
        Standard deviation of the features about the mean of their grade.
    ranker_seed
        Seed of the separator and of the means, which the seed of a game does not change.
    grades
        The grade of each item, in place of ``n_grades`` equal shares.

    Notes
    -----
    Experiment E3 (chapter 2 of [T16]), whose means are not given: here they are standard
    normal. The source cannot separate grades for certain; a document's component along
    the separator is therefore replaced by its grade plus a uniform number in [0, 1/2], which makes
    the margin at least 1/2. Norms have no useful bound: :meth:`largest_norm` measures R_X.

    Examples
    --------
    >>> world = Separable()
    >>> along = world.query(round=0).features @ world.separator
    >>> bool((np.floor(along + 1e-9) == world.relevance(round=0)).all())
    True
    >>> world.margin
    0.5
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_separable_relevance, _separable_query)
    margin: ClassVar[float] = 1.0 - _WIDTH
    """The least difference in score between two grades under the unit separator (gamma)."""

    def __init__(
        self,
        n_items: int = 20,
        *,
        n_features: int = 20,
        n_grades: int = 5,
        spread: float = 1.0,
        ranker_seed: int = 0,
        grades: ArrayLike | None = None,
    ) -> None:
        self.n_features = check_length(n_features, "`n_features` of Separable")
        self.n_items = check_length(
            n_items, "`n_items` of Separable", at_least=2, width=2 * self.n_features
        )
        if grades is None:
            n_grades = check_integer(
                n_grades,
                "`n_grades` of Separable",
                at_least=2,
                at_most=self.n_items,
                bound="n_items=",
            )
            grades = np.arange(self.n_items) * n_grades // self.n_items
        self.grades = check_relevance(grades, "`grades` of Separable")
        whole = bool((self.grades == np.floor(self.grades)).all())
        if self.grades.shape != (self.n_items,) or not whole or float(self.grades.max()) > 1000:
            raise InvalidInput(f"`grades` of Separable must be {self.n_items} whole numbers.")
        self.max_grade = float(self.grades.max())
        self.is_binary = self.max_grade <= 1.0
        self.spread = check_number(spread, "`spread` of Separable", at_least=0.0)
        self.ranker_seed = check_seed(ranker_seed)
        draw, direction = _fixed_draw(self.ranker_seed), np.empty(self.n_features)
        normals(draw, _WEIGHTS, direction)
        means = np.empty((int(self.max_grade) + 1) * self.n_features)
        normals(draw, _MEANS, means)
        self.separator: FloatArray = direction / math.sqrt(float((direction**2).sum()))
        self.params = SeparableParams(
            self.grades, means.reshape(-1, self.n_features), self.separator, self.spread
        )

    def matrix(self) -> FloatArray:
        return np.empty((self.n_items, self.n_features))

    def largest_norm(self, rounds: int, *, seed: int = 0, run: int = 0) -> float:
        """Return the largest norm of a document in the first rounds (R_X)."""
        features = (self.query(t, seed=seed, run=run).features for t in range(rounds))
        return max(float(np.linalg.norm(rows, axis=1).max()) for rows in features)  # type: ignore[arg-type]

    def relabelled(self, labels: IntArray) -> Self:
        return type(self)(
            self.n_items, n_features=self.n_features, spread=self.spread,
            ranker_seed=self.ranker_seed, grades=self.grades[labels],
        )  # fmt: skip


# --------------------------------------------------------------------------- graded


class GradedParams(NamedTuple):
    """Lengths of lists, noise in grades, where grades rise, and what features are made of."""

    min_items: int
    max_items: int
    noise: float
    bands: Any
    slopes: Any
    scale: float


@kernel
def _graded_relevance(params: Any, draw: Any, out: Any) -> None:
    uniforms(draw, _QUALITY, out)
    for item in range(out.shape[0]):
        noise = uniform(draw, _NOISE, item)
        quality = (1.0 - params.noise) * out[item] + params.noise * noise
        grade = 0
        while grade < params.bands.shape[0] and quality > params.bands[grade]:
            grade += 1
        out[item] = grade


@kernel
def _short(bits: Any, unit: float) -> float:
    """Return a number in (0, 2^16 units) made of the last 16 bits."""
    return (float(np.int64(bits & _BITS)) + 0.5) * unit


@kernel
def _chances(begin: Any, unit: float, out: Any) -> None:
    # A word serves four columns a quarter of the row apart: so the loop vectorises.
    n_columns = out.shape[0]
    step = (n_columns + 3) // 4
    n_whole = max(0, n_columns - 3 * step)
    a, b, c, d = out[:step], out[step : 2 * step], out[2 * step : 3 * step], out[3 * step :]
    for column in range(n_whole):
        bits = word(begin, column)
        a[column] = _short(bits, unit)
        b[column] = _short(bits >> np.uint64(16), unit)
        c[column] = _short(bits >> np.uint64(32), unit)
        d[column] = _short(bits >> np.uint64(48), unit)
    for first in range(n_whole, step):
        bits = word(begin, first)
        for column in range(first, n_columns, step):
            out[column] = _short(bits, unit)
            bits = bits >> np.uint64(16)


@kernel
def _graded_query(params: Any, draw: Any, matrix: Any) -> tuple[int, int]:
    n_choices = params.max_items - params.min_items + 1
    n_items = params.min_items + int(scalar(draw, draw.round, _LENGTH, 0) * n_choices)
    slopes, n_columns = params.slopes, matrix.shape[1]
    n_informative = slopes.shape[0]
    n_rising = (n_informative + 1) // 2
    unit = params.scale * 2.0**-16
    for item in range(n_items):
        row = matrix[item]
        _chances(start_of_item(draw, _FEATURES, item, (n_columns + 3) // 4), unit, row)
        quality = params.scale * uniform(draw, _QUALITY, item)
        for column in range(n_rising):
            row[column] += slopes[column] * (quality - row[column])
        for column in range(n_rising, n_informative):
            row[column] += slopes[column] * (params.scale - quality - row[column])
    return 0, n_items


def _bands(noise: float, max_grade: int) -> FloatArray:
    """Return the qualities at which grades rise: each grade is half as frequent as the one below.

    Quality is (1 - noise) U + noise V with U and V uniform, a trapezoid whose quantiles are known.
    """
    frequent = 0.5 ** np.arange(max_grade + 1)
    shares = np.cumsum(frequent / frequent.sum())[:-1]
    wide, narrow = max(noise, 1.0 - noise), min(noise, 1.0 - noise)
    rest = np.minimum(shares, 1.0 - shares)
    slope = np.sqrt(2.0 * wide * narrow * rest)
    lower = np.where(rest * 2.0 * wide < narrow, slope, wide * rest + narrow / 2.0)
    return np.where(shares <= 0.5, lower, 1.0 - lower)


class _Shape(NamedTuple):
    n_items: int
    min_items: int
    n_features: int
    row_norm: float = 1.0


_SHAPES = {
    "mslr": _Shape(200, 40, 136),
    "yahoo": _Shape(40, 8, 700),
    "yandex": _Shape(16, 4, 245),
}


class Graded(World):
    """Lists shaped like those of public learning-to-rank sets, which no linear ranker separates.

    Parameters
    ----------
    n_items, min_items
        Most and fewest documents of a list; its length is uniform between the two. By default
        all lists have ``n_items``.
    n_features, max_grade
        Features of a document, all in [0, 1], and the top grade. Each grade is half as
        frequent as the one below it, so most documents have grade 0 or 1.
    noise
        How much of a grade no feature tells: the share of noise in what is graded.
    informative
        Share of the features that tell anything; each of them a different amount.
    row_norm
        Scale the features so that no document has a larger norm (R_X); 1 in :meth:`like`.
        By default they fill [0, 1], which is far for the estimates of contextual RTop-kF.
    ranker_seed
        Seed of the features' slopes, which the seed of a game does not change.

    Notes
    -----
    Stands in for the restricted sets of E4 and E5; :meth:`like` has their shapes (R24). A
    document has a quality, uniform in [0, 1]. Its grade comes from a mean of quality and noise;
    an informative feature is a mean of quality (half of them: of 1 less quality) and noise of its
    own. The signal is therefore linear, but grades are not computed from features: they would
    have to be drawn twice. Features have 16 random bits each.

    Examples
    --------
    >>> world = Graded.like("yahoo")
    >>> world.n_features, world.query(round=0).features.shape[0] <= 40
    (700, True)
    >>> Graded(8, max_grade=2).relevance(round=1).max() <= 2.0
    np.True_
    """

    kernel: ClassVar[WorldKernel] = WorldKernel(_graded_relevance, _graded_query)

    def __init__(
        self,
        n_items: int = 20,
        *,
        min_items: int | None = None,
        n_features: int = 50,
        max_grade: int = 4,
        noise: float = 0.2,
        informative: float = 0.3,
        row_norm: float | None = None,
        ranker_seed: int = 0,
    ) -> None:
        self.n_features = check_length(n_features, "`n_features` of Graded")
        self.n_items = check_length(n_items, "`n_items` of Graded", width=self.n_features)
        self.min_items = check_integer(
            self.n_items if min_items is None else min_items, "`min_items` of Graded",
            at_least=1, at_most=self.n_items, bound="n_items=",
        )  # fmt: skip
        grades = check_integer(max_grade, "`max_grade` of Graded", at_least=1, at_most=30)
        self.max_grade, self.is_binary = float(grades), grades == 1
        self.noise = check_number(noise, "`noise` of Graded", at_least=0.0, at_most=1.0)
        share = check_number(informative, "`informative` of Graded", at_least=0.0, at_most=1.0)
        self.ranker_seed = check_seed(ranker_seed)
        slopes = np.empty(round(share * self.n_features))
        uniforms(_fixed_draw(self.ranker_seed), _WEIGHTS, slopes)
        slopes *= _STEEPEST
        longest = math.sqrt(self.n_features)
        self.row_norm = (
            longest
            if row_norm is None
            else check_number(row_norm, "`row_norm` of Graded", above=0.0, at_most=longest)
        )
        self.params = GradedParams(
            self.min_items, self.n_items, self.noise, _bands(self.noise, grades), slopes,
            self.row_norm / longest,
        )  # fmt: skip

    @classmethod
    def like(cls, name: str, **options: Any) -> Self:
        """Return lists of the shape of ``mslr``, ``yahoo`` or ``yandex``, norms at most 1 (R38)."""
        shape = _SHAPES[check_choice(name, "shape of Graded", _SHAPES)]
        return cls(**{**shape._asdict(), **options})

    def matrix(self) -> FloatArray:
        return np.empty((self.n_items, self.n_features))

    def relabelled(self, labels: IntArray) -> Self:
        return self  # items have no part in the world but their draws
