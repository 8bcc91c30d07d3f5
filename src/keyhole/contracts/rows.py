"""What the row of a ranker says beside how it works: its look in figures, and what is proved."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from keyhole.contracts.measures import Measure

SOLID, DASHED, DOTTED, DASH_DOT = "-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2))
GREY = "#757575"
ANY_CROWD = "against any crowd that is fixed in advance"


class Look(NamedTuple):
    """How one thing is drawn: a colour and a mark of Matplotlib's, and one of the dashes."""

    colour: str
    dash: Any
    mark: str


@dataclass(frozen=True)
class Question:
    """What is asked: a measure, the lists, what is shown of them, and for how long.

    ``n_features`` is 0 where one list is shown to everybody.
    """

    measure: Measure
    n_items: int
    k: int
    grades: int = 2
    rounds: int | None = None
    n_features: int = 0

    @property
    def max_grade(self) -> float:
        """The largest relevance."""
        return float(self.grades - 1)


@dataclass(frozen=True)
class Guarantee:
    """What is known of a ranker: regret of order T^power, in which sense, and by which proof.

    ``power`` is None where nothing is proved. ``bound`` gives the regret after some rounds.
    """

    power: float | None
    sense: str
    source: str
    bound: Callable[[Question, float], float] | None = None

    @property
    def rate(self) -> str:
        """The order of the regret in words."""
        return (
            "no rate" if self.power is None else f"T^({Fraction(self.power).limit_denominator(9)})"
        )
