"""What is wrong with a figure, as a reader sees it: texts that are cut, or over each other."""

import re
from itertools import combinations

from matplotlib.text import Text

_SLACK = 1.0
"""Pixels by which texts may be over an edge, or over each other."""
_GAP = 4.0
"""Pixels that must be between the names of ticks."""


def faults(figure) -> list[str]:
    """Return what is wrong with the texts of a figure, in words."""
    figure.draw_without_rendering()
    texts = list(dict.fromkeys(_texts(figure)))
    boxes = {text: text.get_window_extent() for text in texts}
    whole = figure.bbox.padded(_SLACK)
    out = [text for text in texts if not _is_within(boxes[text], whole)]
    found = [f"outside the canvas: {_shown(text)}" for text in out]
    found += [
        f"one over the other: {_shown(one)} and {_shown(other)}"
        for one, other in combinations(texts, 2)
        if _overlap(boxes[one], boxes[other])
    ]
    for plot in figure.axes:
        for axis in (plot.xaxis, plot.yaxis):
            found += _crowded([text for text in _ticks_in_view(plot, axis) if _is_shown(text)])
    return found + _faults_of_titles(figure)


def _crowded(labels) -> list[str]:
    """Return the names of ticks that are so near to each other that they read as one."""
    boxes = {label: label.get_window_extent().padded(_GAP / 2) for label in labels}
    return [
        f"too near: {_shown(one)} and {_shown(other)}"
        for one, other in combinations(labels, 2)
        if _overlap(boxes[one], boxes[other])
    ]


def _faults_of_titles(figure) -> list[str]:
    panels = [plot for plot in figure.axes if plot.axison]
    of_panels = [_title_of(plot) for plot in panels]
    of_figure = [text.get_text() for text in figure.texts if text.get_gid() == "title"]
    titles = [*of_figure, *filter(None, of_panels)]
    found = [f"has a path: {title!r}" for title in titles if _has_path(title)]
    if not "".join(of_figure).strip():
        found.append("there is no title")
    if len(panels) > 1:
        found += [f"empty title of panel {n}" for n, title in enumerate(of_panels) if not title]
    repeated = {title for title in titles if titles.count(title) > 1}
    return found + [f"twice: {title!r}" for title in sorted(repeated)]


def _title_of(plot) -> str:
    titles = [plot.get_title(loc=place) for place in ("left", "center", "right")]
    return "".join(titles).strip()


def _has_path(title: str) -> bool:
    words = [word for word in title.split() if re.search(r"[/\\]", word)]
    # A fraction is none: 1/2 has a number before its only bar.
    return any(not re.fullmatch(r"[^/\\]*\b\d+/\w+\W*", word) for word in words)


def _ticks_in_view(plot, axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    reach = 1e-9 * (high - low)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()] if plot.axison else []
    seen = [tick for tick in ticks if low - reach <= tick.get_loc() <= high + reach]
    return [label for tick in seen for label in (tick.label1, tick.label2)]


def _texts(figure) -> list[Text]:
    """Return all texts that are drawn: those of ticks out of view are not."""
    of_ticks, drawn = set(), []
    for plot in figure.axes:
        for axis in (plot.xaxis, plot.yaxis):
            of_ticks |= {text for text in axis.findobj(Text) if text is not axis.label}
            drawn += _ticks_in_view(plot, axis)
    others = [text for text in figure.findobj(Text) if text not in of_ticks and _is_on(text)]
    return [text for text in (*drawn, *others) if _is_shown(text)]


def _is_shown(text) -> bool:
    return text.get_visible() and bool(text.get_text().strip())


def _is_on(text) -> bool:
    return text.axes is None or text.axes.axison or text.axes.get_legend() is not None


def _shown(text) -> str:
    return repr(text.get_text()[:60])


def _is_within(box, whole) -> bool:
    return whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1


def _overlap(one, other) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    along = min(one.y1, other.y1) - max(one.y0, other.y0)
    return across > _SLACK and along > _SLACK
