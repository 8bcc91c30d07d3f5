"""What another list would have earned, judged on the log of a ranker."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, shown
from keyhole.contracts.measures import Measure
from keyhole.measures import measure as named_measure
from keyhole.offline.bounds import lower_bound
from keyhole.offline.estimators import Estimate, Range
from keyhole.offline.intervals import interval
from keyhole.offline.item_estimator import seen_items
from keyhole.service.commands import EvaluationRequest
from keyhole.service.events import Answered, Config, Ranked, body_of
from keyhole.service.store.base import Store

_BOUNDS = ("betting", "empirical-bernstein", "student-t")
_DECISIVE = "doubly-robust"
_FEWEST_ROUNDS = 10


class Rounds(NamedTuple):
    """The rounds of a log that can be judged: one row each, one column per item revealed."""

    round: IntArray
    """Which rounds they were, in order."""
    block: int
    """How many rounds on two draws may still depend on each other: 1 where each is drawn anew."""
    seen: Any
    gains: FloatArray
    chances: FloatArray
    shown: Any
    """Where each item was, (n, n_items)."""
    least_chance: float | None
    n_skipped: int


class Judge(NamedTuple):
    """What is asked of rounds: whose items, how they count, and what is the best by now."""

    names: tuple[str, ...]
    weights: FloatArray
    """What a gain counts at each position, more being better."""
    best: tuple[str, ...]
    largest_gain: float
    """What one item can gain at most."""
    largest: float
    """What the items seen in one round can count at most."""


class Weights(NamedTuple):
    """What a policy makes of the gain of each item in each round, (n, n_items)."""

    given: FloatArray
    """By the list of the round, as it was or would be."""
    expected: FloatArray
    """Before the list of the round was drawn: whether an item is seen says nothing about it."""

    def minus(self, other: "Weights") -> "Weights":
        """Return what one policy makes of gains beyond another."""
        return Weights(self.given - other.given, self.expected - other.expected)


def judge_of(config: Config, best: tuple[str, ...]) -> Judge:
    """Return how lists of a ranker are judged, or raise where they cannot be."""
    names, max_grade = config.catalogue, float(config.request.get("max_grade", 1.0))
    measure = named_measure(config.measure)
    if names is None or not measure.is_gain_per_item(max_grade):
        raise InvalidInput(
            "Lists can be judged on the log of a ranker of a fixed list whose measure has gains "
            f"per item, got {config.measure} of {'requests' if names is None else 'a list'}."
        )
    weights = measure.weights(len(names)) * (-1.0 if measure.is_loss else 1.0)
    grade = 2.0**max_grade - 1.0 if measure.exponential_gain else max_grade
    return Judge(names, weights, best, grade, float(np.abs(weights).max()) * grade * config.k)


def evaluate(
    store: Store, ranker: str, config: Config, best: tuple[str, ...], request: EvaluationRequest
) -> dict[str, Any]:
    """Return what a list would have earned beside a baseline, with bounds and a verdict.

    It reads the log alone, and may take a while: call it in a thread of its own.
    """
    judge = judge_of(config, best)
    exponential = named_measure(config.measure).exponential_gain
    rounds = _rounds(store, ranker, judge.names, request.after, exponential)
    policy = _weights(request.policy, judge, rounds)
    baseline = _weights(request.baseline, judge, rounds)
    estimates = {}
    for name, weights in (("policy", policy), ("baseline", baseline)):
        estimates[name] = _both(rounds, weights, judge)
    difference = _both(rounds, policy.minus(baseline), judge)
    decided = _bound(request.bound, difference[_DECISIVE], request.confidence)
    promote = decided is not None and decided > 0.0
    return {
        "verdict": "promote" if promote else "keep",
        "lower_bound": decided,
        "decided_by": f"{request.bound} bound on the {_DECISIVE} difference",
        "confidence": request.confidence,
        "rows": len(rounds.gains),
        "skipped": rounds.n_skipped,
        "measure": config.measure,
        **{name: _record(both, request.confidence) for name, both in estimates.items()},
        "difference": _record(difference, request.confidence),
        "notes": _notes(request, named_measure(config.measure), rounds),
    }


def _notes(request: EvaluationRequest, measure: Measure, rounds: Rounds) -> list[str]:
    notes = [
        "Rounds without feedback are left out: unbiased where whether feedback comes does not "
        "depend on relevance.",
        "`interval` holds for every number of rounds; `approximate_interval` in the limit, and not "
        "yet where items were hardly seen or seldom liked: its upper end is then too low far more "
        "often than it says, its lower end too high less often.",
        "Scores are gains: losses count as negative.",
    ]
    if rounds.block > 1:
        notes.append(
            "That `interval` holds is proved where each list is drawn anew. Here lists of a block "
            "were drawn together, each item once: values are unbiased, and of `interval` and "
            "`lower_bounds` nothing is proved."
        )
    if measure.discount.startswith("pairs"):
        notes.append(
            f"Scores are those of SumLoss, of which {measure.label} takes away what is the same "
            "for every order: differences are those of both."
        )
    if request.baseline == "logged":
        notes.append(
            "What was shown is worth what the log says of its items one by one, which takes a "
            "crowd that does not change."
        )
    if request.policy == "best" and request.after == 0:
        notes.append(
            "The policy has learnt from these rounds, which flatters it: judge it by rounds after "
            "the event it was learnt at (`after`)."
        )
    return notes


def _record(both: dict[str, Estimate], confidence: float) -> dict[str, Any]:
    record = {}
    for name, estimate in both.items():
        record[name] = {
            "value": estimate.value,
            "standard_error": estimate.error,
            "interval": interval("betting", estimate, confidence).ends,
            "approximate_interval": interval("student-t", estimate, confidence).ends,
            "lower_bounds": {bound: _bound(bound, estimate, confidence) for bound in _BOUNDS},
        }
    return record


def _bound(name: str, estimate: Estimate, confidence: float) -> float | None:
    return lower_bound(name, estimate, confidence).value


def _rounds(
    store: Store, ranker: str, names: tuple[str, ...], after: int, exponential: bool
) -> Rounds:
    """Return the rounds of the list as it is now that were answered and whose chances are known."""
    waiting: dict[str, Ranked] = {}
    configs: dict[int, Config] = {}
    knows_chances = False
    rows: list[tuple[Ranked, Answered]] = []
    n_skipped = 0
    for event in store.events(ranker):
        if event.kind == "config":
            config: Config = body_of(event)
            configs[event.seq] = config
            if config.fresh:  # what was before is not this ranker's
                waiting, rows, n_skipped, knows_chances = {}, [], 0, False
        elif event.kind == "rank" and event.seq > after:
            ranked: Ranked = body_of(event)
            knows_chances |= ranked.chances is not None
            if _can_be_judged(ranked, configs[ranked.catalogue or 0], names):
                waiting[str(event.key)] = ranked
            else:
                n_skipped += 1
        elif event.kind == "feedback" and event.key in waiting:
            answered: Answered = body_of(event)
            if answered.status != "not_shown":
                rows.append((waiting.pop(str(event.key)), answered))
    if not knows_chances or len(rows) < _FEWEST_ROUNDS:
        raise InvalidInput(
            f"A log must have at least {_FEWEST_ROUNDS} answered rounds of the present list, shown "
            f"by a ranker that knows how likely items were to be seen, got {len(rows)} rounds"
            f"{'' if knows_chances or not rows else ' of one that does not'}."
        )
    rows.sort(key=lambda row: row[0].round)  # feedback may come in any order
    return _table(rows, len(names), exponential, _block(rows, configs), n_skipped)


def _can_be_judged(ranked: Ranked, config: Config, names: tuple[str, ...]) -> bool:
    """Return whether a round was one of a list, of which anything might have been seen."""
    was_drawn = ranked.mode != "apprentice" or config.apprentice_share > 0.0
    return config.catalogue == names and ranked.n_excluded == 0 and was_drawn


def _block(rows: list[tuple[Ranked, Answered]], configs: dict[int, Config]) -> int:
    """Return how many rounds on two draws may still depend on each other.

    Where what a round reveals is likelier given the past than over all draws, or less likely,
    something is shown at one time of a block: in one round of so many.
    """
    lengths, depends = [1], False
    for ranked, _ in rows:
        if ranked.chances is not None and ranked.p_marginal:
            is_shared = ranked.mode == "apprentice"
            share = configs[ranked.catalogue or 0].apprentice_share if is_shared else 1.0
            lengths.append(round(share / ranked.p_marginal))
            depends |= ranked.p_conditional != ranked.p_marginal
    return max(lengths) + 1 if depends else 1  # a block may be a round longer than those revealed


def _table(
    rows: list[tuple[Ranked, Answered]],
    n_items: int,
    exponential: bool,
    block: int,
    n_skipped: int,
) -> Rounds:
    depth = max(len(answered.relevance) for _, answered in rows)
    seen = np.zeros((len(rows), depth), np.int64)
    gains = np.zeros((len(rows), depth))
    chances = np.full((len(rows), depth), np.nan)
    shown_at = np.zeros((len(rows), n_items), np.int64)
    for row, (ranked, answered) in enumerate(rows):
        n_seen = len(answered.relevance)
        seen[row, :n_seen] = ranked.ranking[:n_seen]
        gains[row, :n_seen] = answered.relevance
        known = (ranked.chances or ())[:n_seen]
        chances[row, : len(known)] = known
        shown_at[row, list(ranked.ranking)] = np.arange(n_items)
    if exponential:
        gains = 2.0**gains - 1.0
    at = np.array([ranked.round for ranked, _ in rows])
    return Rounds(at, block, seen, gains, chances, shown_at, _least_chance(rows), n_skipped)


def _least_chance(rows: list[tuple[Ranked, Answered]]) -> float | None:
    """Return the least chance of any item in any round whose chances count; None if not known."""
    counted = [ranked.least_chance for ranked, _ in rows if ranked.chances is not None]
    known = [chance for chance in counted if chance is not None]
    if 0.0 in known:
        raise InvalidInput(
            "A log can judge other lists only where every item had a chance to be seen, which in "
            "some of its rounds was not so: leave them out (`after`)."
        )
    return min(known) if known and len(known) == len(counted) else None


def _weights(policy: list[str] | str, judge: Judge, rounds: Rounds) -> Weights:
    """Return what a policy makes of the gain of each item in each round."""
    if policy == "logged":
        return _as_shown(judge.weights[rounds.shown])
    n_rows, n_items = len(rounds.gains), len(judge.names)
    if policy == "uniform":
        weights = np.full((n_rows, n_items), judge.weights.mean())
        return Weights(weights, weights)
    order = list(judge.best) if policy == "best" else policy
    if not isinstance(order, list) or sorted(order) != sorted(judge.names):
        raise InvalidInput(
            f"A policy must name each of the {n_items} items of the list once, got {shown(policy)}."
        )
    at = {name: place for place, name in enumerate(order)}
    weights = np.tile([float(judge.weights[at[name]]) for name in judge.names], (n_rows, 1))
    return Weights(weights, weights)


def _as_shown(weights: FloatArray) -> Weights:
    """Return the weights of lists as they were shown; expected is their mean in other rounds.

    An item that was seen stood at the top of its own list: to weigh it by that, and divide by how
    likely it was, would count it as if it always stood there.
    """
    beyond = weights - weights[0]  # so that lists that are all the same weigh the same to the bit
    return Weights(weights, weights[0] + (beyond.sum(axis=0) - beyond) / (len(weights) - 1))


def _both(rounds: Rounds, weights: Weights, judge: Judge) -> dict[str, Estimate]:
    """Return the importance-weighted and the doubly robust estimate of what weights earn."""
    of_seen = np.take_along_axis(weights.expected, rounds.seen, axis=1)
    means = _means_before(rounds, len(judge.names))
    predicted = np.take_along_axis(means, rounds.seen, axis=1)
    base = (weights.given * means).sum(axis=1)
    worth = _worth(weights.given, judge.largest_gain)
    known: dict[str, Any] = {"largest": judge.largest, "least_chance": rounds.least_chance}
    never_negative = bool(weights.expected.min() >= 0.0)
    plain = seen_items(
        rounds.gains, rounds.chances, of_seen, never_negative=never_negative, **known
    )
    robust = seen_items(
        rounds.gains,
        rounds.chances,
        of_seen,
        predicted=predicted,
        base=base,
        base_range=worth,
        **known,
    )
    return {each.name: replace(each, value_range=worth) for each in (plain, robust)}


def _worth(weights: FloatArray, largest_gain: float) -> Range:
    """Return what weights can earn in the mean of all rounds, whatever each item gains."""
    least = float(np.minimum(weights, 0.0).sum(axis=1).min())
    most = float(np.maximum(weights, 0.0).sum(axis=1).max())
    return largest_gain * least, largest_gain * most


def _means_before(rounds: Rounds, n_items: int) -> FloatArray:
    """Return the mean gain of every item as it was known before each round; 0 at first.

    Where draws of a block depend on each other, before it is before the block: an item that was
    seen in it is not seen again, so what it gained would be counted and never be set right.
    """
    n_rows, depth = rounds.gains.shape
    known = ~np.isnan(rounds.chances)
    counts, sums = np.zeros((n_rows + 1, n_items)), np.zeros((n_rows + 1, n_items))
    rows = np.arange(1, n_rows + 1)
    for column in range(depth):
        np.add.at(counts, (rows, rounds.seen[:, column]), known[:, column])
        np.add.at(sums, (rows, rounds.seen[:, column]), known[:, column] * rounds.gains[:, column])
    n_before = np.searchsorted(rounds.round, rounds.round - rounds.block, "right")
    counts, sums = counts.cumsum(axis=0)[n_before], sums.cumsum(axis=0)[n_before]
    return np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0)
