"""The index page: a table of rankers with a sparkline of their scores."""

from typing import Any

from keyhole.service.dashboard.figures import polyline, smoothed
from keyhole.service.dashboard.formatting import count, value
from keyhole.service.dashboard.ranker_page import MODES, preparing_says

ROWS = 50
"""Rankers on one page."""


def index_page(
    summaries: list[dict[str, Any]],
    root: str,
    total: int | None = None,
    damaged: list[tuple[str, str]] | None = None,
    *,
    is_searched: bool = False,
) -> dict[str, Any]:
    """Return the texts, flags and rows of the index page.

    ``total`` is the number of rankers on all pages, by default that of this page; ``damaged`` maps
    rankers that are not served to the reason.
    """
    n = len(summaries) if total is None else total
    is_empty, damaged = not summaries, damaged or []
    return {
        "texts": {"live": f"{count(n)} {'ranker' if n == 1 else 'rankers'}"},
        "flags": {
            "some": not is_empty,
            "none": is_empty and not is_searched and not damaged,
            "nothing": is_empty and is_searched,
            "damaged": bool(damaged),
        },
        "rows": {
            "rankers": [_row(summary, root) for summary in summaries],
            "damaged": [{"name": name, "why": why} for name, why in damaged],
        },
    }


def _row(summary: dict[str, Any], root: str) -> dict[str, Any]:
    series = summary["series"]
    smooth = smoothed(series["score"])
    scores = [score for score in smooth if score is not None]
    so_far = "No score yet"
    if scores:
        so_far = f"Score over time, from {value(scores[0])} to {value(scores[-1])}"
    return {
        "name": summary["name"],
        "address": f"{root}/rankers/{summary['name']}",
        "ranker": summary["ranker"],
        "is_preparing": summary["code"]["state"] != "ready",
        "code": f"{summary['code']['state']}, {count(round(summary['code']['seconds']))} s",
        "code_says": preparing_says(summary["code"]),
        "mode": summary["mode"],
        "mode_says": MODES[summary["mode"]],
        "measure": summary["measure"],
        "rounds": count(summary["round"]),
        "waiting": count(summary["counts"]["waiting"]),
        "score": value(scores[-1] if scores else None),
        "so_far": so_far,
        "sparkline": polyline(series["round"], smooth, width=100, height=20),
    }
