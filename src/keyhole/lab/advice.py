"""Which ranker to take for a measure and its feedback, what it guarantees, and what nobody can."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import keyhole
from keyhole.base.errors import (
    MAX_ROUND,
    FeedbackTooSmall,
    InvalidInput,
    KeyholeError,
    check_integer,
)
from keyhole.base.files import plain
from keyhole.bounds import ftpl
from keyhole.contracts.measures import Measure
from keyhole.contracts.registry import options_of
from keyhole.contracts.rows import Guarantee, Question
from keyhole.measures import measure as named_measure
from keyhole.monitoring.classification import Classification, classify
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.lists.base import ContextualRanker

_ROOT = 1 / 2
_LONGEST, _HALVINGS = 1e30, 60


@dataclass(frozen=True)
class Candidate:
    """A ranker that fits, with what is known of it and its bound after the rounds asked for."""

    name: str
    guarantee: Guarantee
    bound: float | None
    says_something_from: float | None
    """Rounds from which on the bound is less than the most that can be lost."""


@dataclass(frozen=True)
class Advice:
    """The class of the game, who can be taken, and why others cannot.

    ``all_the_same`` is who is named where nobody can learn the measure, and is not left out then.
    """

    question: Question
    classification: Classification
    candidates: tuple[Candidate, ...]
    without_guarantee: tuple[str, ...]
    left_out: dict[str, str]
    forced: float | None
    """What any ranker loses per round on one of two crowds, where that is certified."""
    all_the_same: str | None


def most_to_lose(question: Question) -> float | None:
    """Return how much worse than the best a ranking can be in a round, if gains are per item."""
    if not question.measure.is_gain_per_item(question.max_grade):
        return None
    tight = ftpl.constants(question.measure, question.n_items, question.max_grade, tight=True)
    return tight.diameter * ftpl.largest_gain(question.measure, question.max_grade)


def _why_not(name: str, question: Question) -> str | None:
    """Return why a ranker does not fit, or None if it does."""
    cls: Any = RANKERS.find(name)
    if cls.needs_gain_per_item and not question.measure.is_gain_per_item(question.max_grade):
        return (
            f"It can be tuned only for measures whose gains are per item, which those of "
            f"{question.measure.label} are not."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of horizons too short, of which bounds tell more
            ranker = _made(cls, question)
        if min(ranker.depth, question.n_items) > question.k:
            raise FeedbackTooSmall(
                f"It needs the relevance of the first {min(ranker.depth, question.n_items)} "
                f"positions and would see {question.k}."
            )
    except KeyholeError as error:
        return str(error)
    return None if ranker.depth else "It learns nothing."


def _made(cls: Any, question: Question) -> Any:
    if question.n_features:
        seen = {"k": question.k} if "k" in options_of(cls) else {}
        return cls(question.n_features, question.n_items, **seen)
    return cls(
        question.n_items, horizon=question.rounds, k=question.k, measure=question.measure,
        max_grade=question.max_grade,
    )  # fmt: skip


def _first_below(bound: Callable[[float], float], most: float | None) -> float | None:
    """Return the rounds from which on a bound that grows more slowly is below ``most`` a round."""
    if not most:
        return None
    low, high = 0.0, math.log(_LONGEST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if bound(math.exp(middle)) > most * math.exp(middle):
            low = middle
        else:
            high = middle
    return math.exp(high)


def _candidate(name: str, guarantee: Guarantee, question: Question) -> Candidate:
    if guarantee.bound is None:
        return Candidate(name, guarantee, None, None)
    most = most_to_lose(question)
    from_round = _first_below(partial(guarantee.bound, question), most)
    bound = None if question.rounds is None else guarantee.bound(question, float(question.rounds))
    return Candidate(name, guarantee, bound, from_round)


def advise(
    measure: str | Measure,
    n_items: int,
    k: int,
    grades: int = 2,
    *,
    rounds: int | None = None,
    n_features: int = 0,
) -> Advice:
    """Say which ranker to take for a measure where the first k of some items are seen.

    Parameters
    ----------
    measure, n_items, k, grades
        See :func:`~keyhole.classify`.
    rounds
        How long the game lasts, for bounds.
    n_features
        Features of a document, where lists come with queries.

    Examples
    --------
    >>> advice = advise("DCG", n_items=20, k=1, rounds=10_000)
    >>> advice.classification.rate, advice.candidates[0].name
    ('T^(2/3)', 'keystone')
    """
    answer = classify(measure, n_items, k, grades)
    if rounds is not None:
        check_integer(rounds, "`rounds`", at_least=1, at_most=MAX_ROUND)
    check_integer(n_features, "`n_features`", at_least=0)
    question = Question(named_measure(measure), n_items, k, grades, rounds, n_features)
    base = ContextualRanker if n_features else FixedListRanker
    candidates, plain_ones, left_out = [], [], {}
    rows = {name: cls for name, cls in RANKERS.items() if issubclass(cls, base)}
    for name, cls in rows.items():
        why = _why_not(name, question)
        if why is not None:
            left_out[name] = why
        elif cls.guarantee is not None:
            candidates.append(_candidate(name, cls.guarantee, question))
        else:
            plain_ones.append(name)
    all_the_same = None
    if answer.class_ == "hopeless":
        all_the_same = next(name for name, cls in rows.items() if cls.guarantee is not None)
        left_out.pop(all_the_same, None)
    forced = _forced(answer)
    return Advice(
        question, answer, tuple(candidates), tuple(plain_ones), left_out, forced, all_the_same
    )


def _forced(answer: Classification) -> float | None:
    """Return the constant that a certificate of hopelessness proves, if there is one."""
    if answer.class_ != "hopeless":
        return None
    try:
        return float(Fraction(answer.certificate()["proofs"]["hopeless"]["constant"]))
    except (InvalidInput, KeyError):  # too large a game, or one whose proof has no constant
        return None


def sentences(advice: Advice) -> list[str]:
    """Return the advice in words."""
    answer, question = advice.classification, advice.question
    said = [_on_learnability(advice)]
    if answer.class_ == "hopeless":
        said += [text.rstrip(".") for text in answer.advice[:-1]]
        said.append(_all_the_same(advice))
        return said
    if not advice.candidates:
        said.append("No ranker that is shipped learns this from that feedback")
        return said
    first = advice.candidates[0]
    said.append(f"Take {first.name}: {_promise(first)}")
    said += _on_bounds(first, question)
    better = [
        each
        for each in advice.candidates[1:]
        if each.guarantee.power is not None
        and (first.guarantee.power is None or each.guarantee.power <= first.guarantee.power)
    ]
    for each in sorted(better, key=lambda each: each.guarantee.power or 0.0):
        said.append(f"Or {each.name}: {_promise(each)}")
        said += _on_bounds(each, question)
    powers = [each.guarantee.power for each in advice.candidates if each.guarantee.power]
    if answer.class_ == "local" and min(powers, default=1.0) > _ROOT:
        said.append(f"No ranker that is shipped attains {answer.rate} here")
    return said


def _on_learnability(advice: Advice) -> str:
    answer = advice.classification
    game = (
        f"{answer.measure} of {answer.n_items} items with the top {answer.k} seen "
        f"({answer.grades} grades)"
    )
    if answer.class_ == "unknown":
        return f"{game}: it is not known whether it can be learnt. {answer.reason.rstrip('.')}"
    if answer.class_ == "hopeless":
        forced = (
            ""
            if advice.forced is None
            else f": at least {advice.forced:.4g} a round on one of two crowds that look alike"
        )
        return (
            f"{game} cannot be learnt by any ranker: its regret grows as T{forced}. "
            f"{answer.reason.rstrip('.')}"
        )
    return (
        f"{game} can be learnt: the regret of the best ranker grows as {answer.rate}. "
        f"{answer.reason.rstrip('.')}"
    )


def _all_the_same(advice: Advice) -> str:
    """Return what to take where nobody can promise anything about the measure."""
    name = advice.all_the_same
    first = next((each for each in advice.candidates if each.name == name), None)
    tuned = "tuned for DCG" if first is None else _promise(first)
    return (
        f"What can be done all the same: {name}, {tuned}, without a guarantee for "
        f"{advice.question.measure.label}; keyhole compare shows how it does on your data"
    )


def _promise(candidate: Candidate) -> str:
    guarantee = candidate.guarantee
    if guarantee.power is None:
        return f"{guarantee.sense} ({guarantee.source})"
    return f"regret of order {guarantee.rate} {guarantee.sense} ({guarantee.source})"


def _on_bounds(candidate: Candidate, question: Question) -> list[str]:
    """Return what the bound of a ranker says after the rounds asked for, if it says anything."""
    most, since = most_to_lose(question), candidate.says_something_from
    if candidate.bound is None or question.rounds is None or most is None or since is None:
        return []
    per_round = candidate.bound / question.rounds
    if per_round >= most:
        return [
            f"  its bound, {per_round:.3g} a round, says nothing at {question.rounds:,} rounds: a "
            f"ranking can lose at most {most:.3g}. It does from {_round_number(since)} rounds on"
        ]
    return [
        f"  its bound after {question.rounds:,} rounds: {candidate.bound:.4g} in all, "
        f"{per_round:.3g} a round, of at most {most:.3g} that can be lost"
    ]


def _round_number(value: float) -> str:
    """Return a large number in words that claim no more digits than it has.

    Examples
    --------
    >>> _round_number(3456.0), _round_number(2.4e7)
    ('3,500', '24,000,000')
    """
    digits = max(0, math.floor(math.log10(max(value, 1.0))) - 1)
    return f"{math.ceil(value / 10**digits) * 10**digits:,}"


def as_record(advice: Advice) -> Any:
    """Return advice as plain data, ready for JSON."""
    return plain(
        {
            "take": advice.candidates[0].name
            if advice.candidates and advice.classification.class_ != "hopeless"
            else None,
            "advice": sentences(advice),
            "classification": advice.classification.as_dict(),
            "forced_regret": advice.forced,
            "most_to_lose": most_to_lose(advice.question),
            "candidates": [
                {
                    "ranker": each.name,
                    "power": each.guarantee.power,
                    "sense": each.guarantee.sense,
                    "source": each.guarantee.source,
                    "bound": each.bound,
                    "bound_says_something_from": each.says_something_from,
                }
                for each in advice.candidates
            ],
            "without_guarantee": list(advice.without_guarantee),
            "left_out": advice.left_out,
            "rounds": advice.question.rounds,
            "version": keyhole.__version__,
        }
    )
