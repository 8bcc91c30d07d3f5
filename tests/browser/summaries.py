"""Summaries of rankers as the engine gives them, made up: of what is rare in a short game."""

import math
from typing import Any

MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
ITEMS = ("Harbour walk", "Night market", "Glass museum", "Old mill", "Ferry", "Sky bar", MARKUP)


def summary(**changes: Any) -> dict[str, Any]:
    """Return the summary of a ranker that has learnt for a while, with everything on its page."""
    rounds = list(range(10, 2_570, 10))
    score = [0.72 - 0.35 * math.exp(-i / 40) + 0.02 * math.sin(i / 7) for i in range(256)]
    items = [
        {
            "name": name,
            "mean": 0.8 - 0.11 * place,
            "low": 0.8 - 0.11 * place - 0.02 * (place + 1),
            "high": 0.8 - 0.11 * place + 0.03 * (place + 1),
            "observed": 900 // (place + 1),
            "shown_top": 1_700 // (place + 1),
        }
        for place, name in enumerate(ITEMS[:-1])
    ]
    unseen = {"mean": None, "low": None, "high": None, "observed": 0, "shown_top": 0}
    return {
        "name": "attractions",
        "mode": "online",
        "ranker": "keystone",
        "measure": "DCG",
        "is_loss": False,
        "k": 2,
        "seq": 4_711,
        "round": 2_560,
        "version": 1,
        "sha256": "9f2c" * 16,
        "simulation": True,
        "verdict": None,
        "code": {"state": "ready", "seconds": 0.0},
        "items": [*items, {"name": MARKUP, **unseen}],
        "shows": [ITEMS[0], ITEMS[2], ITEMS[1], *ITEMS[3:]],
        "best": list(ITEMS),
        "exploration_share": 0.083,
        "answer_rate": 0.79,
        "counts": {
            "ranks": 2_560,
            "observed": 1_800,
            "none": 190,
            "not_shown": 12,
            "late": 41,
            "expired": 480,
            "waiting": 37,
        },
        "delay_seconds": {"median": 4.2, "p90": 31.0, "max": 611.0},
        "series": {
            "round": rounds,
            "score": score,
            "exploration": [0.08 + 0.5 * math.exp(-i / 30) for i in range(256)],
            "regret": [0.05 + 0.5 * math.exp(-i / 50) for i in range(256)],
            "full_information": [0.01 + 0.2 * math.exp(-i / 20) for i in range(256)],
        },
        "alarms": [{"round": 1_400, "seq": 2_570}],
        "apprentice": {
            "baseline": {"value": 0.51, "low": 0.47, "high": 0.55, "n": 800},
            "own": {"value": 0.62, "low": 0.58, "high": 0.66, "n": 790},
            "difference": {"value": 0.11, "low": 0.05, "high": 0.17, "n": 1_590},
            "better": True,
        },
        "warnings": ["Feedback takes longer than a tenth of the time between two alarms."],
        **changes,
    }
