"""Every check of a contract passes what keeps it, and names what breaks it.

The broken ones are plain Python, so nothing is compiled for them.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole import Flips, RTopK, play, replay
from keyhole.base.errors import FeedbackTooSmall
from keyhole.checks import rankers as of_rankers
from keyhole.checks.base import a_relabelling
from keyhole.checks.measures import check_measure
from keyhole.checks.reveals import check_reveal
from keyhole.checks.worlds import check_world
from keyhole.contracts.rankers import Ranker, RankerKernel
from keyhole.contracts.reveals import RevealKernel
from keyhole.contracts.worlds import WorldKernel
from keyhole.kernels.draw import uniforms
from keyhole.measures.dcg import DCG
from keyhole.reveals.full import Full
from keyhole.reveals.top import Top

pytestmark = pytest.mark.interpreted

WORLD = Flips(5, n_relevant=2, flip=0.2)
ROUNDS = 12


class State(NamedTuple):
    sums: Any
    extra: Any


class Work(NamedTuple):
    keys: Any


def make(params, n_items, n_features=0):
    return State(np.zeros(n_items), np.zeros(1))


def scratch(params, n_items):
    return Work(np.zeros(n_items))


def rank(params, state, draw, features, out, work):
    uniforms(draw, 0, work.keys)
    work.keys[:] += state.sums
    out[:] = np.argsort(-work.keys, kind="stable")
    return False, 1.0


def update(params, state, seen, work):
    state.sums[seen.ranking[:2]] += 0.25 * seen.values[:2]


class Tally(Ranker):
    """Follow the sums of what was seen in the first two places, with some noise."""

    kernel = RankerKernel(make, scratch, rank, update)
    params = None

    @property
    def depth(self):
        return 2


def tally(**kernels):
    """Return such a ranker with other kernels."""

    class Changed(Tally):
        kernel = Tally.kernel._replace(**kernels)

    return Changed(5)


def by_python(ranker, log):
    """Replay a log without compiled code."""
    fresh = ranker.fresh(seed=log.seed, run=log.run)
    for row in range(len(log.rounds)):
        fresh.update(*log.pair(row))
    return fresh


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setattr(of_rankers, "replay", by_python)


ALONE = [
    of_rankers.check_rankings_are_valid,
    of_rankers.check_rank_leaves_state,
    of_rankers.check_work_is_scratch,
    of_rankers.check_hidden_stays_hidden,
    of_rankers.check_state_round_trip,
    of_rankers.check_late_feedback,
    of_rankers.check_items_are_exchangeable,
]


@pytest.mark.parametrize("check", ALONE)
def test_a_good_ranker_passes(check, interpreted):
    check(Tally(5), WORLD, ROUNDS)


def broken(check, sentence, ranker, world=WORLD):
    with pytest.raises(AssertionError, match=sentence):
        check(ranker, world, ROUNDS)


def repeated(params, state, draw, features, out, work):
    rank(params, state, draw, features, out, work)
    out[4] = out[0]
    return False, 1.0


def test_rankings_and_propensities():
    check = of_rankers.check_rankings_are_valid
    broken(check, "must show each item once", tally(rank=repeated))
    for chance in (0.0, -0.5, 1.0 + 1e-9):
        ranker = tally(rank=lambda *given, p=chance: (rank(*given)[0], p))
        broken(check, "must give a probability or NaN", ranker)
    for chance in (np.nan, 1e-9, 1.0):
        check(tally(rank=lambda *given, p=chance: (rank(*given)[0], p)), WORLD, ROUNDS)
    late = tally(rank=lambda *given: (repeated if given[2].round == 11 else rank)(*given))
    broken(check, "must show each item once", late)


def test_rank_is_pure():
    calls: Counter[int] = Counter()

    def counting(params, state, draw, features, out, work):
        state.extra[0] += 1.0
        return rank(params, state, draw, features, out, work)

    def moody(params, state, draw, features, out, work):
        rank(params, state, draw, features, out, work)
        calls[draw.round] += 1
        out[:] = np.roll(out, calls[draw.round] if draw.round == 20 else 0)
        return False, 1.0

    check = of_rankers.check_rank_leaves_state
    broken(check, "must leave the state untouched", tally(rank=counting))
    broken(check, "same ranking when a round is asked for again", tally(rank=moody))


def test_scratch_memory_is_scratch():
    def leftover_of_update(params, state, draw, features, out, work):
        shift = int(work.keys[0])
        rank(params, state, draw, features, out, work)
        out[:] = np.roll(out, shift)
        return False, 1.0

    def leaving(params, state, seen, work):
        work.keys[:] = 1.0

    def leftover_of_rank(params, state, seen, work):
        state.extra[0] += work.keys[0]

    check = of_rankers.check_work_is_scratch
    broken(check, "No ranking of", tally(rank=leftover_of_update, update=leaving))
    broken(check, "The state of", tally(update=leftover_of_rank))


def test_hidden_values_stay_hidden():
    def curious(params, state, seen, work):
        state.extra[0] += seen.values[2]

    broken(
        of_rankers.check_hidden_stays_hidden,
        "must not look at what is hidden",
        tally(update=curious),
    )


def test_states_hold_everything():
    counts: Counter[int] = Counter()

    def remembers(params, state, seen, work):
        update(params, state, seen, work)
        counts[id(state.sums)] += 1

    def by_memory(params, state, draw, features, out, work):
        rank(params, state, draw, features, out, work)
        out[:] = np.roll(out, counts[id(state.sums)])
        return False, 1.0

    def writes(params, state, seen, work):
        counts[id(state.sums)] += 1
        state.extra[0] = counts[id(state.sums)]

    class Careless(Tally):
        def load_state_dict(self, arrays):
            return super().load_state_dict(arrays) if "sums" in arrays else self

    check = of_rankers.check_state_round_trip
    broken(check, "must go on where it was saved", tally(rank=by_memory, update=remembers))
    broken(check, "must reach the same state", tally(update=writes))
    broken(check, "must refuse a state that is not its own", Careless(5))


def test_feedback_may_be_late(interpreted):
    last: list[Any] = []

    def noting(params, state, draw, features, out, work):
        last[:] = [draw.round]
        return rank(params, state, draw, features, out, work)

    def impatient(params, state, seen, work):
        state.extra[0] += last[0]

    def endless(params, state, seen, work):
        state.extra[0] = np.inf

    check = of_rankers.check_late_feedback
    broken(check, "to the state its log leads to", tally(rank=noting, update=impatient))
    broken(check, "Late feedback broke", tally(update=endless))


def test_items_are_exchangeable():
    def by_index(params, state, seen, work):
        state.sums[0] += 0.5

    def first_of_ties(params, state, draw, features, out, work):
        out[:] = np.argsort(-state.sums, kind="stable")
        return False, 1.0

    check = of_rankers.check_items_are_exchangeable
    broken(check, "Relabelling items must relabel the rankings", tally(update=by_index))
    broken(check, "round 0 differs", tally(rank=first_of_ties))


def test_labels_move_every_item():
    for n_items in range(2, 8):
        labels = a_relabelling(n_items)
        assert sorted(labels) == list(range(n_items))
        assert (labels != np.arange(n_items)).all()
    assert a_relabelling(1).tolist() == [0]


def test_too_little_is_refused(monkeypatch):
    class Generous(Tally):
        def update(self, impression, feedback):
            pass

    class One(Tally):
        @property
        def depth(self):
            return 1

    def refuse(*given, **more):
        assert more["reveal"].k == 1
        raise FeedbackTooSmall("no")

    check = of_rankers.check_too_little_is_refused
    monkeypatch.setattr(of_rankers, "play", refuse)
    check(Tally(5), WORLD, ROUNDS)
    broken(check, r"must refuse top\(1\): it needs 2", Generous(5))
    monkeypatch.setattr(of_rankers, "play", lambda *_, **__: None)
    broken(check, r"must refuse top\(1\): it needs 2", Tally(5))
    check(One(5), WORLD, ROUNDS)  # nothing shows less than one position


@pytest.mark.parametrize("changed", ["values", "sums", "replay", "nothing"])
def test_speeds_agree(changed, monkeypatch):
    def other_play(*given, **more):
        trace = play(*given, **more)
        if changed == "values":
            trace.logs[1].values[1] += 1.0
        if changed == "sums":
            trace.states[1]["scores"][0] += 1.0
        return trace

    def other_replay(*given):
        ranker = replay(*given)
        ranker.next_round += changed == "replay"
        return ranker

    monkeypatch.setattr(of_rankers, "play", other_play)
    monkeypatch.setattr(of_rankers, "replay", other_replay)
    ranker, world = RTopK(4, horizon=23, k=2, run=1, seed=3), Flips(4, n_relevant=2)
    sentences = {
        "values": "must show and see the same",
        "sums": "must lead to the same state",
        "replay": "Replaying the log of RTopK",
    }
    if changed == "nothing":
        of_rankers.check_speeds_agree(ranker, world, 23)
        return
    with pytest.raises(AssertionError, match=sentences[changed]):
        of_rankers.check_speeds_agree(ranker, world, 23)


# ------------------------------------------------------------------ measures


class Odd(DCG):
    """DCG, but for what ``change`` does to a value of a relevance and a ranking."""

    def __init__(self, change, only_many=False):
        super().__init__()
        self._change, self._only_many = change, only_many

    def __call__(self, relevance, ranking):
        value = super().__call__(relevance, ranking)
        return value if self._only_many else self._change(value, relevance)

    def many(self, relevance, rankings):
        values = super().many(relevance, rankings)
        return np.array([self._change(v, r) for v, r in zip(values, relevance, strict=True)])


class LinearIf(Odd):
    """One that says it is linear only for lists that are binary, or only for others."""

    def __init__(self, change, binary):
        super().__init__(change)
        self._binary = binary

    def is_linear(self, binary):
        return binary == self._binary


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (Odd(lambda v, r: v if r.any() else np.nan), "must be finite on every list"),
        (Odd(lambda v, r: np.inf if r[0] == 4.0 else v), "must be finite on every list"),
        (Odd(lambda v, _: v + 1e-9, only_many=True), "must equal one by one"),
        (Odd(lambda v, r: v + r[0]), "Relabelling items must leave DCG as it is"),
        (LinearIf(lambda v, _: v**2, True), "says it is linear but is not"),
        (LinearIf(lambda v, _: v**2, False), "says it is linear but is not"),
    ],
)
def test_measures(given, sentence):
    check_measure(Odd(lambda v, _: v), n_lists=60)
    with pytest.raises(AssertionError, match=sentence):
        check_measure(given, n_lists=60)


def test_measures_print_their_name():
    class Nameless(DCG):
        def __str__(self):
            return "a measure"

    with pytest.raises(AssertionError, match="DCG must print its name"):
        check_measure(Nameless(), n_lists=5)


# ------------------------------------------------------------------ reveals and worlds


def reveals_by(function):
    class Changed(Top):
        kernel = RevealKernel(function)

    return Changed(2)


def show(n):
    def reveal(params, draw, relevance, ranking, values):
        values[:] = np.nan
        values[:n] = relevance[ranking[:n]]

    return reveal


def changing(params, draw, relevance, ranking, values):
    show(2)(params, draw, relevance, ranking, values)
    relevance[0] = 7.0


def by_first_item(params, draw, relevance, ranking, values):
    show(2)(params, draw, relevance, ranking, values)
    values[:2] += relevance[0]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (changing, "must not change the relevance"),
        (show(1), "must show the first 2 positions"),
        (show(3), "must show the first 2 positions"),
        (by_first_item, "Relabelling items must leave what"),
    ],
)
def test_reveals(function, sentence):
    check_reveal(reveals_by(show(2)), n_lists=20)
    check_reveal(Full(), n_lists=20)
    with pytest.raises(AssertionError, match=sentence):
        check_reveal(reveals_by(function), n_lists=20)


class Crowd(Flips):
    """All items are relevant in every other round, unless something is changed."""

    def __init__(self, change=lambda *_: None):
        super().__init__(4, n_relevant=2)
        self.kernel = WorldKernel(lambda _, draw, out: self._fill(change, draw.round, out))  # type: ignore[misc]

    def _fill(self, change, t, out):
        out[:] = t % 2
        change(t, out)

    def relabelled(self, _):
        return self


def set_one(t, value):
    def change(round, out):
        if round == t:
            out[2] = value

    return change


def by_item(_, out):
    out[0] = 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (set_one(99, np.nan), "must give finite relevance"),
        (set_one(0, -1.0), "must give finite relevance that is not negative"),
        (set_one(3, 1.5), "must keep to its max_grade=1"),
        (set_one(3, 0.5), "says it is binary but gave"),
        (by_item, "Relabelling items must relabel"),
    ],
)
def test_worlds(change, sentence):
    check_world(Crowd())
    check_world(WORLD)
    with pytest.raises(AssertionError, match=sentence):
        check_world(Crowd(change))


def test_worlds_repeat_themselves():
    calls: Counter[int] = Counter()

    def moody(t, out):
        calls[t] += 1
        out[:] = calls[t] % 2  # asked once for the relevance, once more, and once relabelled

    with pytest.raises(AssertionError, match="same relevance when a round is asked for again"):
        check_world(Crowd(moody))


def test_worlds_need_not_be_binary():
    def halves(t, out):
        out[:] *= 0.5 if t == 3 else 1.0

    world = Crowd(halves)
    world.is_binary = False
    check_world(world)
    check_world(Crowd(halves), rounds=3)
    short = Crowd(halves)
    short.length = 3
    check_world(short)
