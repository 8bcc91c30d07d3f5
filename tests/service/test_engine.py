"""Commands become events, events become rankers: what each of them does, and what it refuses."""

import base64
from itertools import count as count_from
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.rankers import ranker
from keyhole.service.commands import (
    Activate,
    Configure,
    Document,
    Expire,
    FeedbackReply,
    FeedbackRequest,
    GiveFeedback,
    GiveMany,
    Packed,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.errors import (
    ConflictingRequest,
    KeyReused,
    NoSuchResource,
    NotLearnable,
    StaleVersion,
)
from keyhole.service.events import body_of
from keyhole.service.replay import check_ranker
from keyhole.service.store.memory import MemoryStore
from tests.service.desks import ANIMALS, answer, configure, engine_of, rank, state_of


def ranked_of(engine, shown):
    return body_of(engine.store.find("animals", shown.event_id, "rank"))


def kinds(engine, name="animals"):
    return [event.kind for event in engine.store.events(name)]


# --------------------------------------------------------------------------- rank and feedback


def test_a_ranker_learns_as_the_library_does():
    engine = engine_of(items=ANIMALS, seed=5)
    alone = ranker("keystone", items=ANIMALS, seed=5)
    for round in range(40):
        reply = rank(engine)
        shown = alone.rank()
        assert reply.ranking == shown.items
        assert reply.policy.p_marginal == shown.propensity
        relevance = float(reply.ranking[0] == "cat")
        assert answer(engine, reply.event_id, [relevance]).learned == "learned"
        alone.update(shown, relevance)
        assert engine.ranker("animals").round == round + 1
    for name, array in alone.state._asdict().items():
        assert (getattr(engine.ranker("animals").learner.state, name) == array).all(), name
    assert engine.ranker("animals").learner.best()[0] == "cat"


def test_lists_ranked_before_any_feedback_are_of_rounds_that_follow():
    engine, alone = engine_of(seed=2), ranker("keystone", items=ANIMALS, seed=2)
    replies = [rank(engine) for _ in range(5)]
    assert [reply.ranking for reply in replies] == [alone.rank().items for _ in range(5)]
    assert len({reply.event_id for reply in replies}) == 5


def test_feedback_counts_once():
    engine = engine_of()
    shown = rank(engine)
    first = answer(engine, shown.event_id, [1.0])
    state = state_of(engine)
    again = answer(engine, shown.event_id, [1.0])
    assert (first.created, again.created) == (True, False)
    assert again.seq == first.seq
    with pytest.raises(ConflictingRequest, match="has different feedback already"):
        answer(engine, shown.event_id, [0.0])
    with pytest.raises(ConflictingRequest):
        answer(engine, shown.event_id, status="not_shown")
    assert state_of(engine) == state
    assert kinds(engine) == ["config", "rank", "feedback"]


def test_nothing_liked_counts_as_zeros_and_nothing_shown_as_nothing():
    learnt, zeros, void = engine_of(), engine_of(), engine_of()
    for engine, given in (
        (learnt, {"relevance": [0.0]}),
        (zeros, {"status": "none"}),
        (void, {"status": "not_shown"}),
    ):
        answer(engine, rank(engine).event_id, **given)
    states = [dict(e.ranker("animals").learner.state._asdict()) for e in (learnt, zeros, void)]
    assert all((states[0][name] == states[1][name]).all() for name in states[0])
    assert states[2]["n"].sum() == 0.0 < states[0]["n"].sum()
    counted = void.ranker("animals").tally
    assert (counted.not_shown, counted.observed, counted.none) == (1, 0, 0)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"relevance": [0.5, 0.5]}, "must be 1 number, one for each"),
        ({"relevance": []}, "must be 1 number"),
        ({}, "must be 1 number"),
        ({"relevance": [1.5]}, "at most max_grade=1, got 1.5"),
        ({"relevance": [1.0], "status": "none"}, "omitted if status is none"),
        ({"relevance": [1.0], "truth": {"ant": 1.0}}, "unless the ranker has `simulation`"),
    ],
)
def test_feedback_that_cannot_be_is_refused_and_leaves_nothing(given, match):
    engine = engine_of()
    shown = rank(engine)
    state = state_of(engine)
    with pytest.raises(InvalidInput, match=match):
        answer(engine, shown.event_id, **given)
    assert state_of(engine) == state
    assert kinds(engine) == ["config", "rank"]
    assert answer(engine, shown.event_id, [1.0]).created


def test_what_does_not_exist_is_said_so():
    engine = engine_of()
    with pytest.raises(NoSuchResource, match="no ranker 'plants'"):
        rank(engine, "plants")
    with pytest.raises(NoSuchResource, match="no event 'guess' of ranker"):
        answer(engine, "guess", [1.0])
    configure(engine, "others")
    mine = rank(engine)
    with pytest.raises(NoSuchResource):
        answer(engine, mine.event_id, [1.0], name="others")


# --------------------------------------------------------------------------- waiting


def test_feedback_on_many_lists_is_that_on_each_of_them():
    ones, many = engine_of(), engine_of()
    shown = [[rank(each).event_id for each in (ones, many)] for _ in range(6)]
    given = [[0.0], [1.0], [2.0], [1.0], [0.0, 1.0], [0.0]]
    told: list[Any] = []
    for (event_id, _), relevance in zip(shown, given, strict=True):
        try:
            told.append(answer(ones, event_id, relevance))
        except InvalidInput as error:
            told.append(error)
    answers = {
        event_id: FeedbackRequest(relevance=relevance)
        for (_, event_id), relevance in zip(shown, given, strict=True)
    }
    replies = many.execute(GiveMany("animals", answers))
    assert [str(each) for each in replies] == [str(each) for each in told]
    assert [type(each) for each in replies].count(InvalidInput) == 2
    assert state_of(many) == state_of(ones)
    again = many.execute(GiveMany("animals", answers))
    assert [each.created for each in again if isinstance(each, FeedbackReply)] == [False] * 4


def test_feedback_on_many_lists_is_decided_as_a_whole_or_not_at_all(monkeypatch):
    engine = engine_of()
    ids = [rank(engine).event_id for _ in range(3)]
    answers = {one: FeedbackRequest(relevance=[1.0]) for one in ids}
    live, count = engine.ranker("animals"), count_from(1)
    real = live.ranked

    def ranked(*given):
        if next(count) == 3:
            raise OSError("a fault")
        return real(*given)

    monkeypatch.setattr(live, "ranked", ranked)
    with pytest.raises(OSError, match="a fault"):
        engine.execute(GiveMany("animals", answers))
    assert live.seq == 4
    assert [each.seq for each in engine.execute(GiveMany("animals", answers))] == [5, 6, 7]


def test_feedback_after_its_time_is_kept_and_not_learnt_from():
    engine = engine_of()
    shown = rank(engine)
    seq = engine.ranker("animals").seq_of[shown.event_id]
    engine.execute(Expire("animals", (seq,)))
    state = engine.ranker("animals").learner.state_dict()
    late = answer(engine, shown.event_id, [1.0])
    assert late.learned == "late"
    assert all(
        (state[n] == a).all() for n, a in engine.ranker("animals").learner.state_dict().items()
    )
    assert not answer(engine, shown.event_id, [1.0]).created
    engine.execute(Expire("animals", (seq, 999)))  # what no longer waits is not expired again
    assert kinds(engine) == ["config", "rank", "expire", "feedback"]
    tally = engine.ranker("animals").tally
    assert (tally.expired, tally.late, tally.observed) == (1, 1, 0)


def test_what_is_missing_may_count_as_something():
    engine, zeros = engine_of(missing=0.0), engine_of()
    seq = engine.ranker("animals").seq_of
    engine.execute(Expire("animals", (seq[rank(engine).event_id],)))
    answer(zeros, rank(zeros).event_id, [0.0])
    ours, theirs = (e.ranker("animals").learner.state._asdict() for e in (engine, zeros))
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_a_deferred_list_waits_from_its_activation_on():
    engine = engine_of(missing=0.0)
    shown = rank(engine, deferred=True)
    assert shown.feedback_by is None
    live = engine.ranker("animals")
    seq = live.seq_of[shown.event_id]
    assert live.waiting[seq].deferred
    for _ in range(2):
        engine.execute(Activate("animals", shown.event_id))
    assert not live.waiting[seq].deferred
    assert kinds(engine) == ["config", "rank", "activate"]
    other = rank(engine, deferred=True)
    engine.execute(Expire("animals", (live.seq_of[other.event_id],)))
    assert live.learner.state.n.sum() == 0.0  # what was not shown is not missing either
    with pytest.raises(ConflictingRequest, match="no longer be activated"):
        engine.execute(Activate("animals", other.event_id))
    assert answer(engine, other.event_id, [1.0]).learned == "late"  # says nothing of when
    with pytest.raises(ConflictingRequest, match="no longer be activated"):
        engine.execute(Activate("animals", other.event_id))
    third = rank(engine, deferred=True)
    assert answer(engine, third.event_id, [1.0]).learned == "learned"  # so it was shown
    engine.execute(Activate("animals", third.event_id))
    with pytest.raises(NoSuchResource):
        engine.execute(Activate("animals", "guess"))


# --------------------------------------------------------------------------- repeats


def test_an_idempotency_key_is_answered_alike():
    engine = engine_of()
    first = rank(engine, idem="abc", exclude=["ant"])
    answer(engine, first.event_id, [1.0])
    assert rank(engine, idem="abc", exclude=["ant"]) == first
    assert kinds(engine).count("rank") == 1
    with pytest.raises(KeyReused, match="belongs to another request"):
        rank(engine, idem="abc")
    configure(engine, "others")
    assert rank(engine, "others", idem="abc").event_id != first.event_id


def test_an_event_id_of_the_callers_own():
    engine = engine_of()
    first = rank(engine, event_id="visit-7")
    assert first.event_id == "visit-7"
    assert rank(engine, event_id="visit-7") == first
    with pytest.raises(ConflictingRequest, match="belongs to another request"):
        rank(engine, event_id="visit-7", deferred=True)


# --------------------------------------------------------------------------- configuring


def test_a_ranker_is_created_changed_and_left_alone():
    engine = engine_of(wait_seconds=60.0)
    reply = configure(engine, wait_seconds=60.0)
    assert (reply.created, reply.version) == (False, 1)
    assert kinds(engine) == ["config"]  # nothing has changed
    changed = configure(engine, wait_seconds=30.0)
    assert (changed.version, changed.request.wait_seconds) == (2, 30.0)
    with pytest.raises(ConflictingRequest, match="`measure` of a ranker cannot change"):
        configure(engine, measure="SumLoss")
    with pytest.raises(ConflictingRequest, match="`k` of a ranker"):
        configure(engine, k=2)


def test_the_seed_may_be_left_out_of_a_change():
    engine = engine_of()
    changed = configure(engine, wait_seconds=5.0, seed=None)
    assert changed.request.seed == 1
    with pytest.raises(ConflictingRequest, match="`seed`"):
        configure(engine, seed=2)


def test_a_version_that_is_no_longer_is_refused():
    from keyhole.service.commands import Configure, RankerRequest

    engine = engine_of()
    asked = RankerRequest(items=ANIMALS, wait_seconds=9.0, seed=1)
    for version in (2, 7):
        with pytest.raises(StaleVersion, match="must be"):
            engine.execute(Configure("animals", asked, if_match=version))
    with pytest.raises(StaleVersion, match="does not exist"):
        engine.execute(Configure("plants", asked, if_match=1))
    assert engine.execute(Configure("animals", asked, if_match=1)).version == 2


def test_items_come_and_go_by_name():
    engine = engine_of()
    early = rank(engine)
    for _ in range(30):
        shown = rank(engine)
        answer(engine, shown.event_id, [float(shown.ranking[0] == "dog")])
    configure(engine, items=["dog", "eel", "ant"])
    assert sorted(rank(engine).ranking) == ["ant", "dog", "eel"]
    assert engine.ranker("animals").learner.best()[0] == "dog"
    assert answer(engine, early.event_id, [1.0]).learned == "learned"  # shown before the change
    with pytest.raises(InvalidInput):
        configure(engine, items=["ant", "ant", "bee"])
    again = Engine(engine.store)
    assert state_of(again) == state_of(engine)


@pytest.mark.parametrize(
    ("asked", "error", "match"),
    [
        ({"items": ANIMALS, "n_features": 3}, InvalidInput, "either `items`.* got both"),
        ({"items": None, "n_features": None}, InvalidInput, "got neither"),
        ({"ranker": "recall"}, InvalidInput, "one of a fixed list"),
        ({"n_features": 3, "ranker": "keystone"}, InvalidInput, "lists that come with"),
        ({"ranker": "keyston"}, UnknownName, "Did you mean 'keystone'"),
        ({"ranker": "os:system"}, UnknownName, "ranker must be one of"),
        ({"settings": {"scale": 2}}, UnknownName, "A setting of Keystone"),
        ({"settings": {"k": 2}}, InvalidInput, "`k` belongs beside `settings`"),
        ({"k": 5}, InvalidInput, "`k`"),
        ({"missing": 2.0}, InvalidInput, "`missing` must be at most max_grade=1"),
        ({"measure": "DGC"}, UnknownName, "Did you mean"),
        ({"name": "a.json"}, InvalidInput, "must not end in .json"),
    ],
)
def test_a_ranker_that_cannot_be_is_refused(asked, error, match):
    engine = Engine(engine_of().store)
    with pytest.raises(error, match=match):
        configure(engine, **{"name": "other", **asked})
    assert engine.store.rankers() == ["animals"]


def test_what_feedback_cannot_teach_is_told_at_the_door():
    engine = engine_of()
    with pytest.raises(NotLearnable, match="cannot be learnt from the relevance of the top 1") as e:
        configure(engine, "hopeless", measure="NDCG")
    assert e.value.verdict["class"] == "hopeless"
    assert "DCG is learnable at T^(2/3) with the same feedback." in str(e.value.verdict["advice"])
    assert e.value.verdict["certificate"]
    reply = configure(engine, "hopeless", measure="NDCG", accept_linear_regret=True)
    assert reply.verdict["class"] == "hopeless"
    shown = rank(engine, "hopeless")
    assert answer(engine, shown.event_id, [1.0], name="hopeless").learned == "learned"
    assert "certificate" not in reply.verdict


# --------------------------------------------------------------------------- modes


def test_a_frozen_ranker_shows_its_best_and_learns_nothing():
    engine = engine_of()
    for _ in range(20):
        shown = rank(engine)
        answer(engine, shown.event_id, [float(shown.ranking[0] == "cat")])
    configure(engine, mode="frozen")
    before = engine.ranker("animals").learner.state_dict()
    best = engine.ranker("animals").learner.best()
    for _ in range(5):
        shown = rank(engine)
        assert (shown.ranking, shown.policy.p_marginal) == (best, 1.0)
        assert answer(engine, shown.event_id, [0.0]).learned == "unused"
    after = engine.ranker("animals").learner.state_dict()
    assert all((before[name] == after[name]).all() for name in before if name != "next_round")


def test_an_apprentice_shows_the_callers_list():
    engine = engine_of(mode="apprentice")
    learned = set()
    for round in range(40):
        turned = ANIMALS[round % 4 :] + ANIMALS[: round % 4]
        shown = rank(engine, baseline=turned)
        assert shown.ranking == turned
        learned.add(answer(engine, shown.event_id, [float(turned[0] == "bee")]).learned)
    assert learned == {"learned", "unused"}
    assert rank(engine).ranking == ANIMALS
    assert rank(engine, baseline=["dog"]).ranking == ["dog", "ant", "bee", "cat"]
    for wrong in (["eel"], ["ant", "ant"]):
        with pytest.raises(InvalidInput, match="`baseline` must name"):
            rank(engine, baseline=wrong)
    with pytest.raises(InvalidInput, match="`baseline` must be omitted in mode online"):
        rank(engine_of(), baseline=ANIMALS)


def test_an_apprentice_says_when_it_would_do_better():
    from keyhole.service.summary import summary

    engine = engine_of(mode="apprentice")
    rng = np.random.default_rng(0)
    for round in range(400):
        turned = ANIMALS[round % 4 :] + ANIMALS[: round % 4]
        shown = rank(engine, baseline=turned)
        liked = rng.random() < {"ant": 0.2, "bee": 0.9, "cat": 0.2, "dog": 0.1}[turned[0]]
        answer(engine, shown.event_id, [float(liked)])
    said = summary(engine.ranker("animals"))["apprentice"]
    assert said["better"]
    assert said["difference"]["low"] > 0.3
    assert said["baseline"]["n"] == 400
    constant = engine_of(mode="apprentice")
    for _ in range(200):
        answer(constant, rank(constant).event_id, [float(rng.random() < 0.5)])
    assert not summary(constant.ranker("animals"))["apprentice"]["better"]


def test_the_worth_of_an_apprentice_is_a_mean_over_what_is_revealed():
    from keyhole.service.summary import summary

    engine = engine_of(mode="apprentice", k=2)
    for round in range(200):
        turned = ANIMALS[round % 4 :] + ANIMALS[: round % 4]
        shown = rank(engine, baseline=turned)
        answer(engine, shown.event_id, [float(name in ("bee", "dog")) for name in turned[:2]])
    said = summary(engine.ranker("animals"))["apprentice"]
    assert said["baseline"]["value"] == 0.5
    assert said["own"]["value"] == np.mean(
        [name in ("bee", "dog") for name in engine.ranker("animals").learner.best()[:2]]
    )


def test_an_apprentice_may_show_its_own_list_in_a_share_of_rounds():
    engine = engine_of(mode="apprentice", apprentice_share=0.25)
    own = 0
    for _ in range(400):
        shown = rank(engine, baseline=ANIMALS)
        ranked = ranked_of(engine, shown)
        assert ranked.teaches == (ranked.own is None)
        own += ranked.own is None
        if ranked.own is None:
            assert ranked.p_marginal == 0.25 * engine_chance(engine, ranked)
        answer(engine, shown.event_id, [0.0])
    assert abs(own - 100) < 4.0 * np.sqrt(400 * 0.25 * 0.75)


def engine_chance(engine, ranked):
    live = engine.ranker("animals")
    return live.learner.chances(live.lesson(ranked, (0.0,))[0])[-1]


# --------------------------------------------------------------------------- lists of requests


def documents(engine, names, rows, **asked):
    return rank(engine, "queries", items=[Document(name) for name in names], features=rows, **asked)


def test_lists_come_with_requests():
    engine = engine_of()
    configure(engine, "queries", n_features=2, max_items=4)
    rng = np.random.default_rng(0)
    for _ in range(60):
        names = [str(number) for number in rng.choice(9, 3, replace=False)]
        rows = [[float(name), 1.0] for name in names]
        shown = documents(engine, names, rows)
        assert sorted(shown.ranking) == sorted(names)
        good = float(shown.ranking[0] in ("1", "2"))
        answer(engine, shown.event_id, [good], name="queries")
    assert (
        documents(engine, ["5", "1", "8"], [[5.0, 1.0], [1.0, 1.0], [8.0, 1.0]]).ranking[0] == "1"
    )
    assert check_ranker(engine.store, "queries").problems == ()
    assert Engine(engine.store).ranker("queries").sha256() == state_of(engine, "queries")


def test_packed_features_are_the_same_list():
    engine, packed = engine_of(), engine_of()
    rows = np.array([[0.5, 1.0], [2.0, 0.25]], dtype="<f4")
    for one in (engine, packed):
        configure(one, "queries", n_features=2)
    first = documents(engine, ["a", "b"], rows.tolist())
    text = base64.b64encode(rows.tobytes()).decode()
    other = documents(packed, ["a", "b"], Packed((2, 2), text))
    assert first.ranking == other.ranking
    for one, shown in ((engine, first), (packed, other)):
        answer(one, shown.event_id, [1.0], name="queries")
    ours, theirs = (e.ranker("queries").learner.state._asdict() for e in (engine, packed))
    assert all((ours[name] == theirs[name]).all() for name in ours)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({}, "`features` must be given"),
        ({"features": [[1.0]]}, "rows of 2 numbers"),
        ({"features": [[1.0, 2.0], [1.0]]}, "rows of equal length"),
        ({"features": [[1.0, 2.0]], "items": [Document("a"), Document("b")]}, "2 rows of 2"),
        ({"features": [[1.0, 2.0]] * 2, "items": [Document("a")] * 2}, "different ids"),
        ({"features": Packed((1, 2), "AAAA")}, "must be 8 bytes"),
        ({"features": Packed((1, 2), "!!")}, "must be base64"),
        ({"features": Packed((1, 2), base64.b64encode(b"\xff" * 8).decode())}, "finite"),
        ({"features": [[1.0, 2.0]] * 200}, "at most"),
    ],
)
def test_a_list_that_cannot_be_ranked_is_refused(asked, match):
    engine = engine_of()
    configure(engine, "queries", n_features=2)
    with pytest.raises(InvalidInput, match=match):
        rank(engine, "queries", **asked)
    assert kinds(engine, "queries") == ["config"]


def test_a_fixed_list_takes_no_other():
    with pytest.raises(InvalidInput, match="omitted for a fixed list"):
        rank(engine_of(), features=[[1.0]])


def test_items_are_excluded():
    engine = engine_of(k=2)
    for _ in range(30):
        shown = rank(engine, exclude=["bee", "cat"])
        assert sorted(shown.ranking) == ["ant", "dog"]
        event = ranked_of(engine, shown)
        learned = answer(engine, shown.event_id, [1.0, 0.0]).learned
        assert learned == ("learned" if event.teaches else "unused")
    with pytest.raises(InvalidInput, match="at least k=2"):
        rank(engine, exclude=["ant", "bee", "cat"])
    with pytest.raises(InvalidInput, match="`exclude` must name items"):
        rank(engine, exclude=["eel"])


# --------------------------------------------------------------------------- what is left behind


def test_numbers_too_large_to_learn_from_are_refused_alike_in_a_replay():
    engine = engine_of()
    configure(engine, "queries", n_features=2, ranker="contextual-rtopk")
    huge = 1e300
    for value in (1.0, huge, 2.0):
        shown = documents(engine, ["a", "b"], [[value, 1.0], [1.0, -value]])
        answer(engine, shown.event_id, [1.0], name="queries")
    checked = check_ranker(engine.store, "queries")
    assert (checked.problems, checked.sha256) == ((), state_of(engine, "queries"))
    assert engine.ranker("queries").tally.refused == 1


def test_snapshots_hold_what_the_log_says():
    engine = engine_of()
    waiting = rank(engine)
    for _ in range(10):
        answer(engine, rank(engine).event_id, [1.0])
    engine.store.put_snapshot(engine.ranker("animals").snapshot())
    answer(engine, rank(engine, deferred=True).event_id, [0.0])
    again = Engine(engine.store)
    assert state_of(again) == state_of(engine)
    assert again.ranker("animals").tally == engine.ranker("animals").tally
    for one in (engine, again):
        assert waiting.event_id in one.ranker("animals").seq_of
    shown, other = rank(engine), engine.ranker("animals").learner.best()
    assert sorted(shown.ranking) == sorted(other)


def test_a_snapshot_that_does_not_hold_is_passed_over():
    import msgspec

    engine = engine_of()
    answer(engine, rank(engine).event_id, [1.0])
    good = engine.ranker("animals").snapshot()
    for bad in (
        msgspec.structs.replace(good, sha256="0" * 64),
        msgspec.structs.replace(good, body=good.body[: len(good.body) // 2]),
    ):
        engine.store.put_snapshot(bad)
        assert check_ranker(engine.store, "animals").problems == (
            "Ranker 'animals': the snapshot after event 3 does not match the replayed log.",
        )
        assert state_of(Engine(engine.store)) == state_of(engine)
        assert engine.store.snapshots("animals") == []


def test_a_newer_library_writes_down_the_state_it_takes_over(monkeypatch):
    from keyhole.service import engine as engines, ranker_state

    engine = engine_of()
    for _ in range(5):
        answer(engine, rank(engine).event_id, [1.0])
    known = engine.ranker("animals").learner.state_dict()
    monkeypatch.setattr(engines, "__version__", "0.2.0")
    monkeypatch.setattr(ranker_state, "__version__", "0.1.0")
    newer = Engine(engine.store)
    assert kinds(newer)[-1] == "rebase"
    assert all(
        (known[name] == array).all()
        for name, array in newer.ranker("animals").learner.state_dict().items()
        if name not in ("spec", "next_round")
    )
    assert kinds(Engine(engine.store)).count("rebase") == 1
    assert check_ranker(engine.store, "animals").problems == ()


def test_a_list_never_gets_shorter_than_what_is_revealed_of_it():
    engine = engine_of(k=3)
    with pytest.raises(InvalidInput, match="`items` must be at least k=3, got 2"):
        configure(engine, k=3, items=["ant", "bee"])
    assert configure(engine, k=3, items=["ant", "bee", "cat"]).version == 2
    configure(engine, "queries", n_features=2)
    assert configure(engine, "queries", n_features=2, wait_seconds=3.0).version == 2
    with pytest.raises(ConflictingRequest, match="`n_features` of a ranker cannot change"):
        configure(engine, "queries", items=ANIMALS)


def test_feedback_that_the_ranker_cannot_learn_from_is_refused_before_there_is_any():
    """In the log it would be replayed at every start, and raise there."""
    engine = Engine(MemoryStore())
    lists: Any = {"n_features": 2, "max_items": 3, "ranker": "listnet"}
    with pytest.raises(InvalidInput, match="`k` must be at least 3, for listnet learns"):
        engine.execute(Configure("r", RankerRequest(**lists, k=2)))
    with pytest.raises(InvalidInput, match="`k` must be at least 4, for ftpl learns"):
        engine.execute(Configure("r", RankerRequest(items=list("abcd"), ranker="ftpl", k=3)))
    assert not engine.rankers
    engine.execute(Configure("r", RankerRequest(**lists, k=3)))
    documents = [Document("a"), Document("b"), Document("c")]
    rows = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    shown = engine.execute(Rank("r", RankRequest(items=documents, features=rows)))
    seen = FeedbackRequest("observed", [1.0, 0.0, 1.0])
    engine.execute(GiveFeedback("r", shown.event_id, seen))
    replayed = Engine(engine.store).rankers["r"].learner.state_dict()
    for name, array in engine.rankers["r"].learner.state_dict().items():
        assert (replayed[name] == array).all()


# --------------------------------------------------------------------------- what became of it


def test_a_list_says_what_becomes_of_it_and_then_what_did():
    from keyhole.service.summary import event_page

    engine = engine_of()
    live = engine.ranker("animals")

    def told(event_id):
        page = event_page(live, event_id)
        return page["outcome"], (page["feedback"] or {}).get("learned"), page["why"][-1]

    shown = rank(engine)
    assert told(shown.event_id) == ("waiting", None, "Waiting for feedback.")
    said = answer(engine, shown.event_id, [1.0]).learned
    assert said == answer(engine, shown.event_id, [1.0]).learned == "learned"  # and when repeated
    assert told(shown.event_id)[:2] == ("learned", "learned")
    unseen = rank(engine)
    assert answer(engine, unseen.event_id, status="not_shown").learned == "unused"
    assert told(unseen.event_id)[:2] == ("unused", "unused")
    later = rank(engine, deferred=True)
    assert told(later.event_id)[0] == "deferred"
    lost = rank(engine)
    engine.execute(Expire("animals", (live.seq_of[lost.event_id],)))
    assert told(lost.event_id)[:2] == ("expired", None)
    assert answer(engine, lost.event_id, [1.0]).learned == "late"
    assert told(lost.event_id)[:2] == ("late", "late")


@pytest.mark.parametrize(("room", "n_given_up"), [(99, 1), (100, 2), (250, 3)])
def test_a_hundredth_of_the_room_is_made_at_a_time(room, n_given_up):
    """As one more is shown than may wait, the oldest go, and with it as many more."""
    engine = Engine(MemoryStore(), most_waiting=room)
    configure(engine)
    seqs = []
    for _ in range(room + 1):
        rank(engine)
        live = engine.ranker("animals")
        seqs.append(max(live.waiting))
    (given_up,) = (body_of(e) for e in engine.store.events("animals") if e.kind == "expire")
    assert list(given_up.seqs) == seqs[:n_given_up]
    assert len(live.waiting) == room + 1 - n_given_up


def test_late_feedback_that_is_not_settled_makes_no_room():
    engine = Engine(MemoryStore(), most_waiting=2)
    configure(engine)
    first = rank(engine)
    for _ in range(2):
        rank(engine)
    late = GiveFeedback("animals", first.event_id, FeedbackRequest(relevance=[1.0]))
    decided = engine.decide(late, 1)
    assert decided is not None
    assert [body_of(event).learned for event, _ in decided.made] == ["late"]
    shown = engine.decide(Rank("animals", RankRequest()), 2)
    assert shown is not None
    assert [event.kind for event, _ in shown.made] == ["expire", "rank"]
