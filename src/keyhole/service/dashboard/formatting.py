"""Formats numbers, intervals, durations and times for display."""

import math
from datetime import UTC, datetime

NONE = "\N{EN DASH}"
_TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (0.001, "ms"))


def count(number: float | None) -> str:
    """Return an integer with separated thousands."""
    return NONE if number is None else f"{number:,.0f}"


def value(number: float | None) -> str:
    """Return a score or an estimate with three significant digits, more if it is large."""
    if number is None or not math.isfinite(number):
        return NONE
    size = abs(number)
    digits = 0 if size >= 1_000 else 1 if size >= 100 else 2 if size >= 10 else 3
    text = f"{size:,.{digits}f}"
    is_negative = number < 0 and float(text.replace(",", "")) > 0
    return f"\N{MINUS SIGN}{text}" if is_negative else text


def signed(number: float | None) -> str:
    """Return a difference with its sign."""
    if number is None:
        return NONE
    return value(number) if number < 0 else f"+{value(number)}"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval as text."""
    return NONE if low is None or high is None else f"{value(low)} to {value(high)}"


def percent(share: float | None) -> str:
    """Return a share as a percentage; small ones keep two digits."""
    if share is None:
        return NONE
    hundredth = 100.0 * share
    digits = 0 if hundredth in {0.0, 100.0} else 2 if hundredth < 1.0 else 1
    return f"{hundredth:.{digits}f} %"


def duration(seconds: float | None) -> str:
    """Return a time span in its largest unit."""
    if seconds is None:
        return NONE
    size, unit = next((row for row in _TIMES if seconds >= row[0]), _TIMES[-1])
    number = seconds / size
    return (
        f"{number:.0f} {unit}" if number >= 10 or number == int(number) else f"{number:.1f} {unit}"
    )


def moment(milliseconds: int) -> str:
    """Return a time in milliseconds as date and time in UTC."""
    return f"{instant(milliseconds):%Y-%m-%d %H:%M:%S} UTC"


def instant(milliseconds: int) -> datetime:
    """Return a time in milliseconds as a datetime, clamped to the calendar."""
    seconds = min(max(milliseconds / 1000.0, 0.0), 253_402_300_799.0)
    return datetime.fromtimestamp(seconds, UTC)
