"""The answer: whether a measure can be learnt from the top k, at which rate, and why."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhole.base.display import Described, Description
from keyhole.base.errors import InvalidInput, LibraryMissing, check_choice
from keyhole.contracts.measures import Measure
from keyhole.monitoring.certificates import certificate_for, certificate_of
from keyhole.monitoring.games import (
    LARGEST_GAME,
    Game,
    check_ranking_game,
    check_size,
    is_enumerable,
)
from keyhole.monitoring.observability import SolvedGame, cells_of, solve_game
from keyhole.monitoring.rules import rule_for

RATES = {
    "trivial": "0",
    "local": "T^(1/2)",
    "global": "T^(2/3)",
    "hopeless": "T",
    "unknown": "unknown",
}
"""How the regret of the best algorithm grows with the number of rounds T, by class.

Classes are in the order of their difficulty.
"""

_QUICK = 2_000
_OTHERS = ("DCG", "SumLoss", "PairwiseLoss")
_HEDGE_ITEMS, _FORECASTER_ITEMS = 7, 5


@dataclass(frozen=True, repr=False)
class Classification(Described):
    """The class of a game and what follows from it.

    ``class_`` is trivial, local, global, hopeless or unknown; ``rate`` that of the regret of the
    best algorithm; ``source`` enumeration or rule (None if unknown); ``exact`` whether every
    step is a proof; if not, losses are off by up to ``tolerance``, and ``margin`` is how many
    times larger the smallest number counted as non-zero was than it could be by rounding.
    """

    measure: str | None
    n_items: int | None
    k: int | None
    grades: int | None
    class_: str
    source: str | None
    reason: str
    exact: bool = True
    tolerance: float = 0.0
    margin: float | None = None
    advice: tuple[str, ...] = ()
    _prove: Callable[[], dict[str, Any]] | None = field(default=None, compare=False)

    def _described(self) -> Description:
        game = {"items": self.n_items, "top": self.k, "grades": self.grades}
        facts = [f"{name} {value}" for name, value in game.items() if value is not None]
        rows = [
            ("game", "; ".join([self.measure or "matrices", *facts])),
            ("class", self.class_),
            ("regret", f"of order {self.rate}" if self.source else "not known"),
            ("because", self.reason),
            *(("advice" if not number else "", each) for number, each in enumerate(self.advice)),
        ]
        return Description("Classification", rows)

    @property
    def rate(self) -> str:
        """The order of the regret in the number of rounds T."""
        return RATES[self.class_]

    def certificate(self) -> dict[str, Any]:
        """Return the proof as plain data, for :func:`~keyhole.check_certificate`."""
        if self._prove is None:
            raise InvalidInput("a game whose class is not known has no certificate.")
        return self._prove()

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the certificate as plain data."""
        return {
            "measure": self.measure,
            "n_items": self.n_items,
            "k": self.k,
            "grades": self.grades,
            "class": self.class_,
            "rate": self.rate,
            "source": self.source,
            "reason": self.reason,
            "exact": self.exact,
            "tolerance": self.tolerance,
            "margin": self.margin,
            "advice": list(self.advice),
        }


def classify(
    measure: str | Measure, n_items: int, k: int, grades: int = 2, *, method: str = "auto"
) -> Classification:
    """Say whether a measure can be learnt from the relevance of the top k items.

    Parameters
    ----------
    measure
        A name such as ``"NDCG@10"``, or a measure.
    n_items, k
        The length of the list, and how many of its first items are shown.
    grades
        Relevance is one of 0, ..., ``grades - 1``.
    method
        ``enumeration`` of all rankings and relevance vectors, a ``rule`` for any number of items,
        or ``auto``: enumeration of small games, otherwise the rule, and if there is none,
        enumeration of any game that can be enumerated.

    Notes
    -----
    The classes of Bartok et al. 2014: regret is 0, or of order T^(1/2), T^(2/3) or T,
    according to which differences of losses can be estimated from what is shown.

    Examples
    --------
    >>> answer = classify("NDCG", n_items=20, k=1)
    >>> answer.class_, answer.rate, answer.source
    ('hopeless', 'T', 'rule')
    >>> answer.advice[1]
    'DCG is learnable at T^(2/3) with the same feedback.'
    >>> classify("Precision@2", n_items=4, k=1).rate
    'T^(1/2)'
    """
    judge = check_ranking_game(measure, n_items, k, grades)
    check_choice(method, "`method`", ("auto", "enumeration", "rule"))
    where = (judge.label, n_items, k, grades)
    if method == "enumeration":
        check_size(n_items, grades)
        return _by_enumeration(judge, n_items, k, grades)
    rule = rule_for(judge, n_items, grades)
    is_known = rule is not None and rule.class_at(k) != "unknown"
    if method == "auto" and is_enumerable(n_items, grades, _QUICK if is_known else LARGEST_GAME):
        try:
            return _by_enumeration(judge, n_items, k, grades)
        except LibraryMissing:
            if not is_known:
                raise
    if rule is None or not is_known:
        return Classification(*where, "unknown", None, _why_unknown(*where, method))
    class_ = rule.class_at(k)
    return Classification(
        *where,
        class_,
        "rule",
        rule.reason_at(k, n_items),
        advice=_advice(judge, n_items, k, grades, class_),
        _prove=lambda: certificate_for(judge, n_items, k, grades, class_),
    )


def classify_matrices(
    loss: Sequence[Sequence[Any]], feedback: Sequence[Sequence[Any]]
) -> Classification:
    """Classify a game of your own: losses and feedback symbols by action and outcome.

    Examples
    --------
    >>> answer = classify_matrices([[0, 1], [1, 0]], [["rain", "sun"], ["?", "?"]])
    >>> answer.class_, answer.rate
    ('local', 'T^(1/2)')
    """
    return _answer(solve_game(Game.from_matrices(loss, feedback)), (None, None, None, None), ())


def _why_unknown(label: str, n_items: int, k: int, grades: int, method: str) -> str:
    size = "" if method == "rule" else f", and {n_items} items are too many to enumerate"
    return (
        f"No rule is known for {label} on {n_items} items with {grades} grades and the top "
        f"{k} shown{size}."
    )


def _by_enumeration(judge: Measure, n_items: int, k: int, grades: int) -> Classification:
    solution = solve_game(Game.of(judge, n_items, k, grades))
    advice = _advice(judge, n_items, k, grades, solution.class_)
    return _answer(solution, (judge.label, n_items, k, grades), advice)


def _answer(
    solution: SolvedGame, where: tuple[Any, Any, Any, Any], advice: tuple[str, ...]
) -> Classification:
    losses = solution.game.losses
    margin = losses.nonzero_above / losses.tolerance if losses.tolerance else math.inf
    return Classification(
        *where,
        solution.class_,
        "enumeration",
        _reason(solution),
        exact=solution.is_exact,
        tolerance=losses.tolerance,
        margin=margin if math.isfinite(margin) else None,
        advice=advice,
        _prove=lambda: certificate_of(solution),
    )


def _reason(solution: SolvedGame) -> str:
    """Return one sentence on the computation behind an enumerated class."""
    game, offending, class_ = solution.game, solution.offending, solution.class_
    size = "{} actions and {} outcomes".format(*game.losses.matrix.shape)
    if class_ == "trivial":
        return f"Of {size}, one action is best under every outcome."
    if offending is not None:
        pair = " and ".join(_name(game, a) for a in (offending.first, offending.second))
        kind, shown = "the neighbours ", "the two of them show"
        if class_ == "hopeless":
            kind, shown = "", "all actions together show"
        return f"Among {size}, the losses of {kind}{pair} differ by no sum of what {shown}."
    n_pairs = cells_of(game.losses).n_neighbour_pairs
    pairs = "1 pair" if n_pairs == 1 else f"{n_pairs} pairs"
    return (
        f"Among {size}, the losses of any two neighbours ({pairs}) differ by a sum of what the two "
        f"of them show."
    )


def _name(game: Game, action: int) -> str:
    if not game.losses.is_ranking:
        return str(action)
    return "(" + " ".join(str(item) for item in game.losses.actions[action]) + ")"


# --------------------------------------------------------------------------- what would help


def _is_better(class_: str, than: str) -> bool:
    """Return whether one known class is easier to learn in than another."""
    order = list(RATES)
    return class_ != "unknown" and order.index(class_) < order.index(than)


def _advice(judge: Measure, n_items: int, k: int, grades: int, class_: str) -> tuple[str, ...]:
    """Return sentences: a larger k, another measure, a ranker that attains the rate."""
    advice = []
    rule = rule_for(judge, n_items, grades)
    if rule is not None and class_ not in ("trivial", "local"):
        better = next(j for j in range(k + 1, n_items + 1) if _is_better(rule.class_at(j), class_))
        rate = RATES[rule.class_at(better)]
        learns = _learner(judge, n_items, better, grades) is not None
        but = "" if learns else ", but no shipped ranker learns it"
        advice.append(f"Showing the top {better} would make it learnable at {rate}{but}.")
    if class_ == "hopeless":
        for name in _OTHERS:
            other = rule_for(check_ranking_game(name, n_items, k, grades), n_items, grades)
            if other is not None and _is_better(other.class_at(k), class_):
                rate = RATES[other.class_at(k)]
                advice.append(f"{name} is learnable at {rate} with the same feedback.")
    advice.append(_ranker(judge, n_items, k, grades, class_))
    return tuple(advice)


def _ranker(judge: Measure, n_items: int, k: int, grades: int, class_: str) -> str:
    """Return a sentence on the shipped ranker for a game; names are those of RANKERS."""
    if class_ == "trivial":
        return "Every ranking is as good as any other: show `fixed`."
    if class_ == "hopeless":
        return "No ranker can learn it: whatever it shows, its regret can grow linearly."
    learner = _learner(judge, n_items, k, grades)
    if learner is None:
        return "No ranker that is shipped attains the rate for so many items."
    if learner in ("ftpl", "hedge"):
        return f"`{learner}` attains the rate T^(1/2)."
    attained = "attains the rate" if class_ == "global" else "comes closest of what is shipped, at"
    return f"`{learner}` {attained} T^(2/3)."


def _learner(judge: Measure, n_items: int, k: int, grades: int) -> str | None:
    """Return the shipped ranker that learns a game that can be learnt, if there is one."""
    per_item = judge.is_gain_per_item(grades - 1)
    if k == n_items and (per_item or n_items <= _HEDGE_ITEMS):
        return "ftpl" if per_item else "hedge"
    if per_item:
        return "rtopk"
    return "forecaster" if n_items <= _FORECASTER_ITEMS else None
