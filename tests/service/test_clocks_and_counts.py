"""Timers of lists, histograms of requests and what a check has read, beside the plainest count."""

import random
import re
from types import SimpleNamespace
from typing import Any

import pytest

from keyhole.service.commands import FeedbackRequest, GiveFeedback, Rank, RankRequest
from keyhole.service.log_check import LogCheck
from keyhole.service.metrics import Metrics, Spread
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.structured_logs import hide_keys
from keyhole.service.wait_clock import Waits
from tests.service.desks import answer, engine_of, rank

pytestmark = pytest.mark.interpreted


class Line:
    """A ranker whose lists wait for so many seconds."""

    def __init__(self, name, wait):
        self.name, self.waiting = name, {}
        self.config = SimpleNamespace(wait_seconds=wait)


def a_line(name, wait) -> Any:
    return Line(name, wait)


@pytest.mark.parametrize("seed", range(6))
def test_lists_expire_when_they_have_waited_and_rankers_are_looked_at_then(seed, monkeypatch):
    monkeypatch.setattr("keyhole.service.wait_clock._SPARE", 3)
    numbers, waits = random.Random(seed), Waits()
    rankers: list[Any] = [Line("a", 5.0), Line("b", 2.0), Line("c", 9.0)]
    moment, seq = 100.0, 0
    for _ in range(300):
        moment += numbers.choice([0.0, 0.5, 1.0])
        live: Any = numbers.choice(rankers)
        act = numbers.random()
        if act < 0.4:  # some lists are shown
            new = range(seq + 1, seq + 1 + numbers.randrange(1, 4))
            seq = new[-1]
            live.waiting.update({each: SimpleNamespace(since=None) for each in new})
            waits.begin(live, [*new, 10**9], moment)  # the last is of no list
        elif act < 0.6 and live.waiting:  # one is answered
            del live.waiting[numbers.choice(list(live.waiting))]
        elif act < 0.7 and live.waiting:  # one waits anew
            waits.begin(live, [numbers.choice(list(live.waiting))], moment)
        elif act < 0.75:
            live.config.wait_seconds = numbers.choice([1.0, 4.0])
            waits.look_again(live)
        looked = set(waits.due(moment))
        for live in rankers:
            old = [
                s
                for s, one in live.waiting.items()
                if moment - one.since >= live.config.wait_seconds
            ]
            assert waits.over(live, moment) == sorted(old)
            assert not old or live.name in looked
            if live.name in looked:
                for each in old:
                    del live.waiting[each]
                waits.look_again(live)
        assert list(waits.due(moment)) == []
    sizes = [len(waits._lines.get(live.name, ())) for live in rankers]
    assert all(
        size <= 2 * len(live.waiting) + 3 + 4 for size, live in zip(sizes, rankers, strict=True)
    )


def test_a_list_that_begins_to_wait_twice_at_one_moment_expires_once():
    waits, live = Waits(), a_line("a", 1.0)
    live.waiting = {7: SimpleNamespace(since=None)}
    waits.begin(live, [7, 7], 0.0)
    waits.begin(live, [7], 0.0)
    assert waits.over(live, 1.0) == [7]


def test_so_many_lists_expire_at_once(monkeypatch):
    monkeypatch.setattr("keyhole.service.wait_clock._MOST_EXPIRED", 3)
    waits, live = Waits(), a_line("a", 1.0)
    live.waiting = {seq: SimpleNamespace(since=None) for seq in (9, 8, 7, 6)}
    waits.begin(live, live.waiting, 0.0)
    assert waits.over(live, 0.99) == []
    assert waits.over(live, 1.0) == [7, 8, 9]
    assert list(waits.due(0.99)) == []
    assert list(waits.due(1.0)) == ["a"]
    assert list(waits.due(9.0)) == []  # nobody asked to be looked at again


def samples(metrics):
    """Return the numbers of a text by what they are of."""
    found = {}
    for line in metrics.text().decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def test_metrics_are_counts_and_sums_of_what_happened():
    engine = engine_of()
    for _ in range(3):
        shown = rank(engine)
    answer(engine, shown.event_id, [1.0])
    live = engine.ranker("animals")
    metrics = Metrics(lambda: [live])
    numbers = random.Random(1)
    edges = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
    times = [numbers.choice([*edges, 0.0, 20.0, numbers.random()]) for _ in range(60)]
    for number, seconds in enumerate(times):
        metrics.count("rank", 200 + number % 2, seconds)
    events = list(engine.store.events("animals"))
    for size, seconds in ((2, 0.25), (3, 0.5)):
        metrics.count_commit(events[:size], seconds)
    metrics.in_flight = 4
    found = samples(metrics)
    for odd in (0, 1):
        label = f'operation="rank",status="{200 + odd}"'
        own = times[odd::2]
        assert found[f"keyhole_requests_total{{{label}}}"] == len(own)
        assert found[f"keyhole_request_seconds_count{{{label}}}"] == len(own)
        assert found[f"keyhole_request_seconds_sum{{{label}}}"] == pytest.approx(sum(own))
        for edge in (*edges, float("inf")):
            written = "+Inf" if edge == float("inf") else str(edge)
            name = f'keyhole_request_seconds_bucket{{le="{written}",{label}}}'
            assert found[name] == sum(each <= edge for each in own), name
    assert found["keyhole_requests_in_flight"] == 4
    assert found['keyhole_events_appended_total{kind="config"}'] == 2
    assert found['keyhole_events_appended_total{kind="rank"}'] == 3
    assert (found["keyhole_commit_events_sum"], found["keyhole_commit_events_count"]) == (5, 2)
    assert (found["keyhole_commit_seconds_sum"], found["keyhole_commit_seconds_count"]) == (0.75, 2)
    for up_to, count in (("1.0", 0), ("2.0", 1), ("4.0", 2), ("256.0", 2)):
        assert found[f'keyhole_commit_events_bucket{{le="{up_to}"}}'] == count
    for name, value in (("seq", 5), ("round", 3), ("waiting", 2), ("preparing_seconds", 0)):
        assert found[f'keyhole_ranker_{name}{{ranker="animals"}}'] == value
    preparing: Any = SimpleNamespace(is_open=True, seconds=2.5)
    live.preparation = preparing
    assert samples(metrics)['keyhole_ranker_preparing_seconds{ranker="animals"}'] == 2.5
    spread = Spread((1.0, 2.0))
    for observed in (1.0, 1.5, 2.0, 2.5):
        spread.add(observed)
    assert (spread.up_to(), spread.total) == ([("1.0", 1.0), ("2.0", 3.0), ("+Inf", 4.0)], 7.0)


def test_a_check_reads_every_event_before_the_snapshots(monkeypatch):
    engine = engine_of()
    for round in range(70):
        made = engine.execute(Rank("animals", RankRequest()), round)
        told = FeedbackRequest("observed", [1.0])
        engine.execute(GiveFeedback("animals", made.event_id, told), round)
    store, said, pauses = engine.store, [], []
    lives = [LiveRanker("animals", store), LiveRanker("animals", store)]
    for live, last in zip(lives, (141, 70), strict=True):
        live.snapshot_seq, live.is_checked = last, False
    log = SimpleNamespace(info=lambda text, **told: said.append((text, told)))
    monkeypatch.setattr("keyhole.service.log_check.logger", lambda: log)
    monkeypatch.setattr(LogCheck, "_pause", lambda _, worked: pauses.append(worked))
    check: Any = LogCheck(store, [*lives, engine.ranker("animals")])
    check._thread.join(20.0)
    assert check.is_done
    assert [live.is_checked for live in lives] == [True, True]
    ((text, told),) = said
    assert (text, told["rankers"], told["events"]) == ("The log check has finished.", 2, 211)
    assert len(pauses) == 3  # after 64, 128 and 64 events
    assert check.findings() == []
    short = LiveRanker("animals", store)
    short.snapshot_seq, short.is_checked = 150, False
    check = LogCheck(store, [short])
    check.wait(20.0)
    check._thread.join(20.0)
    assert check.findings() == [
        ("animals", "Ranker 'animals' must have 150 events at least, got 141.")
    ]
    assert not short.is_checked


def test_keys_are_hidden_wherever_they_stand():
    entry = {"event": "a kh_0123abcd_x-Y_9! kh_0123abcd_z", "Cookie": "c", "n": 3, "keys": "k"}
    assert hide_keys(None, "", entry) == {
        "event": "a [hidden]! [hidden]", "Cookie": "[hidden]", "n": 3, "keys": "k",
    }  # fmt: skip
    for name in ("authorization", "cookie", "key", "token", "secret", "TOKEN"):
        assert hide_keys(None, "", {name: "x"}) == {name: "[hidden]"}
    assert re.search("hidden", str(hide_keys(None, "", {"a": "kh_0123abc_x"}))) is None
