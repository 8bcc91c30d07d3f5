"""Which commands can be decided before others are settled, and which must wait for their turn."""

import pytest

from keyhole.service.commands import (
    Activate,
    Configure,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.engine import Engine
from keyhole.service.store.memory import MemoryStore
from tests.service.asking import ANIMALS

RANK = Rank("animals", RankRequest())
NAMED = Rank("animals", RankRequest(event_id="mine"), idem="once")
CHANGE = Configure("animals", RankerRequest(items=ANIMALS[:-1], seed=1))
AT = 0


@pytest.fixture
def engine():
    made = Engine(MemoryStore())
    for name in ("animals", "plants"):
        made.execute(Configure(name, RankerRequest(items=ANIMALS, seed=1)))
    made.execute(Rank("animals", RankRequest(event_id="shown")))
    return made


def feedback(event_id="shown", relevance=1.0):
    return GiveFeedback("animals", event_id, FeedbackRequest(relevance=[relevance]))


@pytest.mark.parametrize("open_one", [RANK, NAMED, feedback()], ids=["rank", "named", "feedback"])
@pytest.mark.parametrize("whole", [CHANGE, Expire("animals", (2,))], ids=["change", "expire"])
def test_what_is_about_a_whole_ranker_waits_for_all_that_is_open(engine, open_one, whole):
    decision = engine.decide(open_one, AT)
    assert engine.decide(whole, AT) is None
    assert engine.decide(Configure("plants", RankerRequest(items=ANIMALS[:-1], seed=1)), AT)
    [(event, _)] = decision.made
    engine.store.append([event])
    engine.apply(event)
    engine.settle(decision)
    assert engine.decide(whole, AT) is not None


@pytest.mark.parametrize("whole", [CHANGE, Expire("animals", (2,))], ids=["change", "expire"])
def test_all_else_of_a_ranker_waits_for_what_is_about_the_whole(engine, whole):
    assert engine.decide(whole, AT).made
    for waiting in (RANK, NAMED, feedback(), Activate("animals", "shown"), CHANGE):
        assert engine.decide(waiting, AT) is None
    assert engine.decide(Rank("plants", RankRequest()), AT) is not None


def test_two_about_one_list_or_key_wait_for_each_other_and_others_do_not(engine):
    assert engine.decide(NAMED, AT) is not None
    assert engine.decide(feedback(), AT) is not None
    for waiting in (NAMED, Rank("animals", RankRequest(), idem="once"), feedback(relevance=0.0)):
        assert engine.decide(waiting, AT) is None
    for free in (RANK, RANK, Rank("animals", RankRequest(), idem="twice")):
        assert engine.decide(free, AT) is not None
