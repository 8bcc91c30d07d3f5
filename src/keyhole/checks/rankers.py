"""What every ranker must do, whatever its algorithm."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keyhole.base.errors import FeedbackTooSmall, IntArray, InvalidInput
from keyhole.checks.base import SEED, a_relabelling, is_ranking, name_of, require, same
from keyhole.contracts.lists import Feedback, Impression, read_only
from keyhole.contracts.rankers import Ranker, Seen
from keyhole.contracts.reveals import Reveal
from keyhole.contracts.worlds import World
from keyhole.game.log import Log, replay
from keyhole.game.play import play
from keyhole.kernels.draw import RelabelledDraw
from keyhole.reveals import least_reveal
from keyhole.reveals.top import Top

_WARM_UP = 30


def _reveal_for(ranker: Ranker) -> Reveal:
    """Return the reveal that shows no more than the ranker needs: the rest is NaN."""
    return least_reveal(ranker.depth, ranker.n_items)


def play_by_hand(
    ranker: Ranker, world: World, reveal: Reveal, rounds: int
) -> list[tuple[Impression, Feedback]]:
    """Play round by round through the public API and return the log."""
    log = []
    for t in range(rounds):
        impression, feedback = one_round(ranker, world, reveal, t)
        ranker.update(impression, feedback)
        log.append((impression, feedback))
    return log


def one_round(ranker: Ranker, world: World, reveal: Reveal, t: int) -> tuple[Impression, Feedback]:
    """Show one list and return what would be learnt from it."""
    where = {"seed": ranker.seed, "run": ranker.run}
    impression = ranker.rank(world.query(t, **where), round=t)
    return impression, reveal(world.relevance(t, **where), impression.ranking, round=t, **where)


def check_rankings_are_valid(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that every round shows each item once, with a probability where one is given."""
    ranker, reveal = ranker.fresh(), _reveal_for(ranker)
    for t in range(rounds):
        query = world.query(t, seed=ranker.seed, run=ranker.run)
        impression = ranker.rank(query, round=t)
        require(
            is_ranking(impression.ranking, query.n_items),
            f"{name_of(ranker)} must show each item once, got {impression.ranking.tolist()}.",
        )
        require(
            np.isnan(impression.propensity) or 0.0 < impression.propensity <= 1.0 + 1e-12,
            f"{name_of(ranker)} must give a probability or NaN, got {impression.propensity}.",
        )
        ranker.update(*one_round(ranker, world, reveal, t))


def check_rank_leaves_state(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that ``rank`` is pure: no trace in the state, the same answer when asked again."""
    ranker = ranker.fresh()
    play_by_hand(ranker, world, _reveal_for(ranker), rounds)
    before = ranker.state_dict()

    def show(t: int) -> IntArray:
        return ranker.rank(world.query(t, seed=ranker.seed, run=ranker.run), round=t).ranking

    shown = [show(t) for t in range(rounds, 2 * rounds)]
    after = ranker.state_dict()
    for arrays in (before, after):
        arrays.pop("next_round")
    require(same(before, after), f"`rank` of {name_of(ranker)} must leave the state untouched.")
    again = [show(t) for t in reversed(range(rounds, 2 * rounds))]
    require(
        all(np.array_equal(a, b) for a, b in zip(shown, reversed(again), strict=True)),
        f"`rank` of {name_of(ranker)} must give the same ranking when a round is asked for again.",
    )


def check_work_is_scratch(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that fresh scratch memory for every call changes nothing."""
    kept, renewed = ranker.fresh(), ranker.fresh()
    reveal = _reveal_for(ranker)
    for t in range(rounds):
        impressions = []
        for one in (kept, renewed):
            if one is renewed:
                one.forget_scratch()
            impression, feedback = one_round(one, world, reveal, t)
            if one is renewed:
                one.forget_scratch()
            one.update(impression, feedback)
            impressions.append(impression)
        require(
            np.array_equal(impressions[0].ranking, impressions[1].ranking),
            f"No ranking of {name_of(ranker)} may depend on the content of its scratch memory.",
        )
    require(
        same(kept.state_dict(), renewed.state_dict()),
        f"The state of {name_of(ranker)} must not depend on the content of its scratch memory.",
    )


def check_hidden_stays_hidden(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that no NaN reaches the state when only what the ranker needs is revealed."""
    try:
        play_by_hand(ranker.fresh(), world, _reveal_for(ranker), rounds)
    except InvalidInput as error:
        raise AssertionError(
            f"{name_of(ranker)} must not look at what is hidden: {error}"
        ) from None


def check_speeds_agree(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that compiled, per-round and replayed games are the same, bit for bit."""
    reveal, by_hand = _reveal_for(ranker), ranker.fresh()
    log = Log.of(by_hand, play_by_hand(by_hand, world, reveal, rounds))
    require(
        same(_compiled_state(ranker, world, reveal, log), by_hand.state_dict()),
        f"Compiled and per-round games of {name_of(ranker)} must lead to the same state.",
    )
    require(
        same(replay(ranker, log).state_dict(), by_hand.state_dict()),
        f"Replaying the log of {name_of(ranker)} must lead to the same state.",
    )


def _compiled_state(ranker: Ranker, world: World, reveal: Reveal, log: Log) -> dict[str, Any]:
    """Play the game of a log in compiled code, check what was shown, and return the state."""
    rounds = len(log.rounds)
    trace = play(
        ranker, world, reveal=reveal, rounds=rounds, seed=ranker.seed, runs=ranker.run + 1,
        measure=getattr(ranker, "measure", None), record=True,
    )  # fmt: skip
    require(
        same(trace.logs[ranker.run]._asdict(), log._asdict()),
        f"Compiled and per-round games of {name_of(ranker)} must show and see the same.",
    )
    return trace.states[ranker.run]


def check_state_round_trip(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that a saved state continues exactly where it was, and other states are refused."""
    first = ranker.fresh()
    reveal = _reveal_for(ranker)
    play_by_hand(first, world, reveal, rounds)
    second = ranker.fresh().load_state_dict(first.state_dict())
    for _ in range(rounds):
        shown = []
        for one in (first, second):
            impression, feedback = one_round(one, world, reveal, one.next_round)
            one.update(impression, feedback)
            shown.append(impression.ranking)
        require(
            np.array_equal(shown[0], shown[1]),
            f"A reloaded {name_of(ranker)} must go on where it was saved.",
        )
    require(
        same(first.state_dict(), second.state_dict()),
        f"A reloaded {name_of(ranker)} must reach the same state.",
    )
    try:
        ranker.fresh().load_state_dict({"nonsense": np.zeros(1)})
    except InvalidInput:
        return
    raise AssertionError(f"{name_of(ranker)} must refuse a state that is not its own.")


def check_late_feedback(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that delayed and shuffled feedback gives the same state as the replay of the log."""
    ranker = ranker.fresh()
    reveal = _reveal_for(ranker)
    shuffle = np.random.default_rng(SEED)
    waiting: list[tuple[Impression, Feedback]] = []
    log: list[tuple[Impression, Feedback]] = []

    def deliver(n_updates: int) -> None:
        for _ in range(n_updates):
            pair = waiting.pop(int(shuffle.integers(len(waiting))))
            try:
                ranker.update(*pair)
            except InvalidInput as error:
                raise AssertionError(f"Late feedback broke {name_of(ranker)}: {error}") from None
            log.append(pair)

    for t in range(rounds):
        waiting.append(one_round(ranker, world, reveal, t))
        deliver(int(shuffle.integers(len(waiting) + 1)) if t % 7 == 0 else 0)
    deliver(len(waiting))
    state, again = ranker.state_dict(), replay(ranker, Log.of(ranker, log)).state_dict()
    require(
        same(state, again),
        f"Late and shuffled feedback must lead {name_of(ranker)} to the state its log leads to.",
    )


def check_items_are_exchangeable(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that relabelling the items, and the draws with them, relabels the rankings.

    Lists must all be as long as the longest. Ties go to the lowest index, so a scorer of
    documents is compared only once it has weights.
    """
    labels = a_relabelling(ranker.n_items)
    new_of_old = np.argsort(labels)
    reveal = _reveal_for(ranker)
    plain, renamed = ranker.fresh(), ranker.relabelled(labels)
    first = _WARM_UP if world.n_features else 0
    play_by_hand(plain, world, reveal, first)
    if first:
        renamed.load_state_dict(plain.state_dict())
    shown = np.empty(ranker.n_items, dtype=np.int64)
    note = np.empty(renamed.kernel.note_size(renamed.params))
    work = renamed.kernel.work(renamed.params, renamed.n_items)
    for t in range(first, first + rounds):
        impression, feedback = one_round(plain, world, reveal, t)
        features = read_only(plain.features_of(impression.query)[labels])
        draw = RelabelledDraw(*plain.draw(t), labels)
        renamed.kernel.prepare(renamed.params, renamed.state, features, features[:0], work)
        explored, propensity = renamed.kernel.rank(
            renamed.params, renamed.state, draw, features, shown, work
        )
        require(
            np.array_equal(shown, new_of_old[impression.ranking]),
            f"Relabelling items must relabel the rankings of {name_of(ranker)}; round {t} differs.",
        )
        plain.update(impression, feedback)
        renamed.kernel.note(renamed.params, work, note)
        seen = Seen(draw, features, shown, explored, propensity, feedback.values, note)
        renamed.kernel.update(renamed.params, renamed.state, seen, work)


def check_too_little_is_refused(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that a reveal that shows too little is refused, in games and round by round."""
    needed = min(ranker.depth, ranker.n_items)
    if needed <= 1:
        return  # nothing shows less than one position
    less = Top(needed - 1)
    for attempt in (
        lambda: play(ranker, world, reveal=less, rounds=rounds),
        lambda: play_by_hand(ranker.fresh(), world, less, rounds),
    ):
        try:
            attempt()
        except FeedbackTooSmall:
            continue
        raise AssertionError(f"{name_of(ranker)} must refuse {less}: it needs {needed}.")


RANKER_CHECKS: tuple[Callable[[Ranker, World, int], None], ...] = (
    check_rankings_are_valid,
    check_rank_leaves_state,
    check_work_is_scratch,
    check_hidden_stays_hidden,
    check_speeds_agree,
    check_state_round_trip,
    check_late_feedback,
    check_items_are_exchangeable,
    check_too_little_is_refused,
)
