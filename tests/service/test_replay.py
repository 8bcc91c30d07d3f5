"""A log that is not what was written is found out, and where."""

import msgspec
import pytest

from keyhole.service.events import Event, body_bytes, body_of, link_of
from keyhole.service.replay import check, check_ranker
from tests.service.desks import answer, configure, engine_of, rank


@pytest.fixture
def engine():
    made = engine_of()
    for _ in range(5):
        answer(made, rank(made).event_id, [1.0])
    return made


def log_of(engine) -> list[Event]:
    return engine.store._events["animals"]


def relinked(log):
    """Make every link of a log right again: a forger who knows how."""
    link = bytes(16)
    for place, event in enumerate(log):
        log[place] = msgspec.structs.replace(event, link=link_of(link, event))
        link = log[place].link


def test_a_whole_log_has_no_problems(engine):
    told = []
    configure(engine, "others")
    found = list(check(engine.store, on_progress=lambda name, n: told.append((name, n))))
    assert [(one.ranker, one.n_events, one.seq, one.problems) for one in found] == [
        ("animals", 11, 11, ()),
        ("others", 1, 1, ()),
    ]
    assert found[0].sha256 == engine.ranker("animals").sha256()
    assert told == []


def test_progress_is_told_every_thousand_events():
    engine, told = engine_of(), []
    for _ in range(2_100):
        rank(engine)
    check_ranker(engine.store, "animals", on_progress=lambda name, n: told.append((name, n)))
    assert told == [("animals", 1_000), ("animals", 2_000)]


def test_an_event_that_is_gone_is_missed(engine):
    del log_of(engine)[4]
    found = check_ranker(engine.store, "animals")
    assert found.problems == ("Ranker 'animals': event 5 is missing: 6 follows 4.",)
    assert found.sha256 == ""


@pytest.mark.parametrize("change", [{"at": 7}, {"idem": "x"}, {"key": "other"}, {"body": b"x"}])
def test_an_event_that_was_changed_is_noticed(engine, change):
    log = log_of(engine)
    log[4] = msgspec.structs.replace(log[4], **change)
    (problem,) = check_ranker(engine.store, "animals").problems
    assert problem.startswith("Ranker 'animals': event 5 does not match its hash link")


def test_a_change_by_one_who_forges_the_links_shows_in_the_snapshot(engine):
    engine.store.put_snapshot(engine.ranker("animals").snapshot())
    log = log_of(engine)
    answered = body_of(log[4])
    body = body_bytes(msgspec.structs.replace(answered, relevance=(0.0,)))
    log[4] = msgspec.structs.replace(log[4], body=body)
    relinked(log)
    (problem,) = check_ranker(engine.store, "animals").problems
    assert "the snapshot after event 11 does not match the replayed log" in problem


def test_no_two_events_are_linked_alike(engine):
    event = log_of(engine)[4]
    changes: list[dict[str, object]] = [
        {}, {"key": None}, {"key": "None"}, {"key": ""}, {"idem": "None"}, {"idem": ""},
        {"ranker": "animal"}, {"seq": 50}, {"kind": "rank"}, {"at": 0}, {"body": b""},
    ]  # fmt: skip
    made = {link_of(bytes(16), msgspec.structs.replace(event, **change)) for change in changes}
    assert len(made) == len(changes)
    assert link_of(b"1" * 16, event) not in made


def test_an_event_that_cannot_be_is_named(engine):
    log = log_of(engine)
    log[4] = msgspec.structs.replace(log[4], key="nobody")
    relinked(log)
    (problem,) = check_ranker(engine.store, "animals").problems
    assert "event 5 (feedback) cannot be replayed" in problem


def test_a_snapshot_after_the_end_says_that_the_end_is_gone(engine):
    engine.store.put_snapshot(engine.ranker("animals").snapshot())
    del log_of(engine)[-1]
    assert check_ranker(engine.store, "animals").problems == (
        "Ranker 'animals': there is a snapshot after event 11, but the log ends at 10.",
    )
