"""Estimates with lower bounds, a row each: several things side by side in every row."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keyhole.contracts.rows import Look
from keyhole.lab.figures.panels import dress
from keyhole.lab.figures.styles import looks_of, readable

_BOUND_MARKS = "|x^odv+*p"
"""Hollow marks of the bounds, in their order."""
_SPREAD = 0.5
"""How much of a row its things take up."""
_FAR = 3.0
"""Bounds that are this many times as far below their estimate as the deciding one are not shown."""


class Estimated(NamedTuple):
    """An estimate, the bound that its line goes down to, if there is one, and all bounds."""

    value: float
    low: float | None
    bounds: Mapping[str, float]


class Estimates(NamedTuple):
    """The estimates of one thing, by what they are called."""

    label: str
    rows: Mapping[str, Estimated]


def draw_estimates(
    plot: Any,
    drawn: Sequence[Estimates],
    bounds: Sequence[str],
    looks: Mapping[str, Look] | None = None,
    *,
    zero: bool = False,
) -> list[str]:
    """Draw estimates on axes of Matplotlib, and return the bounds that are out of view.

    ``bounds`` are the names of all bounds in the order of their marks, of which those that are
    drawn get an entry of the legend; ``zero`` shows where 0 is.
    """
    chosen = looks or looks_of((each.label, "") for each in drawn)
    marks = dict(zip(bounds, _BOUND_MARKS, strict=False))
    names = list(dict.fromkeys(name for each in drawn for name in each.rows))
    step = _SPREAD / len(drawn)
    shown: list[float] = [0.0] if zero else []
    hidden: set[str] = set()
    used: set[str] = set()
    for number, each in enumerate(drawn):
        colour, _, mark = chosen[each.label]
        shift = step * (number - (len(drawn) - 1) / 2)
        label: str | None = readable(each.label)
        for name, found in each.rows.items():
            height = names.index(name) + shift
            plot.plot(
                found.value, height, marker=mark,
                color=colour, markersize=6.5, linestyle="none", label=label,
            )  # fmt: skip
            label = None  # one entry of a legend is enough
            if found.low is not None:
                plot.plot([found.low, found.value], [height, height], color=colour, lw=2.2)
            for bound, value in found.bounds.items():
                if _is_far(found, value):
                    hidden.add(bound)
                    continue
                shown.append(value)
                used.add(bound)
                plot.plot(value, height, marks[bound], color=colour, markersize=7, fillstyle="none")
            shown.append(found.value)
    for bound in (bound for bound in bounds if bound in used):
        plot.plot([], [], marks[bound], color="0.3", linestyle="", fillstyle="none", label=bound)
    if zero:
        plot.axvline(0.0, color="0.3", linewidth=1.0, linestyle="--")
    shown = [value for value in shown if math.isfinite(value)] or [0.0]
    margin = 0.07 * (max(shown) - min(shown)) or 1.0
    plot.set_xlim(min(shown) - margin, max(shown) + margin)
    plot.locator_params(axis="x", nbins=5)
    plot.set_yticks(range(len(names)), names)
    plot.set_ylim(len(names) - 0.5, -0.5)
    plot.tick_params(axis="y", length=0)
    dress(plot)
    plot.grid(visible=False, axis="y")
    return [bound for bound in bounds if bound in hidden]


def _is_far(found: Estimated, bound: float) -> bool:
    """Return whether a bound is so far below the others of a row that showing it hides the rest."""
    near = [
        found.value - value for value in (found.low, *found.bounds.values()) if value is not None
    ]
    nearest = min((gap for gap in near if gap > 0.0), default=0.0)
    return not math.isfinite(bound) or found.value - bound > _FAR * nearest > 0.0
