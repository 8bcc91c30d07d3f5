"""What pages say of a log, put together a second time from the reference of its numbers."""

from typing import Any

from keyhole.service.dashboard.formatting import (
    count,
    duration,
    interval,
    percent,
    signed,
    value,
)

NOTHING = "\N{EN DASH}"
ROUND_ENDS = [digit * 10.0**power for power in range(-4, 4) for digit in (1.0, 2.0, 2.5, 5.0)]
MARKED = 600.0
"""How wide a chart is."""


def moving_means(line: list[Any]) -> list[Any]:
    """Return the mean of each number and those before it, over an eighth of the line."""
    reach = max(len(line) // 8, 1)
    found = []
    for place in range(len(line)):
        near = [x for x in line[max(place + 1 - reach, 0) : place + 1] if x is not None]
        found.append(sum(near) / len(near) if near else None)
    return found


def last_known(line: list[Any] | None) -> Any:
    known = [number for number in line or [] if number is not None]
    return known[-1] if known else None


def drawn_points(across: list[Any], up: list[Any], size: tuple[float, float], span: Any) -> str:
    """Return a line as it is drawn in a box, the greatest number on top."""
    left, right = ends_of([across])
    low, high = span
    width, height = size
    pairs = [
        (width * (x - left) / (right - left), height - height * (y - low) / (high - low))
        for x, y in zip(across, up, strict=True)
        if y is not None
    ]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def ends_of(lines: list[list[Any]]) -> tuple[float, float]:
    known = [number for line in lines for number in line if number is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def ranker_page_of(told: dict[str, Any], measure: str) -> dict[str, Any]:
    """Return all numbers of the page of a ranker, from the reference of its summary."""
    series = {
        **told["series"],
        **{name: moving_means(told["series"][name]) for name in ("score", "exploration")},
    }
    return {
        "rows": {
            "facts": facts_of(told, series, measure),
            "items": items_of(told),
            "ranking": ranking_of(told),
            "counts": counts_of(told),
            "alarms": [
                {"text": f"Round {count(a['round'])}", "note": f"event {count(a['seq'])}"}
                for a in told["alarms"][::-1][:10]
            ],
            "apprentice": apprentice_of(told["apprentice"]),
            "series": series_of(series),
        },
        "charts": charts_of(told, series),
        "texts": texts_of(told, series),
    }


def facts_of(told: dict[str, Any], series: dict[str, Any], measure: str) -> list[dict[str, Any]]:
    delay = told["delay_seconds"]
    rows = [
        ("Rounds", count(told["round"]), f"{count(told['counts']['waiting'])} waiting"),
        ("Score", value(last_known(series["score"])), "mean relevance"),
        ("Exploring", percent(told["exploration_share"]), "of rounds"),
        ("Answered", percent(told["answer_rate"]), "of lists"),
        ("Delay", duration(delay["median"]), f"9 of 10 within {duration(delay['p90'])}"),
    ]
    if series["regret"] is not None:
        informed = f"full information: {value(last_known(series['full_information']))}"
        rows.insert(2, ("Regret per round", value(last_known(series["regret"])), informed))
    return [{"label": label, "text": text, "note": note} for label, text, note in rows]


def scale_of(told: dict[str, Any]) -> float:
    most = max([n for i in told["items"] for n in (i["mean"], i["high"]) if n], default=1.0)
    return min(end for end in ROUND_ENDS if end >= most * (1.0 - 1e-12))


def items_of(told: dict[str, Any]) -> list[dict[str, Any]]:
    top, n_ranks = scale_of(told), told["counts"]["ranks"]

    def bar(number: float | None, unknown: float) -> float:
        return unknown if number is None else 100.0 * min(max(number, 0.0), top) / top

    known = [item for item in told["items"] if item["mean"] is not None]
    unknown = [item for item in told["items"] if item["mean"] is None]
    return [
        {
            "name": item["name"],
            "text": "unseen" if item["mean"] is None else value(item["mean"]),
            "interval": interval(item["low"], item["high"]),
            "observed": count(item["observed"]),
            "shown_top": percent(item["shown_top"] / n_ranks),
            "seen": item["mean"] is not None,
            "bar_mean": bar(item["mean"], 0.0),
            "bar_low": bar(item["low"], 0.0),
            "bar_high": bar(item["high"], 100.0),
        }
        for item in [*sorted(known, key=lambda item: -item["mean"]), *unknown]
    ]


def ranking_of(told: dict[str, Any]) -> list[dict[str, Any]]:
    shows, best = told["shows"], told["best"]
    return [
        {
            "position": str(place + 1),
            "shown": shows[place] if place < len(shows) else NOTHING,
            "best": best[place],
            "differs": place < len(shows) and shows[place] != best[place],
            "revealed": place < told["k"],
        }
        for place in range(len(best))
    ]


def counts_of(told: dict[str, Any]) -> list[dict[str, Any]]:
    names = ("observed", "none", "not_shown", "late", "expired", "waiting")
    shares = {name: told["counts"][name] / told["counts"]["ranks"] for name in names}
    return [
        {
            "text": count(told["counts"][name]),
            "share": percent(shares[name]),
            "bar": 100.0 * shares[name],
        }
        for name in names
    ]


def apprentice_of(told: dict[str, Any] | None) -> list[dict[str, Any]]:
    if told is None:
        return []
    return [
        {
            "text": signed(told[name]["value"])
            if name == "difference"
            else value(told[name]["value"]),
            "interval": interval(told[name]["low"], told[name]["high"]),
            "n": count(told[name].get("n")),
        }
        for name in ("baseline", "own", "difference")
    ]


def series_of(series: dict[str, Any]) -> list[dict[str, Any]]:
    """Return at most 16 rows, evenly apart, the newest first."""
    n = len(series["round"])
    places = range(n) if n <= 16 else [round(row * (n - 1) / 15) for row in range(16)]
    return [
        {
            "round": count(series["round"][place]),
            "score": value(series["score"][place]),
            "exploration": percent(series["exploration"][place]),
            **{
                name: NOTHING if series[name] is None else value(series[name][place])
                for name in ("regret", "full_information")
            },
        }
        for place in reversed(places)
    ]


def charts_of(told: dict[str, Any], series: dict[str, Any]) -> dict[str, Any]:
    rounds, marks = series["round"], [alarm["round"] for alarm in told["alarms"]]
    named = {"score": ["score"], "exploration": ["exploration"]}
    if told["simulation"]:
        named["regret"] = ["regret", "full_information"]
    charts = {}
    for chart, names in named.items():
        lines = {name: series[name] or [None] * len(rounds) for name in names}
        span = ends_of(list(lines.values()))
        left, right = ends_of([rounds])
        charts[chart] = {
            "rounds": rounds,
            "lines": lines,
            "marks": marks,
            "marks_at": [
                round(MARKED * (mark - left) / (right - left), 1) for mark in marks if mark <= right
            ],
            "low": span[0],
            "high": span[1],
            "points": {
                name: drawn_points(rounds, line, (MARKED, 160.0), span)
                for name, line in lines.items()
            },
        }
    return charts


def texts_of(told: dict[str, Any], series: dict[str, Any]) -> dict[str, Any]:
    ranking = ranking_of(told)
    n_differ = sum(row["differs"] for row in ranking)
    score, regret = last_known(series["score"]), last_known(series["regret"])
    informed = value(last_known(series["full_information"]))
    rounds = count(told["round"])
    return {
        "live": f"Round {rounds}, event {count(told['seq'])}",
        "seq": count(told["seq"]),
        "version": count(told["version"]),
        "scale_end": f"{scale_of(told):g}",
        "items_left_out": "",
        "ranking_says": f"{n_differ} of {len(ranking)} positions differ"
        if n_differ
        else "The last shown list is the ranker's current best list.",
        "score_label": f"Line chart: mean relevance of the top {told['k']} over {rounds} rounds,"
        f" now {value(score)}; {len(told['alarms'])} alarms of the change test.",
        "regret_label": "Line chart: regret per round over time, now"
        f" {value(regret)}; with full information and without noise {informed}.",
        "exploration_label": "Line chart: share of rounds that explore,"
        f" now {percent(told['exploration_share'])}.",
    }


def index_row_of(told: dict[str, Any]) -> dict[str, Any]:
    """Return all numbers of a ranker's row in the list of rankers."""
    line = moving_means(told["series"]["score"])
    known = [score for score in line if score is not None]
    return {
        "rounds": count(told["round"]),
        "waiting": count(told["counts"]["waiting"]),
        "score": value(last_known(line)),
        "so_far": f"Score over time, from {value(known[0])} to {value(known[-1])}",
        "sparkline": drawn_points(told["series"]["round"], line, (100.0, 20.0), ends_of([line])),
    }
