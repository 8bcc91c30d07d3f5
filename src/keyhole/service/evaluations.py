"""What another list would have earned: the events of a ranker as rounds, and the reply."""

from typing import Any

import numpy as np

from keyhole.base.errors import IntArray, InvalidInput, shown
from keyhole.contracts.measures import Measure
from keyhole.data.rounds import Rounds
from keyhole.measures import measure as named_measure
from keyhole.offline.items import Scoring, evaluate_items
from keyhole.offline.report import Line
from keyhole.service.commands import EvaluationRequest
from keyhole.service.events import Answered, Config, Ranked, body_of
from keyhole.service.store.base import Store

_FEWEST_ROUNDS = 10


def scoring_of(config: Config) -> Scoring:
    """Return how lists of a ranker are scored, or raise where they cannot be judged."""
    names, max_grade = config.catalogue, float(config.request.get("max_grade", 1.0))
    measure = named_measure(config.measure)
    if names is None or not measure.is_gain_per_item(max_grade):
        raise InvalidInput(
            "Lists can be judged on the log of a ranker of a fixed list whose measure has gains "
            f"per item, got {config.measure} of {'requests' if names is None else 'a list'}."
        )
    weights = measure.weights(len(names)) * (-1.0 if measure.is_loss else 1.0)
    grade = 2.0**max_grade - 1.0 if measure.exponential_gain else max_grade
    return Scoring(weights, grade, config.k)


def evaluate(
    store: Store, ranker: str, config: Config, best: tuple[str, ...], request: EvaluationRequest
) -> dict[str, Any]:
    """Return what a list would have earned beside a baseline, with bounds and a verdict.

    It reads the log alone, and may take a while: call it in a thread of its own.
    """
    scoring, measure = scoring_of(config), named_measure(config.measure)
    names = config.catalogue or ()
    rounds, n_skipped = _rounds(store, ranker, names, request.after, measure.exponential_gain)
    policy, baseline = (_policy(each, names, best) for each in (request.policy, request.baseline))
    found = evaluate_items(
        rounds, scoring, policy, baseline, request.confidence, bound=request.bound
    )
    return {
        "verdict": found.verdict,
        "lower_bound": found.lower_bound,
        "decided_by": f"{found.decided_by} bound on the {found.decisive} difference",
        "confidence": found.confidence,
        "rows": found.n_rows,
        "skipped": n_skipped,
        "measure": config.measure,
        "policy": record_of(found.policy.lines),
        "baseline": record_of(found.baseline.lines),
        "difference": record_of(found.difference),
        "notes": _notes(request, measure, rounds),
    }


def record_of(lines: dict[str, Line]) -> dict[str, Any]:
    """Return estimates as replies have them."""
    return {
        name: {
            "value": line.estimate.value,
            "standard_error": line.estimate.error,
            "interval": line.intervals["betting"].ends,
            "approximate_interval": line.intervals["student-t"].ends,
            "lower_bounds": {bound: found.value for bound, found in line.bounds.items()},
        }
        for name, line in lines.items()
    }


def _policy(
    asked: list[str] | str, names: tuple[str, ...], best: tuple[str, ...]
) -> IntArray | str:
    """Return a policy as the numbers of all items, the best first, or by its name."""
    if isinstance(asked, str) and asked != "best":
        return asked
    order = list(best) if asked == "best" else asked
    if sorted(order) != sorted(names):
        raise InvalidInput(
            f"A policy must name each of the {len(names)} items of the list once, got "
            f"{shown(order)}."
        )
    number = {name: index for index, name in enumerate(names)}
    return np.array([number[name] for name in order], dtype=np.int64)


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


def _rounds(
    store: Store, ranker: str, names: tuple[str, ...], after: int, exponential: bool
) -> tuple[Rounds, int]:
    """Return the rounds of the list as it is now that can be judged, and how many cannot be."""
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
    return _table(rows, len(names), exponential, _block(rows, configs)), n_skipped


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
    rows: list[tuple[Ranked, Answered]], n_items: int, exponential: bool, block: int
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
    number = np.array([ranked.round for ranked, _ in rows])
    return Rounds(seen, gains, chances, _least_chance(rows), number, block, shown_at)


def _least_chance(rows: list[tuple[Ranked, Answered]]) -> float | None:
    """Return the least chance of any item in any round whose chances count; None if not known."""
    counted = [ranked.least_chance for ranked, _ in rows if ranked.chances is not None]
    known = [chance for chance in counted if chance is not None]
    if 0.0 in known:
        raise InvalidInput(
            "A log can judge other lists only if every item had a chance to be seen in every "
            "round: leave other rounds out with `after`."
        )
    return min(known) if known and len(known) == len(counted) else None
