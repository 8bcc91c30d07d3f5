"""The atlas as a figure: a coloured grid per number of grades."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keyhole.lab.atlas import Atlas, Entry, grades_in_words
from keyhole.lab.figures.canvas import LegendEntry, frame, new_figure, save_both


class _Look(NamedTuple):
    """How the games of a class are drawn."""

    colour: str
    rate: str
    meaning: str
    ink: str = "black"


# Told apart by readers with any colour vision, and in grey: from light to dark as regret grows.
_CLASSES = {
    "trivial": _Look("#FFFFFF", "0", "one ranking is always best"),
    "local": _Look("#A6DBF0", r"$T^{1/2}$", "neighbours can be compared"),
    "global": _Look("#F5C04A", r"$T^{2/3}$", "only by showing worse rankings"),
    "hopeless": _Look("#A8361B", "T", "no ranker can learn it", ink="white"),
    "unknown": _Look("#D9D9D9", "?", "not known"),
}
_TITLE = "What the top k of m items can teach: regret of the best algorithm"
_BY_RULE = "o"
_WIDTH, _HEIGHT = 0.44, 0.27
_WIDEST = 16.0
_GAP = 0.35


def save_atlas(folder: Path, atlas: Atlas) -> None:
    """Draw the atlas as PNG and SVG."""
    save_both(make_atlas(folder, atlas), folder, "atlas")


def make_atlas(folder: Path, atlas: Atlas) -> Any:
    """Return the figure that :func:`save_atlas` writes."""
    grades = sorted({entry.grades for entry in atlas.entries})
    measures = list(dict.fromkeys(entry.measure for entry in atlas.entries))
    items = sorted({entry.items for entry in atlas.entries})
    left, width = _places(items)
    beside = len(grades) * width * _WIDTH <= _WIDEST
    n_columns, n_rows = (len(grades), 1) if beside else (1, len(grades))
    size = (_WIDTH * width * n_columns + 1.6, (_HEIGHT * len(measures) + 1.0) * n_rows)
    figure = new_figure(folder, max(size[0], 6.4), size[1])
    for index, number in enumerate(grades):
        plot = figure.add_subplot(n_rows, n_columns, index + 1)
        shown = [entry for entry in atlas.entries if entry.grades == number]
        _draw(plot, shown, measures, left, width)
        plot.set_title(grades_in_words(number), fontsize=10.5, pad=33)
    frame(figure, _TITLE, "a larger rate is harder to learn", _legend(atlas))
    return figure


def _places(items: Sequence[int]) -> tuple[dict[int, float], float]:
    """Return where the entries of each m begin, and the width of all."""
    left, at = {}, 0.0
    for m in items:
        left[m] = at
        at += m + _GAP
    return left, at - _GAP


def _draw(
    plot: Any,
    entries: Sequence[Entry],
    measures: Sequence[str],
    left: dict[int, float],
    width: float,
) -> None:
    from matplotlib.patches import Rectangle

    for entry in entries:
        x, y = left[entry.items] + entry.top - 1, measures.index(entry.measure)
        look = _CLASSES[entry.class_]
        box = Rectangle((x, y), 1, 1, facecolor=look.colour, edgecolor="0.45", linewidth=0.6)
        plot.add_patch(box)
        plot.text(
            x + 0.5, y + 0.53, look.rate, ha="center", va="center", fontsize=7.5, color=look.ink
        )
        if entry.source == "rule":
            plot.plot(x + 0.87, y + 0.14, _BY_RULE, color=look.ink, markersize=2.4)
    plot.set_xlim(-0.03, width + 0.03)
    plot.set_ylim(len(measures) + 0.03, -0.03)
    plot.set_yticks([y + 0.5 for y in range(len(measures))], measures, fontsize=8)
    places = [(left[m] + k - 0.5, str(k)) for m in left for k in range(1, m + 1)]
    plot.set_xticks([x for x, _ in places], [k for _, k in places], fontsize=7)
    plot.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    above = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    for m, start in left.items():
        middle = (start + m / 2, 1.0)
        plot.annotate(f"m = {m}", middle, (0, 17), **above, ha="center", fontsize=8.5)
    plot.annotate("k =", (0.0, 1.0), (-6, 5), **above, ha="right", fontsize=7)
    plot.spines[:].set_visible(False)


def _legend(atlas: Atlas) -> list[LegendEntry]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    used = {entry.class_ for entry in atlas.entries}
    handles: list[Any] = [
        Patch(facecolor=look.colour, edgecolor="0.45", label=f"{look.rate}: {look.meaning}")
        for name, look in _CLASSES.items()
        if name in used
    ]
    if any(entry.source == "rule" for entry in atlas.entries):
        dot: dict[str, Any] = {
            "marker": _BY_RULE,
            "color": "black",
            "markersize": 3,
            "linestyle": "none",
        }
        handles.append(Line2D([], [], **dot, label="by rule; without a dot, by enumeration"))
    return [LegendEntry(handle, handle.get_label()) for handle in handles]
