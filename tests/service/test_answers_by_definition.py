"""What feedback becomes in the log: its relevance, its truth, or a sentence that says why not."""

import hmac
from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.service.batching import drawn_by
from keyhole.service.commands import FeedbackRequest, GiveFeedback
from keyhole.service.events import Answered, body_of
from tests.service.desks import ANIMALS, answer, engine_of, rank, state_of

pytestmark = pytest.mark.interpreted


def said(k, status="observed", relevance=None, **asked):
    """Return the body that feedback on a list has in the log."""
    engine = engine_of(k=k, **{"max_grade": 2.0, **asked.pop("ranker", {})})
    shown = rank(engine)
    answer(engine, shown.event_id, relevance, status, **asked)
    last: Any = engine.store.last("animals")
    assert last.kind == "feedback"
    return body_of(last)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_feedback_is_kept_as_it_was_given(k):
    relevance = [2.0, 0.5, 1.0][:k]
    assert said(k, relevance=relevance) == Answered("observed", tuple(relevance), "pending", None)
    assert said(k, "none") == Answered("none", (0.0,) * k, "pending", None)
    assert said(k, "not_shown") == Answered("not_shown", (), "unused", None)
    with pytest.raises(
        InvalidInput, match=f"`relevance` must be {k} number{'s'[: k - 1]}, .*got {k + 1}"
    ):
        said(k, relevance=[1.0] * (k + 1))
    with pytest.raises(InvalidInput, match=f"`relevance` must be {k} number.*got 0"):
        said(k)
    with pytest.raises(InvalidInput, match=r"`relevance` must be at most max_grade=2, got 2\.5"):
        said(k, relevance=[*[0.0] * (k - 1), 2.5])
    for status in ("none", "not_shown"):
        with pytest.raises(InvalidInput, match=f"must be omitted if status is {status}"):
            said(k, status, [0.0] * k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_nothing_relevant_teaches_what_zeros_teach(k):
    states = []
    for status, relevance in (("none", None), ("observed", [0.0] * k)):
        engine = engine_of(k=k)
        for _ in range(3):
            answer(engine, rank(engine).event_id, relevance, status)
        states.append(state_of(engine))
    assert states[0] == states[1]


def test_a_ranker_without_grades_knows_those_up_to_one():
    assert said(1, relevance=[1.0], ranker={"max_grade": 1.0}).relevance == (1.0,)
    engine = engine_of()
    assert "max_grade" not in engine.ranker("animals").config.request
    shown = rank(engine)
    with pytest.raises(InvalidInput, match=r"at most max_grade=1, got 1\.5"):
        answer(engine, shown.event_id, [1.5])


def test_the_truth_is_of_every_item_and_in_simulations_alone():
    truth = {name: float(place) / 4 for place, name in enumerate(reversed(ANIMALS))}
    found = said(1, relevance=[1.0], truth=truth, ranker={"simulation": True})
    assert found.truth == (0.75, 0.5, 0.25, 0.0)
    for wrong in ({"ant": 1.0}, {**truth, "elk": 1.0}):
        with pytest.raises(InvalidInput, match="`truth` must name all of the 4 items"):
            said(1, relevance=[1.0], truth=wrong, ranker={"simulation": True})
    with pytest.raises(InvalidInput, match="`truth` must be omitted unless"):
        said(1, relevance=[1.0], truth=truth)


def test_the_same_feedback_twice_is_one_and_other_feedback_is_refused():
    engine = engine_of(k=2)
    shown = rank(engine)
    request = FeedbackRequest("observed", [1.0, 0.0])
    replies = [engine.execute(GiveFeedback("animals", shown.event_id, request)) for _ in range(3)]
    assert [(reply.learned, reply.seq, reply.created) for reply in replies] == [
        ("learned", 3, True), ("learned", 3, False), ("learned", 3, False),
    ]  # fmt: skip
    for status, relevance in (("observed", [1.0, 1.0]), ("none", None), ("not_shown", None)):
        with pytest.raises(Exception, match="has different feedback already"):
            answer(engine, shown.event_id, relevance, status)
    last: Any = engine.store.last("animals")
    assert last.seq == 3


@pytest.mark.parametrize("share", [0.25, 0.7])
def test_an_own_list_is_as_likely_as_the_share_and_the_ranker_say(share):
    engine = engine_of(k=2, mode="apprentice", apprentice_share=share)
    live, secret, n_own = engine.ranker("animals"), engine.store.secret(), 0
    for round in range(40):
        drawn = drawn_by(live.learner, live.learner.rank(live.learner.own_list, round=round))
        shown = rank(engine, baseline=["dog", "cat"])
        last: Any = engine.store.last("animals")
        ranked = body_of(last)
        text = f"coin {round} of animals".encode()
        coin = int.from_bytes(hmac.digest(secret, text, "sha256")[:7], "little") / 2.0**56
        told = (ranked.p_marginal, ranked.p_conditional, ranked.least_chance, ranked.chances)
        if coin < share:
            n_own += 1
            assert (ranked.ranking, ranked.own, ranked.teaches) == (drawn.ranking, None, True)
            known = (drawn.p_marginal, drawn.p_conditional, drawn.least_chance)
            assert told[:3] == tuple(None if one is None else share * one for one in known)
            assert told[3] == tuple(share * chance for chance in drawn.chances or ())
        else:
            assert shown.ranking == ["dog", "cat", "ant", "bee"]
            assert (ranked.own, ranked.teaches, told) == (drawn.ranking, False, (None,) * 4)
        answer(engine, shown.event_id, [float(round % 3 == 0), 0.0])
    assert 0 < n_own < 40  # but for one time in a hundred thousand: the secret is random
