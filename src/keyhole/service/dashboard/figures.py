"""Server-rendered SVG figures, which need no script."""

import math
from collections.abc import Sequence
from typing import Any

Numbers = Sequence[float | None]
SMOOTHED_OVER = 8
"""Moving averages cover an eighth of the points."""


def extent(*series: Numbers) -> tuple[float, float]:
    """Return the minimum and the maximum, widened if they are equal."""
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
    """Return the points of an SVG polyline that fills a box; None values are skipped."""
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
    """Return the trailing moving average of a line.

    Points of a new ranker are single rounds, which are too noisy to show.
    """
    reach = max(len(line) // SMOOTHED_OVER, 1)
    means: list[float | None] = []
    for end in range(1, len(line) + 1):
        known = [number for number in line[max(end - reach, 0) : end] if number is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def ceiling(number: float) -> float:
    """Round up to 1, 2, 2.5 or 5 times a power of ten, for the end of an axis."""
    if not number > 0.0 or not math.isfinite(number):
        return 1.0
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= number)


def chart(
    rounds: Numbers, lines: dict[str, Numbers | None], marks: Sequence[float] = ()
) -> dict[str, Any]:
    """Return a chart over rounds: its data for the script, its SVG points for the page."""
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
    """Return at most ``most`` evenly spaced indices below n, including the last."""
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
