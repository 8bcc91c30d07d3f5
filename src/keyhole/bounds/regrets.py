"""What rankers of a fixed list promise against any crowd that is fixed in advance, side by side."""

from dataclasses import dataclass

from keyhole.base.errors import check_integer
from keyhole.bounds import adaptive_ftpl, blocks, ftpl, keystone
from keyhole.contracts.measures import Measure


@dataclass(frozen=True)
class RegretBound:
    """A bound on expected regret, and where its proof is."""

    ranker: str
    sees: str
    source: str
    needs: str
    value: float


def largest_regret(
    measure: str | Measure, n_items: int, rounds: int, max_grade: float = 1.0
) -> float:
    """Return what the worst list of every round loses to the best one: more no ranker can lose.

    Examples
    --------
    >>> largest_regret("SumLoss", 4, 10)
    40.0
    """
    c = keystone.constants(measure, n_items, max_grade=max_grade)
    return c.gain * c.reach * rounds


def regret_bounds(
    measure: str | Measure, n_items: int, rounds: int, k: int = 1, max_grade: float = 1.0
) -> list[RegretBound]:
    """Return every bound on the regret of a game in DCG or another gain per item, smallest first.

    Examples
    --------
    >>> [row.ranker for row in regret_bounds("DCG", 20, 10**6)]
    ['adaptive-ftpl', 'ftpl', 'rtopk, tight=True', 'keystone', 'rtopk']
    """
    rounds = check_integer(rounds, "`rounds`", at_least=1)
    safe = keystone.constants(measure, n_items, k, max_grade)
    n_cells, top = blocks.n_cells(n_items, k), f"top {k}"
    known, tight = "the number of rounds", ftpl.constants(measure, n_items, max_grade, tight=True)
    papers = ftpl.constants(measure, n_items, max_grade)
    adaptive = adaptive_ftpl.constants(measure, n_items, max_grade)
    rows = [
        RegretBound(
            "keystone", top, "our own proof", "nothing", keystone.safety_bound(safe, rounds)
        ),
        RegretBound("rtopk", top, "Theorem 19", known, ftpl.top_k_bound(papers, n_cells, rounds)),
        RegretBound(
            "rtopk, tight=True", top, "Theorem 19", known, ftpl.top_k_bound(tight, n_cells, rounds)
        ),
        RegretBound(
            "adaptive-ftpl",
            "all",
            "our own proof",
            "nothing",
            adaptive_ftpl.regret_bound(adaptive, rounds),
        ),
        RegretBound(
            "ftpl", "all", "section 3.2.7.2", known, ftpl.full_information_bound(papers, rounds)
        ),
    ]
    return sorted(rows, key=lambda row: row.value)
