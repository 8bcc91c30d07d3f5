"""One set of axes: curves with their errors, bounds beside them, or points in groups."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from keyhole.base.errors import FloatArray, IntArray
from keyhole.contracts.rows import Look
from keyhole.lab.figures.styles import LINE_COLOUR, LINE_DASHES, looks_of, readable

ERRORS = 2.0
"""Standard errors of a band, or of a bar to either side."""
_MOST_BANDS = 3
"""Curves of a panel beyond which bands would hide each other: errors are bars then."""
_N_MARKS = 6
_BEGINS = {False: 0.02, True: 0.005}
"""Share of the rounds before which curves are noise, by whether x is logarithmic."""
_SETTLED = 0.1
"""Share of the rounds after which errors count for the range of y, where x is not logarithmic."""
_MOST_TICKS = 8
"""Points of a curve that can all have a tick."""
_LOWEST = 0.4
"""How far below the means a logarithmic axis goes at most for the sake of errors, as a factor."""
_GROUP_WIDTH = 0.7
_LONGEST_GROUP = 12
"""Letters of a line of a group's name."""


@dataclass(frozen=True)
class Axes:
    """What curves show: labels for a figure, heads for the columns of a table."""

    x: str
    y: str
    x_column: str
    y_column: str
    better: str = ""
    from_zero: bool = True


REGRET = Axes(
    "round t", "average regret up to t", "round", "average_regret", better="lower is better"
)


def score_axes(is_loss: bool) -> Axes:
    """Return the axes of running means of a measure."""
    if is_loss:
        return Axes("round t", "average loss up to t", "round", "average_score", "lower is better")
    return Axes(
        "round t", "average score up to t", "round", "average_score", "higher is better", False
    )


class DrawnCurve(Protocol):
    """A curve as figures need it: points, and means with standard errors (NaN: none is known)."""

    @property
    def label(self) -> str:
        """What a legend calls it."""
        ...

    @property
    def ranker(self) -> str:
        """The ranker that it is of, by its name in a table, where the label does not say it."""
        ...

    @property
    def x(self) -> IntArray:
        """Where its points are."""
        ...

    @property
    def mean(self) -> tuple[FloatArray, FloatArray]:
        """Means and their standard errors, at each point."""
        ...


class Points(NamedTuple):
    """A curve that is nothing but what is drawn of it."""

    label: str
    x: IntArray
    mean: tuple[FloatArray, FloatArray]
    ranker: str = ""


@dataclass(frozen=True)
class Panel:
    """One set of axes: curves, and bounds or closed forms as broken grey lines."""

    title: str
    curves: Sequence[DrawnCurve]
    lines: Sequence[DrawnCurve] = ()
    first_x: int = 1
    log_x: bool = False
    log_y: bool = False
    groups: Sequence[str] = ()
    """What the points of the curves are measured on, where they are not joined by lines."""
    measure: str = ""
    """What is measured here, where it is not the same in all panels."""
    scale: str = ""
    """Panels of one measure share their y axis, unless their scales have different names."""

    @property
    def begins(self) -> float:
        """Where curves begin to be drawn: what comes before would hide the rest."""
        if self.first_x > 1:
            return self.first_x
        if self.groups or max(len(curve.x) for curve in self.curves) <= _MOST_TICKS:
            return 0.0
        return _BEGINS[self.log_x] * max(int(curve.x[-1]) for curve in self.curves)

    @property
    def has_errors(self) -> bool:
        """Whether anything is known of the errors."""
        return any(bool((curve.mean[1] > 0.0).any()) for curve in self.curves)

    def limits(self, from_zero: bool) -> tuple[float, float]:
        """Return the range of y that shows all that is drawn."""
        lows, highs = [], []
        bounded = from_zero or self.log_y
        for curve in self.curves:
            shown = curve.x >= self.begins
            mean, error = (values[shown] for values in curve.mean)
            # What is not settled yet must not decide how much room the rest has.
            settled = self.groups or self.log_x or curve.x[shown] >= _SETTLED * curve.x[-1]
            spread = np.where(settled, ERRORS * np.nan_to_num(error), 0.0)
            # Where 0 is the end of the axis, bands may reach below it, but means do not.
            lowest = _LOWEST * mean if self.log_y else mean
            lows.append(np.maximum(mean - spread, lowest) if bounded else mean - spread)
            highs.append(mean + spread)
        for line in self.lines:
            heights = line.mean[0][line.x >= self.begins]
            lows.append(heights)
            highs.append(heights)
        low, high = np.concatenate(lows), np.concatenate(highs)
        if self.log_y:
            low, high = low[low > 0.0], high[high > 0.0]
        low, high = low[np.isfinite(low)], high[np.isfinite(high)]
        if not len(low) or not len(high):
            return (0.1, 1.0) if self.log_y else (0.0, 1.0)
        return _with_margin(float(low.min()), float(high.max()), self.log_y, from_zero)


def _with_margin(low: float, high: float, is_log: bool, from_zero: bool) -> tuple[float, float]:
    if is_log:
        factor = max((high / low) ** 0.05, 1.05)
        return low / factor, high * factor
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return (0.0 if from_zero and low >= 0.0 else low - margin), high + margin


def errors_are_bars(panels: Sequence[Panel]) -> bool:
    """Return whether errors are drawn as bars in all panels: bands would hide each other in one."""
    return any(panel.groups or len(panel.curves) > _MOST_BANDS for panel in panels)


def looks_in(panels: Sequence[Panel]) -> dict[str, Look]:
    """Return the look of every curve by its label: the same label looks alike in all panels."""
    return looks_of([(each.label, each.ranker) for panel in panels for each in panel.curves])


def draw_panel(
    plot: Any,
    panel: Panel,
    axes: Axes,
    measure: str,
    looks: Mapping[str, Look],
    dashes: Mapping[str, Any],
    *,
    bars: bool,
) -> None:
    """Draw a panel on axes of Matplotlib.

    ``dashes`` are those of the lines, by their labels; errors are ``bars``, or else bands.
    """
    if panel.groups:
        _draw_groups(plot, panel, looks)
    else:
        plot.set_xscale("log" if panel.log_x else "linear")
        for number, curve in enumerate(panel.curves):
            _draw_curve(plot, panel, number, looks[curve.label], bars=bars)
        for line in panel.lines:
            _draw_line(plot, panel, line, dashes[line.label])
        _draw_ticks(plot, panel)
    low, high = panel.limits(axes.from_zero)
    if panel.log_y:
        plot.set_ylim(low, high)  # before the scale: nothing may be above 0 to find a range of
    plot.set_yscale("log" if panel.log_y else "linear")
    set_heights(plot, low, high)
    plot.set_xlabel(axes.x)
    plot.set_ylabel(textwrap.fill(f"{axes.y} ({measure})" if measure else axes.y, 40))
    dress(plot)


def set_heights(plot: Any, low: float, high: float) -> None:
    """Give y its range, and the ticks that suit it."""
    plot.set_ylim(low, high)
    if plot.get_yscale() == "log":
        _tick_logarithms(plot.yaxis, low, high)


def _tick_logarithms(axis: Any, low: float, high: float) -> None:
    """Name powers of ten alone, and plain numbers where there are not two of them in view."""
    from matplotlib import ticker

    axis.set_minor_formatter(ticker.NullFormatter())
    if len(_in_view((1,), low, high)) > 1:
        axis.set_major_locator(ticker.LogLocator())
        axis.set_major_formatter(ticker.LogFormatterSciNotation())
        return
    places = _in_view((1, 2, 5), low, high)
    if len(places) < 3:
        places = [
            place for place in ticker.MaxNLocator(5).tick_values(low, high) if low <= place <= high
        ]
    axis.set_major_locator(ticker.FixedLocator(places))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))


def _in_view(digits: Sequence[int], low: float, high: float) -> list[float]:
    """Return the numbers of a range that are one of some digits times a power of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [digit * 10.0**power for power in powers for digit in digits]
    return [number for number in numbers if low <= number <= high]


def dress(plot: Any) -> None:
    """Give axes the lines that all figures have."""
    plot.grid(color="0.92", linewidth=0.6)
    plot.set_axisbelow(True)
    plot.spines[["top", "right"]].set_visible(False)


def dashes_of(panels: Sequence[Panel]) -> dict[str, Any]:
    """Return the dashes of every bound and closed form by its label."""
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    return {label: LINE_DASHES[n % len(LINE_DASHES)] for n, label in enumerate(labels)}


def _draw_curve(plot: Any, panel: Panel, number: int, look: Look, *, bars: bool) -> None:
    curve = panel.curves[number]
    shown = curve.x >= panel.begins
    mean, error = (values[shown] for values in curve.mean)
    x = curve.x[shown]
    marked = _marked(x, panel.log_x, number, len(panel.curves))
    plot.plot(
        x, mean, color=look.colour, linestyle=look.dash, linewidth=1.6, marker=look.mark,
        markersize=4.5, markevery=marked, label=readable(curve.label),
    )  # fmt: skip
    if np.isnan(error).all():
        return
    spread = ERRORS * error
    if bars:
        below = np.minimum(spread, (1.0 - _LOWEST) * mean) if panel.log_y else spread
        plot.errorbar(
            x[marked], mean[marked], yerr=np.stack([below, spread])[:, marked], fmt="none",
            ecolor=look.colour, elinewidth=1.1, capsize=2.5,
        )  # fmt: skip
    else:
        plot.fill_between(
            x, mean - spread, mean + spread, color=look.colour, alpha=0.18, linewidth=0
        )


def _marked(x: IntArray, log_x: bool, number: int, n_curves: int) -> list[int]:
    """Return the points of a curve that have a mark: between those of the other curves."""
    if len(x) <= 2 * _N_MARKS:
        return list(range(len(x)))
    places = np.log(x) if log_x else x.astype(np.float64)
    shares = (np.arange(_N_MARKS) + (number + 0.5) / n_curves) / _N_MARKS
    wanted = places[0] + shares * (places[-1] - places[0])
    return sorted({int(np.argmin(np.abs(places - each))) for each in wanted})


def _draw_line(plot: Any, panel: Panel, line: DrawnCurve, dash: Any) -> None:
    shown = line.x >= panel.begins
    plot.plot(
        line.x[shown], line.mean[0][shown], linestyle=dash, color=LINE_COLOUR, linewidth=1.3,
        label=line.label,
    )  # fmt: skip


def _draw_ticks(plot: Any, panel: Panel) -> None:
    """Give x the ticks that it needs: the points themselves where they are few."""
    points = sorted({int(x) for curve in panel.curves for x in curve.x if x >= panel.begins})
    if 1 < len(points) <= _MOST_TICKS:
        thousands = all(x % 1000 == 0 for x in points)
        names = [f"{x // 1000:,}k" if thousands else f"{x:,}" for x in points]
        plot.set_xticks(points, names)
        plot.xaxis.minorticks_off()
    elif not panel.log_x:
        plot.set_xlim(0, points[-1])
        plot.locator_params(axis="x", nbins=5)
        plot.xaxis.set_major_formatter("{x:,.0f}")
    elif len(points) > 1:
        plot.set_xlim(points[0], points[-1])
        _tick_logarithms(plot.xaxis, points[0], points[-1])


def _draw_groups(plot: Any, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Draw a point with two standard errors for each curve, side by side in each group."""
    step = _GROUP_WIDTH / max(1, len(panel.curves))
    for number, curve in enumerate(panel.curves):
        shift = step * (number - (len(panel.curves) - 1) / 2)
        mean, error = curve.mean
        known, look = ~np.isnan(mean), looks[curve.label]
        plot.errorbar(
            curve.x[known] + shift, mean[known], yerr=ERRORS * np.nan_to_num(error[known]),
            fmt=look.mark, markersize=6, capsize=3, color=look.colour, label=readable(curve.label),
        )  # fmt: skip
    for place in range(1, len(panel.groups)):
        plot.axvline(place - 0.5, color="0.85", linewidth=0.8)
    # A long name goes on below its words: else it would run into its neighbours.
    names = [textwrap.fill(group, _LONGEST_GROUP) for group in panel.groups]
    plot.set_xticks(range(len(panel.groups)), names, fontsize=8)
    plot.tick_params(axis="x", length=0)
    plot.set_xlim(-0.5, len(panel.groups) - 0.5)


def in_words(panels: Sequence[Panel], axes: Axes) -> str:
    """Return what a caption must say: what is better, what errors are, where curves begin."""
    said = [axes.better] if axes.better else []
    if any(panel.has_errors for panel in panels):
        drawn = "bars" if errors_are_bars(panels) else "bands"
        said.append(f"{drawn}: two standard errors over the runs")
    cut = [p for p in panels if not p.groups and any(c.x[0] < p.begins for c in p.curves)]
    starts = sorted({math.ceil(panel.begins) for panel in cut})
    if starts:
        counted = axes.x.removesuffix(" t")
        said.append(f"drawn from {counted} {' or '.join(f'{n:,}' for n in starts)} on")
    return "; ".join(said)
