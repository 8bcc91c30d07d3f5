"""Logs, states, impressions and features that make no sense are refused and leave no trace."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keyhole
from keyhole import FTPL, Flips, Log, RTopK, play, replay
from keyhole.base.errors import InvalidInput, KeyholeError, UnknownName
from keyhole.base.files import write_arrays
from keyhole.checks.attacks import check_nothing_breaks_the_state
from keyhole.contracts.lists import Feedback, Impression, Query
from keyhole.contracts.rankers import Ranker
from keyhole.kernels.sorting import sort_descending, sort_work
from keyhole.rankers.fixed.forecaster import Forecaster
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.kernel_perceptron import KernelSLAMPerceptron
from keyhole.worlds.queries import Queries

pytestmark = pytest.mark.interpreted

RANKER = RTopK(4, horizon=60, k=2)
HALVES: Any = np.full(240, 0.5)
NOTHING: Any = None
LOG = play(RANKER, Flips(4), rounds=60, record=True).logs[0]


def changed(name, index, value):
    """Return the log with one entry of one array changed."""
    array = getattr(LOG, name).copy()
    array[index] = value
    return LOG._replace(**{name: array})


BROKEN_LOGS: dict[str, Any] = {
    "no item": (changed("rankings", 5, 10**9), "1000000000, which is no item"),
    "far below": (changed("rankings", 0, -5_000_000), "-5000000, which is no item"),
    "twice": (changed("rankings", slice(0, 4), 1), "item 1 4 times"),
    "late in the log": (changed("rankings", 170, 9), "ranking 42 of a log .* 9, which is no item"),
    "empty list": (changed("starts", 2, 4), "every list has an item"),
    "no round": (changed("rounds", 3, 2**62), "`rounds` of a log must be between 0 and"),
    "early round": (changed("rounds", 3, -1), "`rounds` of a log must be between 0 and"),
    "infinite": (changed("values", 0, np.inf), "must be finite and not negative"),
    "negative": (changed("values", 0, -1.0), "must be finite and not negative"),
    "too much": (changed("values", 0, 5.0), "no relevance above max_grade=1 of RTopK, got 5"),
    "impossible": (changed("propensities", 0, 0.0), "must be positive, or NaN"),
    "never": (changed("propensities", 0, np.inf), "must be positive, or NaN"),
    "overlapping": (changed("starts", 2, 1), "`starts` of a log must rise from 0"),
    "late start": (changed("starts", 0, 1), "`starts` of a log must rise from 0"),
    "long list": (changed("starts", -1, 10**9), "must have the 1000000000 entries"),
    "short": (LOG._replace(explored=LOG.explored[:-1]), "`explored` of a log of 60 rounds"),
    "cut": (LOG._replace(values=LOG.values[:-4]), "`values` of a log must have the 240"),
    "nested": (LOG._replace(rankings=LOG.rankings.reshape(-1, 4)), "must be a flat array"),
    "floats": (LOG._replace(rankings=HALVES), "must be a flat array of int64"),
    "features": (LOG._replace(features=np.full((240, 1), np.nan)), "must be finite"),
    "flat features": (LOG._replace(features=np.zeros(240)), "must be rows of floats"),
    "seed": (LOG._replace(seed=-1), "`seed` must be an integer"),
    "run": (LOG._replace(run=NOTHING), "`run` must be an integer"),
}


@pytest.mark.parametrize("case", BROKEN_LOGS)
def test_broken_logs_are_refused(case, tmp_path):
    log, sentence = BROKEN_LOGS[case]
    with pytest.raises(InvalidInput, match=sentence):
        replay(RANKER, log)
    if case not in ("too much", "run"):  # one depends on the ranker, one cannot be written
        log.save(tmp_path / "log.npz")
        with pytest.raises(InvalidInput, match=r"log\.npz must be a log saved by Log\.save"):
            Log.load(tmp_path / "log.npz")


def test_good_logs_are_not():
    LOG.part(0, 0)
    assert replay(RANKER, LOG.part(0, 0)).next_round == 0
    short = LOG._replace(rankings=LOG.rankings.astype(np.int32), rounds=LOG.rounds.astype("u4"))
    want = replay(RANKER, LOG).state_dict()
    assert all(np.array_equal(a, want[k]) for k, a in replay(RANKER, short).state_dict().items())


def test_no_list_of_a_log_may_be_longer_than_the_ranker_has_room_for():
    features = np.random.default_rng(0).random((9, 2))
    pairs: list[tuple[Impression, Feedback]] = []
    for first, end in ((0, 2), (2, 5), (5, 9)):  # shorter, as long, longer
        n_items = end - first
        query = Query(n_items, features[first:end])
        shown = Impression(len(pairs), query, np.arange(n_items), False, 1.0)
        pairs.append((shown, Feedback(np.zeros(n_items))))
    assert replay(Descent(2, 4), Log.of(Descent(2, 4), pairs)).next_round == 3
    with pytest.raises(InvalidInput, match="`n_items` of the query must be at most 3, got 4"):
        replay(Descent(2, 3), Log.of(Descent(2, 4), pairs))


def test_asking_for_the_best_changes_nothing():
    for ranker in (FTPL(3), Descent(2, 3)):
        before = ranker.state_dict()
        ranker.best(Query(3, np.zeros((3, ranker.n_features))))
        assert all(np.array_equal(ranker.state_dict()[name], before[name]) for name in before)


def test_lists_that_change_leave_the_state_finite_too():
    ranker = RTopK(2, items=["a", "b"], horizon=40, n_blocks=5)
    learnt = np.full(2, 0.8e308)
    ranker.load_state_dict({**ranker.state_dict(), "scores": learnt, "pending": learnt})
    shown = next(s for s in (ranker.rank(round=t) for t in range(8, 40)) if s.explored)
    other = ranker.with_items(["a", "b", "c"])
    before = other.state_dict()
    with pytest.raises(InvalidInput, match="must leave the state of RTopK finite"):
        other.update(shown, 1)  # a block begins: the newcomer has the mean of twice as much
    assert all(np.array_equal(other.state_dict()[name], before[name]) for name in before)
    ranker.update(shown, 1)
    with pytest.raises(InvalidInput, match="items must leave the state of RTopK finite"):
        ranker.with_items(["a", "b", "c"])


def test_states_do_not_leave_the_numbers():
    ranker: Ranker = RTopK(2, horizon=40, n_blocks=20)
    learnt = np.full(2, 1.5e308)
    ranker.load_state_dict({**ranker.state_dict(), "scores": learnt, "pending": learnt})
    shown = next(s for s in (ranker.rank(round=t) for t in range(2, 40)) if s.explored)
    before = ranker.state_dict()
    with pytest.raises(InvalidInput, match="must leave the state of RTopK finite"):
        ranker.update(shown, 1)  # a block begins: the pending one is added up
    assert all(np.array_equal(ranker.state_dict()[name], before[name]) for name in before)
    log = Log.of(ranker, [(shown, Feedback.top(1))])
    with pytest.raises(InvalidInput, match="The log must leave the state of RTopK finite"):
        replay(ranker, log, start=before)


@pytest.mark.compiled
def test_games_do_not_leave_the_numbers():
    features = 1e200 * np.random.default_rng(0).random((300, 3))
    world = Queries(features, np.arange(300) % 2, [0, 100, 200, 300])
    ranker = Descent(3, 100, surrogate="squared", step="fixed", rate=1.0)
    with pytest.raises(InvalidInput, match="by round 50 it is not"):
        play(ranker, world, rounds=50)
    shown = ranker.rank(world.query(0))
    ranker.update(shown, np.arange(100) % 2)  # scores of 1e400 come next
    shown = ranker.rank(world.query(0))
    with pytest.raises(InvalidInput, match="must leave the state of Descent finite"):
        ranker.update(shown, np.arange(100) % 2)
    assert np.isfinite(ranker.state.weights).all()


@pytest.mark.parametrize("n_items", [5, 40, 200])
def test_keys_that_are_no_numbers_are_put_somewhere(n_items):
    numbers = np.random.default_rng(0)
    for share in (0.01, 0.5, 1.0):
        for wrong in (np.nan, np.inf, -np.inf):
            keys = numbers.random(n_items)
            keys[numbers.random(n_items) < share] = wrong
            order = np.full(n_items, -1)
            sort_descending(keys, order, sort_work(n_items))
            assert sorted(order.tolist()) == list(range(n_items))
            if not np.isnan(wrong):
                assert order.tolist() == np.argsort(-keys, kind="stable").tolist()


@pytest.mark.compiled
def test_a_ring_of_support_vectors_is_undone_where_it_begins_again():
    ranker = KernelSLAMPerceptron(2, 3, similarity="rbf", budget=5, rate=1.0)
    numbers = np.random.default_rng(1)
    refused = 0
    for t in range(40):
        scale = 1e200 if t % 5 == 4 else 1.0
        shown = ranker.rank(Query(3, scale * numbers.random((3, 2))))
        before = ranker.state_dict()
        try:
            ranker.update(shown, np.array([0.0, 1.0, 0.0])[shown.ranking])
        except InvalidInput:
            refused += 1
            after = ranker.state_dict()
            assert all(np.array_equal(before[name], after[name]) for name in after)
        assert all(np.isfinite(array).all() for array in ranker.state)
    assert 0 < refused < 40
    assert ranker.state.added[0] > 5


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"weights": np.array([np.nan, 0.0])}, "`weights` of the state must be finite, got nan"),
        ({"squares": np.array([-1.0, 0.0])}, "`squares` of the state must be sums of squares"),
        ({"next_round": np.zeros(2)}, "`next_round` of the state must be one number"),
        ({"next_round": np.array(-1)}, "`round` must be an integer"),
        ({"spec": np.array("[" * 100_000)}, "`spec` of the state must be the spec of a ranker"),
        ({"weights": [[1.0], [2.0, 3.0]]}, "`weights` of the state must be an array of numbers"),
    ],
)
def test_states_of_files_are_checked(state, sentence):
    ranker = Descent(2, 3)
    before = ranker.state_dict()
    with pytest.raises(InvalidInput, match=sentence):
        ranker.load_state_dict({**before, **state})
    assert all(np.array_equal(ranker.state_dict()[name], before[name]) for name in before)
    with pytest.raises(InvalidInput, match="must hold weights, squares, next_round, spec, got 7"):
        ranker.load_state_dict(7)  # type: ignore[arg-type]


def test_counts_of_a_state_are_counts():
    ranker = RTopK(3, horizon=30)
    for wrong in (-1, 2**60):
        with pytest.raises(InvalidInput, match="`clock` of the state must be counts of 0 to"):
            ranker.load_state_dict({**ranker.state_dict(), "clock": np.array([0, wrong])})


@pytest.mark.parametrize(
    "features",
    [[[1.0], [2.0, 3.0]], "abc", [[1j], [2j]], [["a"], ["b"]], [1.0, 2.0], [[np.nan], [0.0]]],
)
def test_lists_need_features_that_are_numbers(features):
    with pytest.raises(InvalidInput, match="`features` of a query must be"):
        Query(2, features)


def test_relevance_above_the_largest_is_refused():
    ranker = Forecaster(3, measure="SumLoss", max_grade=2)
    shown = ranker.rank()
    with pytest.raises(InvalidInput, match="must be at most max_grade=2, got 3 at index 0"):
        ranker.update(shown, 3)
    wrong: Any = (0.0, -0.1, np.inf, "likely", None, 10**400, np.array([0.5, 0.5]))
    for propensity in wrong:
        with pytest.raises(InvalidInput, match="propensity of the impression must be a positive"):
            ranker.update(replace(shown, propensity=propensity), 1)
    with pytest.raises(InvalidInput, match="must leave the state of Forecaster finite"):
        ranker.update(replace(shown, propensity=np.nan), 1)


@pytest.mark.parametrize("feedback", [1j, np.array([1j, 0j]), [1 + 0j]])
def test_imaginary_relevance_is_refused(feedback):
    ranker = RTopK(3, horizon=9)
    with pytest.raises(InvalidInput, match="feedback must be a Feedback, or the relevance"):
        ranker.update(ranker.rank(), feedback)


TEXT = RANKER.rank().to_json()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "[" * 100_000, TEXT[:-5], TEXT.replace("false", '"no"'),
        TEXT.replace('"explored": ', '"explored": 2, "x": '), TEXT.replace("[3", "[1e400"),
        TEXT.replace('"round": 0', f'"round": {"9" * 5000}'),
        TEXT.replace('"propensity": ', f'"propensity": 1{"0" * 400}, "x": '),
        TEXT.replace('"items": null', '"items": 7'), b"\xff\xfe", None,
    ],
)  # fmt: skip
def test_text_that_is_no_impression_is_refused(text):
    with pytest.raises(InvalidInput, match=r"text that Impression.to_json wrote"):
        Impression.from_json(text)


class Gullible(Descent):
    """A learner that takes over whatever it is given."""

    def load_state_dict(self, arrays):
        for name, own in self.state._asdict().items():
            if name in arrays and np.shape(arrays[name]) == own.shape:
                own[...] = arrays[name]
        return self


@pytest.mark.compiled
def test_the_attack_sees_a_ranker_that_can_be_broken(monkeypatch):
    features = np.random.default_rng(0).random((40, 2))
    world = Queries(features, np.arange(40) % 2, np.arange(0, 41, 4))
    check_nothing_breaks_the_state(Descent(2, 4), world, 10)
    with pytest.raises(AssertionError, match="must be finite whatever it is given"):
        check_nothing_breaks_the_state(Gullible(2, 4), world, 10)
    monkeypatch.setattr("keyhole.contracts.rankers.are_finite", lambda _: True)
    with pytest.raises((AssertionError, KeyholeError)):
        check_nothing_breaks_the_state(Descent(2, 4), world, 10)


@pytest.mark.parametrize("where", ["spec", "measure", "nested"])
def test_no_file_runs_code_unless_it_is_trusted(where, tmp_path, monkeypatch):
    """A file of arrays is data: the class or the measure that its spec names is not imported."""
    monkeypatch.chdir(tmp_path)
    ranker = FTPL(3)
    arrays, spec = ranker.state_dict(), ranker.spec
    Path("ours.py").write_text(
        "from pathlib import Path\nfrom keyhole import FTPL\nfrom keyhole.measures.dcg import DCG\n"
        "Path('was_run').touch()\nclass Own(FTPL): pass\nclass Gain(DCG): pass\n"
    )
    changes: dict[str, Any] = {
        "spec": {"name": "ours.py:Own"},
        "measure": {"measure": "ours.py:Gain"},
        "nested": {"measure": {"name": "ours.py:Gain"}},
    }
    forged = {**spec, **changes[where]}
    write_arrays("ranker.npz", {**arrays, "spec": np.array(json.dumps(forged))})
    with pytest.raises(InvalidInput, match="is code of somebody's own"):
        keyhole.load("ranker.npz")
    assert not Path("was_run").exists()
    if where == "spec":
        assert type(keyhole.load("ranker.npz", trusted=True)).__name__ == "Own"
        assert Path("was_run").exists()
        assert type(keyhole.load("ranker.npz")).__name__ == "Own"  # it is imported now
        del sys.modules["ours.py"]


def test_no_setting_is_called_self():
    made: Any = ((keyhole.reveal, "top"), (keyhole.ranker, "random"), (keyhole.world, "flips"))
    for make, name in made:
        settings = {} if name == "top" else {"n_items": 4}
        for wrong in ("self", "given"):
            with pytest.raises(UnknownName, match=rf"A setting of .* must be .* got '{wrong}'"):
                make(name, **settings, **{wrong: 1})


def test_arrays_are_shown_on_one_line():
    with pytest.raises(InvalidInput) as caught:
        RTopK(np.zeros((3, 3)))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
