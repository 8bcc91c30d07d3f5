"""The ranker page: formats a ranker's summary as texts, table rows and charts.

The template renders this data and the script updates the page from it, so that every number is
formatted in one place.
"""

from typing import Any

from keyhole.service.dashboard.figures import ceiling, chart, smoothed, thinned
from keyhole.service.dashboard.formatting import (
    NONE,
    count,
    duration,
    interval,
    percent,
    signed,
    value,
)
from keyhole.service.events import Mode

Summary = dict[str, Any]
Row = dict[str, Any]

MAX_ITEM_ROWS = 50
MAX_SERIES_ROWS = 16

MODES = {
    "online": "shows its own lists and learns from their feedback",
    "apprentice": "shows the caller's lists and learns from their feedback",
    "frozen": "shows its best list and does not learn",
}
_CALLED: dict[tuple[str, Mode], str] = {
    ("apprentice", "online"): "Promote",
    ("online", "frozen"): "Freeze",
    ("apprentice", "frozen"): "Freeze",
    ("frozen", "online"): "Let it learn again",
}
"""The labels of mode changes, by the modes before and after."""
_DIFFERS = {
    "online": "the ranker explored, or has learnt since",
    "apprentice": "the caller's list was shown",
    "frozen": "the items have changed since",
}
_COUNTS = (
    ("observed", "Observed", "Feedback has the relevance of the first items."),
    ("none", "Seen, nothing relevant", "The list was seen; the relevance of all items is zero."),
    ("not_shown", "Never shown", "The caller reported that nobody saw the list."),
    ("late", "Late", "Feedback arrived after the list had expired; only evaluations use it."),
    ("expired", "Expired", "No feedback arrived in time."),
    ("waiting", "Waiting", "Feedback may still arrive."),
)


def ranker_page(summary: Summary) -> dict[str, Any]:
    """Return the texts, flags, table rows and charts of a ranker's page."""
    summary = {**summary, "series": _smoothed(summary["series"])}
    items = item_rows(summary["items"] or [], summary["counts"]["ranks"])
    ranking = ranking_rows(summary)
    apprentice = apprentice_rows(summary["apprentice"])
    return {
        "texts": _texts(summary, ranking, len(summary["items"] or [])),
        "flags": _flags(summary, items, ranking),
        "rows": {
            "facts": facts(summary),
            "items": items[:MAX_ITEM_ROWS],
            "ranking": ranking[:MAX_ITEM_ROWS],
            "counts": count_rows(summary["counts"]),
            "alarms": alarm_rows(summary["alarms"]),
            "apprentice": apprentice,
            "warnings": [{"text": sentence} for sentence in summary["warnings"]],
            "series": series_rows(summary),
        },
        "charts": charts(summary),
    }


def acts_of(before: str) -> list[tuple[str, str]]:
    """Return the possible mode changes: the new mode and its label."""
    return [(after, called) for (mode, after), called in _CALLED.items() if mode == before]


def within(page: dict[str, Any], summary: Summary, first: int, end: int) -> dict[str, Any]:
    """Return a page with its charts, and their table, restricted to some rounds."""
    series = _smoothed(summary["series"])
    kept = [place for place, round in enumerate(series["round"]) if first <= round < end]
    part = {
        name: None if line is None else [line[place] for place in kept]
        for name, line in series.items()
    }
    alarms = [alarm for alarm in summary["alarms"] if first <= alarm["round"] < end]
    chosen = {**summary, "series": part, "alarms": alarms}
    says = f"The charts show rounds {count(first)} to {count(end - 1)}; all else covers all rounds."
    if not kept:
        says = "The charts have no rounds on these days."
    drawn, has_regret = len(kept) > 1, part["regret"] is not None
    flags = {
        "drawn": drawn,
        "not_drawn": not drawn,
        "regret": drawn and has_regret,
        "no_regret": not (drawn and has_regret),
    }
    return {
        **page,
        "texts": {**page["texts"], "range_says": says},
        "flags": {**page["flags"], **flags},
        "rows": {**page["rows"], "series": series_rows(chosen)},
        "charts": charts(chosen),
    }


def preparing_says(code: Row) -> str:
    """Return a sentence on the compilation; empty once the code is ready."""
    took = f"{count(round(code['seconds']))} s"
    if code["state"] == "preparing":
        return (
            f"The ranker's code has been compiling for {took}: until it is ready, requests for "
            "lists and feedback get a 503."
        )
    if code["state"] == "failed":
        return f"Compiling the ranker's code failed after {took}: the service log says why."
    return ""


def facts(summary: Summary) -> list[Row]:
    """Return the key figures at the head of the page, each with an explanation."""
    delay = summary["delay_seconds"] or {}
    series = summary["series"]
    rows = [
        (
            "Rounds",
            count(summary["round"]),
            f"{count(summary['counts']['waiting'])} waiting",
            "The number of lists shown, and of those still waiting for feedback.",
        ),
        (
            "Score",
            value(_last(series["score"])),
            "mean relevance",
            "The mean observed relevance of the first items, as a moving average.",
        ),
        (
            "Exploring",
            percent(summary["exploration_share"]),
            "of rounds",
            "The share of recent rounds that explored.",
        ),
        (
            "Answered",
            percent(summary["answer_rate"]),
            "of lists",
            "The share of lists whose feedback arrived before they expired.",
        ),
        (
            "Delay",
            duration(delay.get("median")),
            f"9 of 10 within {duration(delay['p90'])}" if delay else "median",
            "The median time from a list to its feedback.",
        ),
    ]
    if series["regret"] is not None:
        rows.insert(
            2,
            (
                "Regret per round",
                value(_last(series["regret"])),
                f"full information: {value(_last(series['full_information'] or []))}",
                f"The loss in {summary['measure']} against the best fixed list, known because this"
                " is a simulation. Full information: the regret of follow-the-leader, which sees"
                " the relevance of all items without noise.",
            ),
        )
    return [
        {"label": label, "text": text, "note": note, "why": why} for label, text, note, why in rows
    ]


def item_rows(items: list[Row], ranks: int) -> list[Row]:
    """Return the items with their bars, best first and unobserved last."""
    top = item_scale(items)
    known = sorted((i for i in items if i["mean"] is not None), key=lambda i: -i["mean"])
    unknown = [item for item in items if item["mean"] is None]
    rows = []
    for item in [*known, *unknown]:
        low, mean, high = (
            round(100.0 * min(max(number, 0.0), top) / top, 2) if number is not None else None
            for number in (item["low"], item["mean"], item["high"])
        )
        rows.append(
            {
                "name": item["name"],
                "text": value(item["mean"]) if item["mean"] is not None else "unseen",
                "interval": interval(item["low"], item["high"]),
                "observed": count(item["observed"]),
                "shown_top": percent(item["shown_top"] / max(ranks, 1)),
                "seen": item["mean"] is not None,
                "bar_mean": mean or 0.0,
                "bar_low": low or 0.0,
                "bar_high": 100.0 if high is None else high,
            }
        )
    return rows


def item_scale(items: list[Row]) -> float:
    """Return the upper end of the bars' scale."""
    ends = [n for item in items for n in (item["mean"], item["high"]) if n is not None]
    return ceiling(max(ends, default=1.0))


def ranking_rows(summary: Summary) -> list[Row]:
    """Return the last shown list beside the best list, by position."""
    shows, best = summary["shows"] or [], summary["best"] or []
    return [
        {
            "position": str(i + 1),
            "shown": shows[i] if i < len(shows) else NONE,
            "best": best[i] if i < len(best) else NONE,
            "differs": i < len(shows) and i < len(best) and shows[i] != best[i],
            "revealed": i < summary["k"],
        }
        for i in range(max(len(shows), len(best)))
    ]


def count_rows(counts: dict[str, int]) -> list[Row]:
    """Return the counts of lists by feedback status."""
    ranks = max(counts["ranks"], 1)
    return [
        {
            "label": label,
            "text": count(counts[key]),
            "share": percent(counts[key] / ranks),
            "bar": round(min(100.0 * counts[key] / ranks, 100.0), 2),
            "why": why,
        }
        for key, label, why in _COUNTS
    ]


def alarm_rows(alarms: list[Row]) -> list[Row]:
    """Return the alarms of the change test, newest first."""
    return [
        {"text": f"Round {count(alarm['round'])}", "note": f"event {count(alarm['seq'])}"}
        for alarm in reversed(alarms[-10:])
    ]


def apprentice_rows(apprentice: Row | None) -> list[Row]:
    """Return the values of the caller's and the apprentice's lists, and their difference."""
    if apprentice is None:
        return []
    named = (
        ("Caller's lists", "baseline", value),
        ("Apprentice's lists", "own", value),
        ("Difference", "difference", signed),
    )
    return [
        {
            "label": label,
            "text": shown(apprentice[key]["value"]),
            "interval": interval(apprentice[key]["low"], apprentice[key]["high"]),
            "n": count(apprentice[key].get("n")),
        }
        for label, key, shown in named
    ]


def series_rows(summary: Summary) -> list[Row]:
    """Return the charts as a table with few rows, newest first."""
    series = summary["series"]
    rounds = series["round"]

    def text(name: str, i: int) -> str:
        return NONE if series[name] is None else value(series[name][i])

    return [
        {
            "round": count(rounds[i]),
            "score": text("score", i),
            "exploration": NONE
            if series["exploration"] is None
            else percent(series["exploration"][i]),
            "regret": text("regret", i),
            "full_information": text("full_information", i),
        }
        for i in reversed(thinned(len(rounds), MAX_SERIES_ROWS))
    ]


def charts(summary: Summary) -> dict[str, Any]:
    """Return the charts over the rounds."""
    series = summary["series"]
    marks = [alarm["round"] for alarm in summary["alarms"]]
    drawn = {"score": chart(series["round"], {"score": series["score"]}, marks)}
    if summary["simulation"]:
        unknown = [None] * len(series["round"])
        lines = {name: series[name] or unknown for name in ("regret", "full_information")}
        drawn["regret"] = chart(series["round"], lines, marks)
    drawn["exploration"] = chart(series["round"], {"exploration": series["exploration"]}, marks)
    return drawn


def _smoothed(series: dict[str, Any]) -> dict[str, Any]:
    """Return the series with scores and shares as moving averages."""
    return {**series, **{name: smoothed(series[name]) for name in ("score", "exploration")}}


def _last(line: list[float | None]) -> float | None:
    """Return the last number of a line that is not None."""
    return next((number for number in reversed(line) if number is not None), None)


def _texts(summary: Summary, ranking: list[Row], n_items: int) -> dict[str, str]:
    """Return the texts of the page by name."""
    series = summary["series"]
    differs, mode = sum(row["differs"] for row in ranking), summary["mode"]
    score, regret = _last(series["score"]), _last(series["regret"] or [])
    n_alarms = len(summary["alarms"])
    return {
        "live": f"Round {count(summary['round'])}, event {count(summary['seq'])}",
        "preparing": preparing_says(summary["code"]),
        "seq": count(summary["seq"]),
        "version": count(summary["version"]),
        "sha256": summary["sha256"],
        "scale_end": f"{item_scale(summary['items'] or []):g}",
        "items_left_out": (
            f"{count(n_items - MAX_ITEM_ROWS)} more items are in the JSON of this page."
            if n_items > MAX_ITEM_ROWS
            else ""
        ),
        "ranking_says": (
            "Every query has its own best list."
            if summary["items"] is None
            else "The last shown list is the ranker's current best list."
            if differs == 0
            else f"{count(differs)} of {count(len(ranking))} positions differ: {_DIFFERS[mode]}."
        ),
        "score_label": f"Line chart: mean relevance of the top {summary['k']}"
        f" over {count(summary['round'])} rounds, now {value(score)};"
        f" {count(n_alarms)} alarms of the change test.",
        "regret_label": "Line chart: regret per round over time,"
        f" now {value(regret)}; with full information and without noise"
        f" {value(_last(series['full_information'] or []))}.",
        "regret_says": (
            "Negative regret: the ranker adapted to changed preferences, which no fixed list can."
            if regret is not None and regret < 0.0
            else ""
        ),
        "exploration_label": "Line chart: share of rounds that explore,"
        f" now {percent(summary['exploration_share'])}.",
        "range_says": "",
        "apprentice_says": _apprentice_sentence(summary["apprentice"]),
    }


def _apprentice_sentence(apprentice: Row | None) -> str:
    if apprentice is None:
        return ""
    if apprentice["own"]["value"] is None:
        return (
            "The apprentice's lists have no feedback yet: none of their top items, or none of the "
            "lists, was shown with feedback."
        )
    if apprentice["better"]:
        return "The apprentice is better: the whole interval of the difference is above zero."
    return "Undecided: the interval of the difference is not entirely above zero."


def _flags(summary: Summary, items: list[Row], ranking: list[Row]) -> dict[str, bool]:
    """Return which parts of the page are visible."""
    begun = summary["round"] > 0
    drawn = len(summary["series"]["round"]) > 1
    return {
        "preparing": summary["code"]["state"] != "ready",
        "fixed": summary["items"] is not None,
        "queries": summary["items"] is None,
        "items_left_out": len(items) > MAX_ITEM_ROWS,
        "begun": begun,
        "not_begun": not begun,
        "ranking": bool(ranking),
        "no_ranking": not ranking,
        "differs": any(row["differs"] for row in ranking),
        "drawn": drawn,
        "not_drawn": not drawn,
        "regret": drawn and summary["series"]["regret"] is not None,
        "no_regret": not drawn or summary["series"]["regret"] is None,
        "alarms": bool(summary["alarms"]),
        "no_alarms": not summary["alarms"],
        "apprentice": summary["apprentice"] is not None,
        "warnings": bool(summary["warnings"]),
        "verdict": summary["verdict"] is not None,
    }
