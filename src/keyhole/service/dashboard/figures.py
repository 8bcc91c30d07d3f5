"""Figures that the server draws: they are there before any script runs, and without one."""

import math
from collections.abc import Sequence
from typing import Any

Numbers = Sequence[float | None]
SMOOTHED_OVER = 8
"""Lines are averaged over the last eighth of the rounds."""


def extent(*series: Numbers) -> tuple[float, float]:
    """Return the least and the greatest number, apart from each other."""
    known = [number for line in series for number in line if number is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def polyline(
    across: Numbers,
    up: Numbers,
    *,
    width: float,
    height: float,
    within: tuple[float, float] | None = None,
) -> str:
    """Return the points of an SVG polyline that fills a box; unknown numbers are left out."""
    left, right = extent(across)
    low, high = within or extent(up)
    points = []
    for x, y in zip(across, up, strict=True):
        if x is not None and y is not None:
            px = width * (x - left) / (right - left)
            py = height * (1.0 - (y - low) / (high - low))
            points.append(f"{px:.1f},{py:.1f}")
    return " ".join(points)


def smoothed(line: Numbers) -> list[float | None]:
    """Return a line of which each number is the mean of itself and of those just before it.

    A point of a young ranker is a single round, good or bad: only their mean says something.
    """
    reach = max(len(line) // SMOOTHED_OVER, 1)
    means: list[float | None] = []
    for end in range(1, len(line) + 1):
        known = [number for number in line[max(end - reach, 0) : end] if number is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def ceiling(number: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten: a round end for a scale."""
    if not number > 0.0 or not math.isfinite(number):
        return 1.0
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= number)


def chart(
    rounds: Numbers, lines: dict[str, Numbers | None], marks: Sequence[float] = ()
) -> dict[str, Any]:
    """Return a chart of lines over rounds: its numbers for the script, its points for the page."""
    drawn = {name: list(line) for name, line in lines.items() if line is not None}
    low, high = extent(*drawn.values())
    left, right = extent(rounds)
    return {
        "rounds": list(rounds),
        "lines": drawn,
        "marks": list(marks),
        "points": {
            name: polyline(rounds, line, width=600, height=160, within=(low, high))
            for name, line in drawn.items()
        },
        "marks_at": [
            round(600 * (mark - left) / (right - left), 1)
            for mark in marks
            if left <= mark <= right
        ],
        "low": low,
        "high": high,
    }


def thinned(n: int, most: int) -> list[int]:
    """Return the indices of at most so many rows of n, evenly apart, the last one included."""
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
