"""Rankers by name, saved, asked late and on lists that change: what single calls promise."""

import json
from typing import Any

import numpy as np
import pytest

import keyhole
from keyhole import FTPL, Feedback, Fixed, Flips, Hedge, Impression, Log, RTopK, play, replay
from keyhole.base.errors import FeedbackTooSmall, InvalidInput, UnknownName
from keyhole.contracts.lists import Query

pytestmark = pytest.mark.interpreted

NAMES = ["ant", "bee", "cat", "dog"]


def test_unknown_settings_are_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match=r"A setting of RTopK .* Did you mean 'horizon'"):
        RTopK(20, horizn=10_000)  # type: ignore[call-arg]
    with pytest.raises(UnknownName, match=r"A setting of Flips .* Did you mean 'flip'"):
        Flips(4, flipp=0.1)  # type: ignore[call-arg]


def test_what_must_be_given_is_said():
    with pytest.raises(InvalidInput, match="ranker 'rtopk' must be given `n_items`"):
        keyhole.ranker("rtopk")
    with pytest.raises(InvalidInput, match="world 'ratings' must be given `table`"):
        keyhole.world("ratings")
    with pytest.raises(InvalidInput, match="must be given `n_items`"):
        keyhole.ranker("rtopk", items=5)
    with pytest.raises(InvalidInput, match="`start` must be what an earlier call returned"):
        play(RTopK(4), Flips(4), rounds=10, start=3)  # type: ignore[arg-type]


def test_settings_are_those_that_were_given():
    """What the giver does to a list afterwards is no matter of the ranker's."""
    names, ranking = list(NAMES), np.arange(4)
    ranker = Fixed(4, items=names, ranking=ranking)
    before = ranker.spec
    names.append("eel")
    ranking[:] = ranking[::-1]
    assert ranker.spec == before
    assert ranker.fresh().best() == NAMES


def test_a_spec_is_plain_and_whole():
    ranker = keyhole.ranker("rtopk", items=NAMES, horizon=500, k=2, measure=keyhole.measure("DCG"))
    spec = ranker.spec
    assert json.loads(json.dumps(spec)) == spec
    assert spec["name"] == "rtopk"
    assert spec["version"] == keyhole.__version__
    assert {"n_items", "horizon", "k", "seed", "run", "subroutine", "eps_scale"} <= set(spec)
    assert keyhole.ranker(spec).spec == spec
    assert keyhole.ranker(spec, seed=9).seed == 9
    assert repr(ranker).startswith("RTopK(n_items=4, horizon=500, k=2, measure=")


def test_numbers_are_the_relevance_of_the_first_positions():
    rankers = [FTPL(3, seed=1, max_grade=2) for _ in range(3)]
    same: Any = ([1, 0, 2], Feedback.top(1, 0, 2), Feedback(np.array([1.0, 0.0, 2.0])))
    for ranker, feedback in zip(rankers, same, strict=True):
        ranker.update(ranker.rank(), feedback)
    assert len({tuple(ranker.state.scores) for ranker in rankers}) == 1
    one = RTopK(3, horizon=90)
    values: Any = (1, 1.0, np.float64(1.0), [1], True)
    for value in values:
        one.update(one.rank(), value)
    with pytest.raises(FeedbackTooSmall, match="FTPL needs the relevance of the first 3"):
        rankers[0].update(rankers[0].rank(), 1)


@pytest.mark.parametrize(
    ("feedback", "sentence"),
    [
        ({"ant": 1}, "feedback must be a Feedback, or the relevance"),
        ("good", "feedback must be a Feedback, or the relevance"),
        ([1, 0, 0, 0], "at most one entry per position"),
        ([], "at most one entry per position"),
        (-1, "revealed relevance must be finite and not negative"),
        (float("inf"), "revealed relevance must be finite and not negative"),
    ],
)
def test_bad_feedback_gets_a_sentence_and_changes_nothing(feedback, sentence):
    ranker = RTopK(3, horizon=90)
    before = ranker.state_dict()
    with pytest.raises(InvalidInput, match=sentence):
        ranker.update(ranker.rank(round=0), feedback)
    assert np.array_equal(before["scores"], ranker.state.scores)
    with pytest.raises(InvalidInput, match="impression must be what `rank` returned"):
        ranker.update({"ranking": [0]}, 1)  # type: ignore[arg-type]


def test_impressions_come_back_from_text():
    ranker = keyhole.ranker("contextual-rtopk", n_features=2, n_items=3, mix=0.5)
    features: Any = np.array([[0.1, 1.0], [0.2, 0.5], [0.3, 0.25]], dtype=np.float32)
    for query in (Query(3, features, ("a", "b", "c")), Query(2, features[:2])):
        shown = ranker.rank(query)
        again = Impression.from_json(shown.to_json())
        assert again.items == shown.items
        assert (again.round, again.explored, again.propensity) == (
            shown.round, shown.explored, shown.propensity,
        )  # fmt: skip
        assert again.query.features is not None
        assert again.query.features.dtype == np.float32
        assert np.array_equal(again.query.features, shown.query.features)  # type: ignore[arg-type]
    assert np.isnan(Impression.from_json(FTPL(2).rank().to_json()).propensity)
    shown_twice = json.loads(FTPL(2).rank().to_json())
    for items in (["a"], [["a"], "b"], "a", 5):
        with pytest.raises(InvalidInput, match="An impression must be text"):
            Impression.from_json(json.dumps({**shown_twice, "items": items}))
    for text in ("", "[]", "{}", '{"ranking": [0, 0], "features": null}', "null"):
        with pytest.raises(InvalidInput, match="An impression must be text"):
            Impression.from_json(text)


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (["ant", "ant"], "'ant' twice"),
        ([], "at least one name"),
        ("ant", "must be a list of names"),
        ([1.5, 2.5], "must be strings or whole numbers"),
        ([True, "ant"], "must be strings or whole numbers"),
    ],
)
def test_names_must_tell_items_apart(items, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        FTPL(3).with_items(items)
    with pytest.raises(InvalidInput, match=sentence):
        FTPL(2, items=items)


def test_names_must_be_as_many_as_items():
    with pytest.raises(InvalidInput, match="must be n_items=3 names, got 2"):
        FTPL(3, items=["ant", "bee"])


def test_items_without_names_are_called_by_their_indices():
    ranker = FTPL(3)
    shown = ranker.rank()
    assert sorted(shown.items) == [0, 1, 2]
    changed = ranker.with_items([2, 7, 0])
    changed.update(shown, [float(item == 2) for item in shown.items])
    assert changed.items == (2, 7, 0)
    assert changed.best()[0] == 2
    assert ranker.with_items([0, 1, 2]).spec == ranker.spec


def test_a_new_item_begins_in_the_middle_and_what_is_gone_is_forgotten():
    ranker = FTPL(4, items=NAMES, measure="SumLoss")
    relevance: dict[Any, float] = {"ant": 1, "bee": 0, "cat": 0, "dog": 0.5}
    for _ in range(4):
        shown = ranker.rank()
        ranker.update(shown, [relevance[name] for name in shown.items])
    changed = ranker.with_items(["dog", "eel", "bee", "ant"])
    assert changed.state.scores.tolist() == [2.0, 2.0, 0.0, 4.0]
    assert changed.next_round == ranker.next_round == 4
    assert ranker.items == tuple(NAMES)
    assert changed.with_items(NAMES).best()[0] == "ant"


def test_what_was_seen_of_an_item_that_is_gone_is_dropped():
    ranker = RTopK(4, items=NAMES, horizon=400)
    shown = ranker.rank()
    while not shown.explored:
        shown = ranker.rank()
    others = [name for name in NAMES if name != shown.items[0]]
    changed = ranker.with_items(others)
    changed.update(shown, 1)
    assert not changed.state.pending.any()
    kept = ranker.with_items(list(reversed(NAMES)))
    kept.update(shown, 1)
    assert kept.best()[0] == shown.items[0]


def test_a_fixed_ranking_keeps_its_order():
    ranker = Fixed(4, ranking=[3, 1, 0, 2], items=NAMES)
    assert ranker.best() == ["dog", "bee", "ant", "cat"]
    assert ranker.with_items(["ant", "eel", "bee", "dog"]).best() == ["dog", "bee", "ant", "eel"]


def test_lists_of_other_items_are_refused():
    ranker = FTPL(4, items=NAMES)
    with pytest.raises(InvalidInput, match="with_items gives the ranker of a list"):
        ranker.rank(Query(4, None, ("ant", "bee", "cat", "eel")))
    assert set(ranker.rank(Query(4)).items) == set(NAMES)


@pytest.mark.parametrize(
    "changed", [{"horizon": 7}, {"measure": "SumLoss"}, {"items": ["a", "b", "c"]}, {"rate": 0.5}]
)
def test_states_of_other_settings_are_refused(changed):
    ranker = FTPL(3, horizon=50)
    ranker.update(ranker.rank(), [1, 0, 0])
    other = ranker.fresh(**changed)
    with pytest.raises(InvalidInput, match=f"state must be of a ftpl with {next(iter(changed))}="):
        other.load_state_dict(ranker.state_dict())
    assert not other.state.scores.any()
    again = ranker.fresh(seed=8).load_state_dict(ranker.state_dict())
    assert again.next_round == 1


def test_games_go_on_where_they_ended():
    ranker, world = RTopK(5, horizon=300, k=2), Flips(5, n_relevant=2)
    for comparator in ("prefix", "final"):
        game: dict[str, Any] = {"measure": "DCG", "seed": 4, "runs": 2, "comparator": comparator}
        whole = play(ranker, world, rounds=300, record=True, greedy=True, **game)
        first = play(ranker, world, rounds=110, record=True, greedy=True, **game)
        both = play(ranker, world, rounds=190, record=True, greedy=True, start=first, **game)
        for run in range(2):
            again = replay(ranker, both.logs[run])
            assert np.array_equal(again.state.scores, whole.states[run]["scores"])
        for name in ("scores", "greedy", "best"):
            mine, theirs = getattr(both, name), getattr(whole, name)
            late = np.isin(whole.rounds, both.rounds) & (whole.rounds > 110)
            where = np.isin(both.rounds, whole.rounds[late])
            assert late.sum() > 50
            # Against the best of the whole game all points are multiplied at once, by BLAS.
            rounding = 1e-12 if (name, comparator) == ("best", "final") else 0.0
            np.testing.assert_allclose(mine[:, where], theirs[:, late], rtol=rounding)


def test_the_greedy_score_of_a_fixed_list():
    ranker, world, judge = RTopK(4, horizon=200), Flips(4, n_relevant=1), keyhole.measure("DCG")
    trace = play(ranker, world, rounds=200, greedy=True, n_points=None)
    by_hand, shown, greedy = ranker.fresh(), [], []
    for t in range(200):
        impression, relevance = by_hand.rank(round=t), world.relevance(t)
        shown.append(judge(relevance, impression.ranking))
        greedy.append(judge(relevance, by_hand.best()) if impression.explored else shown[-1])
        by_hand.update(impression, relevance[impression.ranking[0]])
    assert trace.scores[0] == pytest.approx(np.cumsum(shown))
    assert trace.greedy[0] == pytest.approx(np.cumsum(greedy))
    assert trace.greedy[0, -1] > trace.scores[0, -1]
    assert np.isnan(play(ranker, world, rounds=20).greedy).all()


def test_losses_of_rankings_are_means_over_where_the_lost_item_was():
    ranker = Hedge(3, items=["a", "b", "c"], measure="SumLoss")
    ranker.state.losses[:] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]  # abc acb bac bca cab cba
    shorter = ranker.with_items(["b", "a"])
    assert shorter.state.losses.tolist() == [44.0 / 3.0, 19.0 / 3.0]  # b before a, a before b
    longer = shorter.with_items(["a", "new", "b"])  # a new b, a b new, new a b, new b a, ...
    assert longer.state.losses.tolist() == [
        19 / 3, 19 / 3, 19 / 3, 44 / 3, 44 / 3, 44 / 3,
    ]  # fmt: skip


def test_a_log_is_replayed_from_a_state():
    ranker, world = FTPL(4, horizon=90), Flips(4, n_relevant=1)
    log = play(ranker, world, rounds=90, record=True).logs[0]
    halfway = replay(ranker, log.part(0, 40)).state_dict()
    there = replay(ranker, log.part(40), start=halfway)
    assert np.array_equal(there.state.scores, replay(ranker, log).state.scores)
    assert there.next_round == 90
    assert replay(ranker, log.part(0, 0), start=halfway).next_round == 40


def test_a_log_is_of_one_list_and_one_seed():
    ranker = FTPL(3, items=["a", "b", "c"])
    pairs = [(ranker.rank(), Feedback.top(1, 0, 0)) for _ in range(3)]
    log = Log.of(ranker, pairs)
    with pytest.raises(InvalidInput, match="begin another one when they change"):
        Log.of(ranker.with_items(["a", "b", "d"]), pairs)
    with pytest.raises(InvalidInput, match="must go on with the same"):
        log.followed_by(log._replace(seed=5))


def test_files_that_hold_no_ranker_get_a_sentence(tmp_path):
    ranker = FTPL(3)
    ranker.save(tmp_path / "ranker.npz")
    for name, content in (
        ("text", b"hello"),
        ("half", (tmp_path / "ranker.npz").read_bytes()[:99]),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match="must be a ranker saved by"):
            keyhole.load(tmp_path / name)
    with pytest.raises(InvalidInput, match="must be a ranker saved by"):
        keyhole.load(tmp_path / "gone.npz")


def test_classes_are_no_rankers():
    with pytest.raises(InvalidInput, match="`ranker` must be a ranker that is made"):
        play(RTopK, Flips(4), rounds=10)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="`world` must be a world that is made"):
        play(RTopK(4), Flips, rounds=10)  # type: ignore[arg-type]
