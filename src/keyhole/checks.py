"""Contract checks: what every ranker, measure, reveal and world must do.

They ship with the package and run over every row of every table in our own tests; run them
over a ranker of your own in the same way::

    from keyhole.checks import check_ranker
    check_ranker(MyRanker(4, horizon=300))

A check raises AssertionError with a sentence that says what broke.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from keyhole.contracts import (
    Feedback,
    Impression,
    Measure,
    Ranker,
    Reveal,
    World,
    measure_work,
)
from keyhole.draw import REVEAL_STREAM, WORLD_STREAM, Draw, RelabelledDraw, stream_of
from keyhole.errors import FeedbackTooSmall, FloatArray, IntArray, InvalidInput
from keyhole.game import play
from keyhole.learn import learn
from keyhole.log import Log, replay
from keyhole.reveals import Full, Top
from keyhole.worlds import Flips

_SEED = 11
_WARM_UP = 30


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def _name(thing: object) -> str:
    return type(thing).__name__


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(one[key], other[key], equal_nan=True) for key in one
    )


def _labels(n_items: int) -> IntArray:
    """Return a relabelling without fixed points."""
    return np.roll(np.arange(n_items), 1)


def _reveal_for(ranker: Ranker) -> Reveal:
    """Return the reveal that shows no more than the ranker needs: the rest is NaN."""
    return Full() if ranker.depth >= ranker.n_items else Top(max(ranker.depth, 1))


def _is_ranking(ranking: IntArray, n_items: int) -> bool:
    return bool(np.array_equal(np.sort(ranking), np.arange(n_items)))


# --------------------------------------------------------------------------- rankers


def play_by_hand(
    ranker: Ranker, world: World, reveal: Reveal, rounds: int
) -> list[tuple[Impression, Feedback]]:
    """Play round by round through the public API and return the log."""
    log = []
    for t in range(rounds):
        impression, feedback = _one_round(ranker, world, reveal, t)
        ranker.update(impression, feedback)
        log.append((impression, feedback))
    return log


def _one_round(ranker: Ranker, world: World, reveal: Reveal, t: int) -> tuple[Impression, Feedback]:
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
        _require(
            _is_ranking(impression.ranking, query.n_items),
            f"{_name(ranker)} must show each item once, got {impression.ranking.tolist()}.",
        )
        ranker.update(*_one_round(ranker, world, reveal, t))
        _require(
            np.isnan(impression.propensity) or 0.0 < impression.propensity <= 1.0 + 1e-12,
            f"{_name(ranker)} must give a probability or NaN, got {impression.propensity}.",
        )


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
    _require(_same(before, after), f"`rank` of {_name(ranker)} must leave the state untouched.")
    again = [show(t) for t in reversed(range(rounds, 2 * rounds))]
    _require(
        all(np.array_equal(a, b) for a, b in zip(shown, reversed(again), strict=True)),
        f"`rank` of {_name(ranker)} must give the same ranking when a round is asked for again.",
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
            impression, feedback = _one_round(one, world, reveal, t)
            if one is renewed:
                one.forget_scratch()
            one.update(impression, feedback)
            impressions.append(impression)
        _require(
            np.array_equal(impressions[0].ranking, impressions[1].ranking),
            f"No ranking of {_name(ranker)} may depend on the content of its scratch memory.",
        )
    _require(
        _same(kept.state_dict(), renewed.state_dict()),
        f"The state of {_name(ranker)} must not depend on the content of its scratch memory.",
    )


def check_hidden_stays_hidden(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that no NaN reaches the state when only what the ranker needs is revealed."""
    ranker = ranker.fresh()
    play_by_hand(ranker, world, _reveal_for(ranker), rounds)
    for name, array in ranker.state_dict().items():
        _require(
            bool(np.isfinite(array).all()),
            f"`{name}` of the state of {_name(ranker)} must be finite: a hidden value got in.",
        )


def check_speeds_agree(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that compiled, per-round and replayed games are the same, bit for bit."""
    reveal, by_hand = _reveal_for(ranker), ranker.fresh()
    log = Log.of(by_hand, play_by_hand(by_hand, world, reveal, rounds))
    state = {**_compiled_state(ranker, world, reveal, log), "next_round": np.array(rounds)}
    _require(
        _same(state, by_hand.state_dict()),
        f"Compiled and per-round games of {_name(ranker)} must lead to the same state.",
    )
    _require(
        _same(replay(ranker, log).state_dict(), by_hand.state_dict()),
        f"Replaying the log of {_name(ranker)} must lead to the same state.",
    )


def _compiled_state(ranker: Ranker, world: World, reveal: Reveal, log: Log) -> dict[str, Any]:
    """Play the game of a log in compiled code, check what was shown, and return the state."""
    rounds = len(log.rounds)
    if world.n_features:
        return learn(ranker, world, reveal=reveal, rounds=rounds, seed=ranker.seed).state
    trace = play(
        ranker, world, reveal=reveal, rounds=rounds, seed=ranker.seed, runs=ranker.run + 1,
        measure=getattr(ranker, "measure", "DCG"), record=True,
    )  # fmt: skip
    _require(
        _same(trace.logs[ranker.run]._asdict(), log._asdict()),
        f"Compiled and per-round games of {_name(ranker)} must show and see the same.",
    )
    return trace.states[ranker.run]


def check_state_round_trip(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that a saved state continues exactly where it was, and that misfits are refused."""
    first = ranker.fresh()
    reveal = _reveal_for(ranker)
    play_by_hand(first, world, reveal, rounds)
    second = ranker.fresh().load_state_dict(first.state_dict())
    for _ in range(rounds):
        shown = []
        for one in (first, second):
            impression, feedback = _one_round(one, world, reveal, one.next_round)
            one.update(impression, feedback)
            shown.append(impression.ranking)
        _require(
            np.array_equal(shown[0], shown[1]),
            f"A reloaded {_name(ranker)} must go on where it was saved.",
        )
    _require(
        _same(first.state_dict(), second.state_dict()),
        f"A reloaded {_name(ranker)} must reach the same state.",
    )
    try:
        ranker.fresh().load_state_dict({"nonsense": np.zeros(1)})
    except InvalidInput:
        return
    raise AssertionError(f"{_name(ranker)} must refuse a state that is not its own.")


def check_late_feedback(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that delayed and shuffled feedback gives the state that the log's order gives."""
    ranker = ranker.fresh()
    reveal = _reveal_for(ranker)
    shuffle = np.random.default_rng(_SEED)
    waiting: list[tuple[Impression, Feedback]] = []
    log: list[tuple[Impression, Feedback]] = []

    def deliver(n_updates: int) -> None:
        for _ in range(n_updates):
            pair = waiting.pop(int(shuffle.integers(len(waiting))))
            ranker.update(*pair)
            log.append(pair)

    for t in range(rounds):
        waiting.append(_one_round(ranker, world, reveal, t))
        deliver(int(shuffle.integers(len(waiting) + 1)) if t % 7 == 0 else 0)
    deliver(len(waiting))
    state, again = ranker.state_dict(), replay(ranker, Log.of(ranker, log)).state_dict()
    _require(
        _same(state, again),
        f"Late and shuffled feedback must lead {_name(ranker)} to the state its log leads to.",
    )
    for array in state.values():
        _require(bool(np.isfinite(array).all()), f"Late feedback broke {_name(ranker)}.")


def check_items_are_exchangeable(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that relabelling the items, and the draws with them, relabels the rankings.

    Lists must all be as long as the longest. Ties go to the lowest index, so a scorer of
    documents is compared only once it has weights.
    """
    labels = _labels(ranker.n_items)
    new_of_old = np.argsort(labels)
    reveal = _reveal_for(ranker)
    plain, renamed = ranker.fresh(), ranker.relabelled(labels)
    first = _WARM_UP if world.n_features else 0
    play_by_hand(plain, world, reveal, first)
    if first:
        renamed.load_state_dict(plain.state_dict())
    shown = np.empty(ranker.n_items, dtype=np.int64)
    work = renamed.kernel.work(renamed.params, renamed.n_items)
    for t in range(first, first + rounds):
        impression, feedback = _one_round(plain, world, reveal, t)
        features = np.ascontiguousarray(plain.features_of(impression.query)[labels])
        draw = RelabelledDraw(*plain.draw(t), labels)
        renamed.kernel.prepare(renamed.params, renamed.state, features, features[:0], work)
        explored, propensity = renamed.kernel.rank(
            renamed.params, renamed.state, draw, features, shown, work
        )
        _require(
            np.array_equal(shown, new_of_old[impression.ranking]),
            f"Relabelling items must relabel the rankings of {_name(ranker)}; round {t} differs.",
        )
        plain.update(impression, feedback)
        renamed.kernel.update(
            renamed.params, renamed.state, draw, features, shown, explored, propensity,
            feedback.values, work,
        )  # fmt: skip


def check_too_little_is_refused(ranker: Ranker, world: World, rounds: int) -> None:
    """Check that a reveal that shows too little is refused, in games and round by round."""
    needed = min(ranker.depth, ranker.n_items)
    if needed <= 1:
        return  # nothing shows less than one position
    less = Top(needed - 1)
    for attempt in (
        lambda: (learn if world.n_features else play)(ranker, world, reveal=less, rounds=rounds),
        lambda: play_by_hand(ranker.fresh(), world, less, rounds),
    ):
        try:
            attempt()
        except FeedbackTooSmall:
            continue
        raise AssertionError(f"{_name(ranker)} must refuse {less}: it needs {needed}.")


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


def check_ranker(ranker: Ranker, world: World | None = None, rounds: int = 120) -> None:
    """Run every check over a ranker, by default on a crowd with flips."""
    if world is None:
        world = Flips(ranker.n_items, n_relevant=max(1, ranker.n_items // 3))
    for check in RANKER_CHECKS:
        check(ranker, world, rounds)


# --------------------------------------------------------------------------- measures


def check_measure(measure: Measure, n_items: int = 6, n_lists: int = 200) -> None:
    """Check one measure on random lists: finite, batch equals single, items exchangeable."""
    lists = np.random.default_rng(_SEED)
    top = 4.0 if measure.max_grade >= 4.0 else measure.max_grade
    relevance = lists.integers(0, int(top) + 1, size=(n_lists, n_items)).astype(np.float64)
    relevance[0] = 0.0
    rankings = lists.permuted(np.tile(np.arange(n_items), (n_lists, 1)), axis=1)
    values = measure.many(relevance, rankings)
    _require(bool(np.isfinite(values).all()), f"{measure.label} must be finite on every list.")
    single = [measure(r, p) for r, p in zip(relevance, rankings, strict=True)]
    _require(
        np.array_equal(values, single), f"{measure.label} of many lists must equal one by one."
    )
    labels = _labels(n_items)
    renamed = measure.many(relevance[:, labels], np.argsort(labels)[rankings])
    _require(
        np.array_equal(values, renamed), f"Relabelling items must leave {measure.label} as it is."
    )
    binary = (relevance > 0).astype(np.float64)
    if measure.is_linear(True):
        _check_linear(measure, binary, rankings, binary_kernel=True)
    if measure.is_linear(False):
        _check_linear(measure, relevance, rankings, binary_kernel=False)
    _require(measure.label in str(measure), f"{measure.label} must print its name.")


def _check_linear(
    measure: Measure, relevance: FloatArray, rankings: IntArray, *, binary_kernel: bool
) -> None:
    n_items = relevance.shape[1]
    prepare = measure.kernel_for(binary_kernel).prepare
    params, work, gains = measure.params(n_items), measure_work(n_items), np.empty(n_items)
    for r, ranking in zip(relevance, rankings, strict=True):
        offset, norm = prepare(params, r, gains, work)
        linear = (params.weights @ gains[ranking] + offset) / norm
        _require(
            bool(np.isclose(linear, measure(r, ranking), rtol=1e-12, atol=1e-12)),
            f"{measure.label} says it is linear but is not on {r.tolist()}, {ranking.tolist()}.",
        )


# --------------------------------------------------------------------------- reveals


def check_reveal(reveal: Reveal, n_items: int = 6, n_lists: int = 200) -> None:
    """Check one reveal: shows what it says, hides the rest, depends on no item's index."""
    lists = np.random.default_rng(_SEED)
    depth = reveal.depth(n_items)
    labels = _labels(n_items)
    for t in range(n_lists):
        relevance = lists.integers(0, 3, size=n_items).astype(np.float64)
        ranking = lists.permutation(n_items)
        before = relevance.copy()
        values = reveal(relevance, ranking, round=t).values
        _require(np.array_equal(before, relevance), f"{reveal} must not change the relevance.")
        _require(
            bool(np.isfinite(values[:depth]).all() and np.isnan(values[depth:]).all()),
            f"{reveal} must show the first {depth} positions and hide the others as NaN.",
        )
        draw = RelabelledDraw(0, stream_of(REVEAL_STREAM, 0), t, labels)
        renamed = np.empty(n_items)
        new_ranking = np.argsort(labels)[ranking]
        reveal.kernel.reveal(reveal.params, draw, relevance[labels], new_ranking, renamed)
        _require(
            np.array_equal(values, renamed, equal_nan=True),
            f"Relabelling items must leave what {reveal} shows as it is.",
        )


# --------------------------------------------------------------------------- worlds


def check_world(world: World, rounds: int = 100) -> None:
    """Check one world: valid relevance, pure draws, items exchangeable."""
    labels = _labels(world.n_items)
    renamed_world = world.relabelled(labels)
    rounds = min(rounds, world.length or rounds)
    for t in range(rounds):
        relevance = world.relevance(t, seed=_SEED)
        _require(
            bool(np.isfinite(relevance).all() and (relevance >= 0.0).all()),
            f"{_name(world)} must give finite relevance that is not negative.",
        )
        _require(
            float(relevance.max()) <= world.max_grade,
            f"{_name(world)} must keep to its max_grade={world.max_grade:g}.",
        )
        _require(
            not world.is_binary or bool(np.isin(relevance, (0.0, 1.0)).all()),
            f"{_name(world)} says it is binary but gave {relevance.tolist()}.",
        )
        _require(
            np.array_equal(relevance, world.relevance(t, seed=_SEED)),
            f"{_name(world)} must give the same relevance when a round is asked for again.",
        )
        draw = RelabelledDraw(*Draw(_SEED, stream_of(WORLD_STREAM, 0), t), labels)
        renamed = np.empty(world.n_items)
        renamed_world.kernel.relevance(renamed_world.params, draw, renamed)
        _require(
            np.array_equal(renamed, relevance[labels]),
            f"Relabelling items must relabel the relevance that {_name(world)} gives.",
        )
