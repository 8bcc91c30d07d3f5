"""Numbers, figures and pages of the log are put into words and lines without a browser."""

import pytest

from keyhole.service.dashboard.figures import ceiling, chart, polyline, smoothed, thinned
from keyhole.service.dashboard.formatting import (
    NONE,
    count,
    duration,
    interval,
    moment,
    percent,
    signed,
    value,
)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (count(1234567), "1,234,567"),
        (value(0.12345), "0.123"),
        (value(12.345), "12.35"),
        (value(123.45), "123.5"),
        (value(-1234.5), "\N{MINUS SIGN}1,234"),
        (value(-0.0001), "0.000"),
        (value(float("nan")), NONE),
        (value(None), NONE),
        (signed(0.5), "+0.500"),
        (signed(-0.5), "\N{MINUS SIGN}0.500"),
        (interval(0.1, 0.2), "0.100 to 0.200"),
        (interval(None, 0.2), NONE),
        (percent(0.0), "0 %"),
        (percent(1.0), "100 %"),
        (percent(0.004), "0.40 %"),
        (percent(0.8), "80.0 %"),
        (duration(0.0), "0 ms"),
        (duration(0.25), "250 ms"),
        (duration(4.2), "4.2 s"),
        (duration(31.0), "31 s"),
        (duration(90.0), "1.5 min"),
        (duration(7200.0), "2 h"),
        (moment(0), "1970-01-01 00:00:00 UTC"),
        (moment(10**18), "9999-12-31 23:59:59 UTC"),
    ],
)
def test_numbers_are_put_into_words(shown, wanted):
    assert shown == wanted


def test_a_polyline_fills_its_box_and_leaves_unknown_numbers_out():
    points = polyline([0, 1, 2], [1.0, None, 3.0], width=10, height=4)
    assert points == "0.0,4.0 10.0,0.0"
    assert polyline([5], [1.0], width=10, height=4) == "5.0,2.0"


def test_a_line_is_smoothed_over_what_came_before():
    assert smoothed([1.0] * 4) == [1.0] * 4
    assert smoothed([None, 1.0]) == [None, 1.0]
    assert smoothed([0.0, 1.0] * 8)[-1] == 0.5


def test_a_chart_marks_alarms_within_its_rounds():
    drawn = chart([0, 100], {"score": [0.0, 1.0], "regret": None}, [50, 1000])
    assert list(drawn["lines"]) == ["score"]
    assert drawn["marks_at"] == [300.0]


def test_scales_end_at_round_numbers_and_tables_are_thinned():
    assert [ceiling(number) for number in (0.0, 0.7, 1.0, 1.7, 23.0)] == [1.0, 1.0, 1.0, 2.0, 25.0]
    assert thinned(3, 5) == [0, 1, 2]
    assert thinned(100, 3) == [0, 50, 99]
