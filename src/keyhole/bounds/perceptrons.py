"""B1 to B5: how many mistakes perceptrons make, and how many none can avoid.

Notes
-----
Chapter 2 of [T16], Theorem 9 for B5, with errata R5, R13, R15 and R35. All upper bounds come from
one constant: C times the loss bounds the squared gradient of a mistake (B4). With F the loss
of a comparator w over the rounds in which the learner errs, descent from 0 at a rate eta gives
sum of losses <= (F + |w|^2 / (2 eta)) / (1 - eta C / 2).
"""

import math

from keyhole.base.errors import InvalidInput, check_integer, check_number
from keyhole.contracts.measures import Measure
from keyhole.measures import measure as named_measure


def _ndcg_or_ap(measure: str | Measure) -> Measure:
    given = named_measure(measure)
    if given.name not in ("NDCG", "AP"):
        raise InvalidInput(f"measure must be NDCG, NDCG@n or AP, got {given.label}.")
    return given


def n_counted(measure: str | Measure, n_items: int) -> int:
    """Return kappa: the positions that count, all of them or those above the cutoff."""
    n_items = check_integer(n_items, "`n_items`", at_least=1)
    return min(_ndcg_or_ap(measure).cutoff or n_items, n_items)


def largest_weight(measure: str | Measure, n_items: int, max_grade: float = 1.0) -> float:
    """Return v_max: 1 for AP, G log2(kappa + 1) for NDCG with G the largest gain.

    Despite its name it bounds no weight (those add up to 1): kappa v_max bounds 1 over the
    least weight that a mistake can have.

    Examples
    --------
    >>> largest_weight("AP", 20), largest_weight("NDCG@3", 20, max_grade=2)
    (1.0, 6.0)
    """
    kappa = n_counted(measure, n_items)
    if _ndcg_or_ap(measure).name == "AP":
        return 1.0
    gain = 2.0 ** check_number(max_grade, "`max_grade`", above=0.0) - 1.0
    return gain * math.log2(kappa + 1.0)


def classification_constant(row_norm: float) -> float:
    """Return R^2, the C of the perceptron on documents (A1)."""
    return check_number(row_norm, "`row_norm`", above=0.0) ** 2


def slam_constant(
    measure: str | Measure, n_items: int, *, row_norm: float, max_grade: float = 1.0
) -> float:
    """Return 4 kappa R^2 v_max, the C of the SLAM perceptron (A2).

    Examples
    --------
    >>> slam_constant("AP", 20, row_norm=1.0)
    80.0
    """
    scale = n_counted(measure, n_items) * largest_weight(measure, n_items, max_grade)
    return 4.0 * scale * check_number(row_norm, "`row_norm`", above=0.0) ** 2


def max_violation_constant(row_norm: float) -> float:
    """Return 4 R^2, the C of the max-violation perceptron (A3)."""
    return 4.0 * check_number(row_norm, "`row_norm`", above=0.0) ** 2


def mistake_bound(
    comparator_loss: float, norm: float, constant: float, rate: float | None = None
) -> float:
    """Return F + |w| sqrt(C F) + C |w|^2: B1, B2 or B3 by the constant.

    Parameters
    ----------
    comparator_loss, norm
        F, the surrogate loss of some weights w over the rounds (or, tighter, over those with a
        mistake), and |w|.
    constant
        C, from :func:`classification_constant` (the number of mistakes of A1),
        :func:`slam_constant` (the induced loss of A2) or :func:`max_violation_constant` (the
        induced loss and the number of mistakes of A3).
    rate
        eta. Rankings of A1 and A3 do not depend on it: leave it out. The theorem for A2 is for
        the best one, which depends on F; at another rate the bound is
        (F + |w|^2 / (2 eta)) / (1 - eta C / 2), infinite from eta = 2/C on. At 1/C it is
        2 F + C |w|^2.

    Examples
    --------
    >>> mistake_bound(0.0, 2.0, 80.0), mistake_bound(5.0, 2.0, 80.0)
    (320.0, 365.0)
    >>> mistake_bound(5.0, 2.0, 80.0, rate=1 / 80)
    330.0
    """
    loss = check_number(comparator_loss, "`comparator_loss`", at_least=0.0)
    norm = check_number(norm, "`norm`", at_least=0.0)
    constant = check_number(constant, "`constant`", above=0.0)
    if rate is None:
        return loss + norm * math.sqrt(constant * loss) + constant * norm**2
    rate = check_number(rate, "`rate`", above=0.0)
    left = 1.0 - rate * constant / 2.0
    return (loss + norm**2 / (2.0 * rate)) / left if left > 0.0 else math.inf


def separable_bound(margin: float, constant: float) -> float:
    """Return C / gamma^2: :func:`mistake_bound` of a separator of norm 1 / gamma (R13).

    ``margin`` is the least difference in score that unit weights leave between two grades
    (between a document and 0 for A1).

    Examples
    --------
    >>> separable_bound(0.5, max_violation_constant(1.0))
    16.0
    """
    return constant / check_number(margin, "`margin`", above=0.0) ** 2


def bounds_itself(gradient_norm: float, loss: float, constant: float) -> bool:
    """Return whether |z|^2 <= C f (B4), where a list with a mistake has gradient z and loss f.

    Examples
    --------
    >>> bounds_itself(2.0, 1.0, max_violation_constant(1.0))
    True
    """
    return gradient_norm**2 <= constant * loss * (1.0 + 1e-12)


def least_loss(measure: str | Measure) -> float:
    """Return what a wrong list of two documents costs: 1 - 1/log2(3) for NDCG, 1/2 for AP.

    Examples
    --------
    >>> round(least_loss("NDCG"), 5), least_loss("AP")
    (0.36907, 0.5)
    """
    given = _ndcg_or_ap(measure)
    if given.cutoff == 1:
        return 1.0
    return 0.5 if given.name == "AP" else 1.0 - 1.0 / math.log2(3.0)


def defeated_rounds(row_norm: float, margin: float, *, tight: bool = False) -> int:
    """Return R^2 / gamma^2 rounded down: rounds in which a deterministic ranker always errs (B5).

    ``tight``: 4 R^2 / gamma^2, which the separator allows when it has norm 1 (R35); the source's
    has at most 1/2. That many mistakes are all that A3 can make.

    Examples
    --------
    >>> defeated_rounds(1.0, 0.25), defeated_rounds(1.0, 0.25, tight=True)
    (16, 64)
    """
    row_norm = check_number(row_norm, "`row_norm`", above=0.0)
    margin = check_number(margin, "`margin`", above=0.0)
    ratio = (4.0 if tight else 1.0) * (row_norm / margin) ** 2
    return math.floor(ratio * (1.0 + 1e-12))  # floats of 0.2 / 0.1 may fall short


def unavoidable_loss(
    measure: str | Measure, *, row_norm: float, margin: float, tight: bool = False
) -> float:
    """Return :func:`least_loss` times :func:`defeated_rounds`: what no deterministic ranker avoids.

    Examples
    --------
    >>> unavoidable_loss("AP", row_norm=1.0, margin=0.25)
    8.0
    """
    return least_loss(measure) * defeated_rounds(row_norm, margin, tight=tight)
