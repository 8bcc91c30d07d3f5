"""Every number that a summary and the page of an event tell, computed a second time from events."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from keyhole.service.commands import FeedbackReply
from keyhole.service.engine import Engine
from keyhole.service.summary import event_page, summary
from tests.service.games import GAMES, log_of
from tests.service.played import NAME
from tests.service.references import order_of, page_of
from tests.service.summary_references import summary_of

pytestmark = pytest.mark.interpreted

START = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module", params=GAMES, ids=str)
def log(request):
    """A crowd that has played with an engine, and what its events tell."""
    return log_of(request.param)


def alike(told, wanted, path=""):
    """Hold plain data to a reference, to the last digits of a sum."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            alike(told[key], value, f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(told, list):
        assert len(told) == len(wanted), path
        for place, (one, other) in enumerate(zip(told, wanted, strict=True)):
            alike(one, other, f"{path}[{place}]")
    elif isinstance(wanted, float):
        assert told == pytest.approx(wanted, rel=1e-9, abs=1e-9), path
    else:
        assert told == wanted, path


def test_every_number_of_a_summary(log):
    crowd, history = log
    alike(summary(crowd.engine.ranker(NAME)), summary_of(history))


def test_a_log_read_again_tells_the_same(log):
    engine = log[0].engine
    assert summary(Engine(engine.store).ranker(NAME)) == summary(engine.ranker(NAME))


def test_every_number_of_the_page_of_an_event(log):
    crowd, history = log
    for event_id, one in history.shown.items():
        alike(event_page(crowd.engine.ranker(NAME), event_id), page_of(one), event_id)
        assert order_of(one) in (None, one.order)
        least = one.likely["least_chance"]
        assert one.ranked.least_chance == (None if least is None else pytest.approx(least))


def test_every_number_of_the_replies(log):
    crowd, history = log
    for event_id, one in history.shown.items():
        told, page = crowd.ranked[event_id], page_of(one)
        policy = {name: page[name] for name in ("mode", "explored", "p_marginal", "p_conditional")}
        alike(msgspec.to_builtins(told.policy), policy, event_id)
        assert (told.ranking, told.k) == (page["ranking"], page["k"])
        assert told.model_seq == one.event.seq - 1
        due = START + timedelta(milliseconds=one.event.at + 1_000.0 * one.config.wait_seconds)
        assert told.feedback_by == (
            None if one.ranked.deferred else due.isoformat(timespec="milliseconds")
        )
        if one.said is not None:
            assert crowd.told[event_id] == FeedbackReply(one.learned, one.said.seq, True)
    live = crowd.engine.ranker(NAME)
    waiting = sum(one.fate == "waiting" for one in history.rounds)
    told = (history.seq, len(history.shown), waiting)
    assert (live.state().seq, live.state().round, live.state().waiting) == told
    reply = live.reply()
    assert (reply.seq, reply.round, reply.waiting, reply.version) == (*told, history.version)
