"""Numbers in words, lines and pages of the dashboard, each by its definition on many cases."""

import itertools
import math
import random
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.service.commands import (
    Configure,
    FeedbackRequest,
    GiveFeedback,
    Rank,
    RankerRequest,
    RankRequest,
)
from keyhole.service.dashboard.dates import Days, _start, days_of, rounds_of, seqs_of
from keyhole.service.dashboard.figures import ceiling, chart, extent, polyline, smoothed, thinned
from keyhole.service.dashboard.formatting import duration, moment, percent, signed, value
from keyhole.service.dashboard.log import log_page
from keyhole.service.engine import Engine
from keyhole.service.events import Event
from keyhole.service.store.memory import MemoryStore
from tests.service.desks import ANIMALS

pytestmark = pytest.mark.interpreted


def some(n, share=0.7):
    """Return numbers, of which some are not known."""
    numbers = random.Random(n)
    return [numbers.uniform(-3.0, 8.0) if numbers.random() < share else None for _ in range(n)]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 15, 16, 17, 40])
def test_a_point_of_a_smoothed_line_is_the_mean_of_the_eighth_before_it(n):
    line = some(n)
    reach = 1 if n < 16 else n // 8
    expected = []
    for place in range(n):
        near = [line[each] for each in range(n) if place - reach < each <= place]
        known = [each for each in near if each is not None]
        expected.append(sum(known) / len(known) if known else None)
    assert smoothed(line) == expected


@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_line_fills_its_box_from_its_least_to_its_largest_number(n):
    numbers = random.Random(n)
    across, up = sorted(numbers.uniform(0.0, 50.0) for _ in range(n)), some(n, 0.8)
    up[0] = 2.0
    known = [each for each in up if each is not None]
    low, high = min(known), max(known)
    if low == high:
        low, high = low - 0.5, high + 0.5
    assert extent(up) == extent(up[::-1], [None]) == (low, high)
    left, right = (across[0], across[-1]) if n > 1 else (across[0] - 0.5, across[0] + 0.5)
    for ends in (None, (low, high), (low - 1.0, high + 3.0)):
        bottom, top = ends or (low, high)
        points = [
            f"{30 * (x - left) / (right - left):.1f},{7 * (1 - (y - bottom) / (top - bottom)):.1f}"
            for x, y in zip(across, up, strict=True)
            if y is not None
        ]
        assert polyline(across, up, width=30, height=7, within=ends).split() == points
    assert extent([None], []) == (0.0, 1.0)
    assert extent([3.0, 3.0]) == (2.5, 3.5)


def test_a_chart_has_one_scale_for_all_its_lines_and_marks_within_its_rounds():
    rounds = [10, 20, 50]
    lines: dict[str, Any] = {"a": [1.0, None, 4.0], "b": [2.0, 9.0, None], "c": None}
    drawn = chart(rounds, lines, [9, 10, 15, 50, 51])
    assert (drawn["low"], drawn["high"], drawn["rounds"]) == (1.0, 9.0, rounds)
    assert drawn["marks"] == [9, 10, 15, 50, 51]
    assert drawn["marks_at"] == [0.0, 75.0, 600.0]
    assert drawn["lines"] == {name: line for name, line in lines.items() if line is not None}
    for name in "ab":
        one = polyline(rounds, lines[name], width=600, height=160, within=(1.0, 9.0))
        assert drawn["points"][name] == one
    assert chart([0, 700], {"a": [1.0, 2.0]}, [100])["marks_at"] == [85.7]
    assert chart([1], {"a": [None]})["marks"] == []


def test_a_scale_ends_at_the_next_round_number():
    steps = [mantissa * 10.0**power for power in range(-4, 6) for mantissa in (1.0, 2.0, 2.5, 5.0)]
    for number in [0.0004, 0.011, 0.99, 1.0, 1.001, 2.0, 2.2, 2.5, 3.0, 5.0, 5.1, 9.0, 10.0, 23.0,
                   99999.0]:  # fmt: skip
        expected = min(step for step in [*steps, 10.0**6] if step >= number * (1 - 1e-12))
        assert ceiling(number) == pytest.approx(expected, rel=1e-12)
    assert [ceiling(number) for number in (0.0, -2.0, math.inf, math.nan)] == [1.0] * 4


def test_a_thinned_table_has_its_ends_and_even_steps():
    for n, most in itertools.product((0, 1, 2, 3, 16, 17, 100), (2, 3, 16)):
        found = thinned(n, most)
        if n <= most:
            assert found == list(range(n))
            continue
        assert (len(found), found[0], found[-1]) == (most, 0, n - 1)
        for place, index in enumerate(found):
            assert abs(index - place * (n - 1) / (most - 1)) <= 0.5


MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.000"), (9.9994, "9.999"), (10.0, "10.00"), (99.0, "99.00"), (100.0, "100.0"),
     (999.0, "999.0"), (1000.0, "1,000"), (54321.6, "54,322"), (-10.0, f"{MINUS}10.00"),
     (-0.0006, f"{MINUS}0.001"), (-0.0004, "0.000"), (-1000.4, f"{MINUS}1,000")],
)  # fmt: skip
def test_scores_have_three_digits_and_large_ones_no_more_than_they_need(number, text):
    assert value(number) == text
    sign = "" if number < 0 else "+"
    assert signed(number) == sign + text
    assert signed(None) == value(math.inf) == value(None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0004, "0.4 ms"), (0.001, "1 ms"), (0.0096, "9.6 ms"), (0.01, "10 ms"), (0.999, "999 ms"),
     (1.0, "1 s"), (1.5, "1.5 s"), (10.4, "10 s"), (59.9, "60 s"), (60.0, "1 min"),
     (90.0, "1.5 min"), (3599.0, "60 min"), (3600.0, "1 h"), (86399.0, "24 h"), (86400.0, "1 d"),
     (129600.0, "1.5 d"), (0.0, "0 ms")],
)  # fmt: skip
def test_times_are_told_in_their_largest_unit(seconds, text):
    assert duration(seconds) == text


def test_small_shares_keep_two_digits():
    told = [percent(share) for share in (0.0, 0.0099, 0.01, 0.5, 0.999, 1.0)]
    assert told == ["0 %", "0.99 %", "1.0 %", "50.0 %", "99.9 %", "100 %"]
    assert moment(-5) == moment(0) == "1970-01-01 00:00:00 UTC"
    assert moment(86_400_999) == "1970-01-02 00:00:00 UTC"


# --------------------------------------------------------------------------- days and pages


class Log:
    """Events with times, as a store has them."""

    def __init__(self, times, kinds=("rank",)):
        self.all = [
            Event("a", seq, kinds[seq % len(kinds)], None, None, at, b"", b"")
            for seq, at in enumerate(times, 1)
        ]

    def last(self, _):
        return self.all[-1] if self.all else None

    def event(self, _, seq):
        return self.all[seq - 1]

    def events(self, _, after=0, limit=None):
        return iter(self.all[after:][:limit])


def at(day, seconds=0.0):
    return int((datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + seconds) * 1000)


FIRST = date(2024, 2, 27)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_the_events_of_some_days_are_those_of_their_times(n):
    days = [FIRST + timedelta(days=each) for each in range(5)]
    ends = (0.0, 0.001, 86_399.999)
    numbers = random.Random(n)
    times = sorted(at(numbers.choice(days), numbers.choice(ends)) for _ in range(n))
    log: Any = Log(times)
    for since, until in itertools.product([None, *days], repeat=2):
        after, before = seqs_of(log, "a", Days(since, until))
        wanted = [
            seq
            for seq, time in enumerate(times, 1)
            if (since is None or time >= at(since))
            and (until is None or time < at(until) + 86_400_000)
        ]
        assert [seq for seq in range(1, n + 1) if after < seq < before] == wanted
        assert after >= 0
        assert before <= n + 1
    assert seqs_of(log, "a", Days(None, None)) == (0, n + 1)


def test_the_rounds_of_some_days_are_those_shown_on_them():
    engine = Engine(MemoryStore())
    days = [FIRST + timedelta(days=each) for each in range(6)]
    asked = RankerRequest(items=ANIMALS, seed=1)
    engine.execute(Configure("animals", asked), at(days[0]))
    shown = {1: 3, 2: 1, 4: 2}  # rounds by day
    dates = []
    for day, n_rounds in shown.items():
        for _ in range(n_rounds):
            made = engine.execute(Rank("animals", RankRequest()), at(days[day], 60.0))
            feedback = GiveFeedback("animals", made.event_id, FeedbackRequest("observed", [1.0]))
            engine.execute(feedback, at(days[day], 90.0))
            dates.append(days[day])
    live, store = engine.ranker("animals"), engine.store
    for since, until in itertools.product([None, *days], repeat=2):
        if since is not None and until is not None and since > until:
            continue
        first_round, end = rounds_of(store, live, Days(since, until))
        wanted = [
            number
            for number, day in enumerate(dates)
            if (since is None or since <= day) and (until is None or day <= until)
        ]
        assert list(range(first_round, end)) == wanted


def test_days_begin_at_midnight_of_greenwich_wherever_the_service_is(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        times = [at(FIRST), at(FIRST, 3600.0 * 20)]
        log: Any = Log(times)
        assert seqs_of(log, "a", Days(FIRST, FIRST)) == (0, 3)
        assert _start(FIRST) == times[0] == 1_708_992_000_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_days_are_read_and_those_that_cannot_be_are_refused():
    assert days_of("", None) == Days(None, None)
    assert days_of("", None).is_all
    assert days_of("2024-02-29", "2024-02-29") == Days(date(2024, 2, 29), date(2024, 2, 29))
    for since, until in (("2024-02-29", None), (None, "2024-02-29")):
        assert not days_of(since, until).is_all
    assert days_of("1970-01-01", None).since == date(1970, 1, 1)
    assert days_of("9998-12-31", None).since == date(9998, 12, 31)
    for text in ("1969-12-31", "9999-01-01", "2024-02-30", "today"):
        with pytest.raises(InvalidInput, match="`until` must be a day such as"):
            days_of(None, text)
    with pytest.raises(InvalidInput, match="`since` must not be after `until`"):
        days_of("2024-03-01", "2024-02-29")


@pytest.mark.parametrize("n", [0, 49, 50, 51, 100, 1003])
@pytest.mark.parametrize("kind", [None, "rank", "delete"])
def test_pages_of_the_log_have_every_event_once_and_the_newest_first(n, kind, monkeypatch):
    monkeypatch.setattr("keyhole.service.dashboard.log._MOST_SCANNED", 700)
    log: Any = Log(range(n), ("rank", "feedback", "feedback"))
    for after in (0, 1, 30):
        seen, before, n_pages = [], None, 0
        while True:
            found, older = log_page(log, "a", kind, before, after)
            seen += [event.seq for event in found]
            n_pages += 1
            assert len(found) <= 50
            if older is None:
                break
            assert after + 1 < older <= (before or n)
            if len(found) < 50:  # a page looks at so many
                assert older == min(before - 1 if before else n, n) - 700 + 1
            before = older
        wanted = [e.seq for e in reversed(log.all) if e.seq > after and kind in (None, e.kind)]
        assert seen == wanted
        if kind is None:
            assert n_pages == max(1, math.ceil(max(n - after, 0) / 50))
    found, _ = log_page(log, "a", None, n + 7)
    assert [event.seq for event in found] == list(range(n, max(n - 50, 0), -1))
