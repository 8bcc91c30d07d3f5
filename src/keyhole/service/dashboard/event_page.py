"""The impression page: the data of an event as table rows and texts."""

from typing import Any

from keyhole.service.dashboard.formatting import NONE, count, duration, moment, percent, value

MAX_ROWS = 100
STATUS = {
    "observed": "relevance of the first items",
    "none": "seen, nothing relevant",
    "not_shown": "never shown",
}
LEARNED = {
    "learned": "learnt from",
    "late": "too late to learn from",
    "unused": "not learnt from",
    "refused": "refused: numbers too large",
    "unknown": "learnt from or refused; the log no longer tells which",
}


def event_rows(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the list by position, with revealed relevance and propensities."""
    relevance = (event["feedback"] or {}).get("relevance") or []
    chances = event["chances"] or []
    return [
        {
            "position": str(i + 1),
            "name": name,
            "revealed": i < event["k"],
            "relevance": value(relevance[i]) if i < len(relevance) else NONE,
            "chance": percent(chances[i]) if i < len(chances) else NONE,
        }
        for i, name in enumerate(event["ranking"])
    ]


def event_pairs(event: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the facts of an impression: label, text and explanation."""
    feedback = event["feedback"]
    pairs = [
        ("Shown", moment(event["at"]), "The time of the request."),
        ("Event", count(event["seq"]), "The number of the event in the ranker's log."),
        ("Round", count(event["round"]), "The number of lists shown before."),
        ("Learnt up to event", count(event["model_seq"]), "The last event the list is based on."),
        ("Mode", event["mode"], "The mode of the ranker."),
        ("Exploring", "yes" if event["explored"] else "no", "Whether the list explores."),
        (
            "Marginal propensity",
            value(event["p_marginal"]),
            "The probability of these top items before the round's block was drawn; evaluations"
            " weight by it.",
        ),
        (
            "Conditional propensity",
            value(event["p_conditional"]),
            "The probability of these top items given the earlier draws of the block.",
        ),
    ]
    if feedback is None:
        waits = "waiting" if event["waiting"] else "expired without feedback"
        return [*pairs, ("Feedback", waits, "The feedback on the list.")]
    return [
        *pairs,
        ("Feedback", STATUS[feedback["status"]], "The feedback on the list."),
        ("Delay", duration(feedback["delay_seconds"]), "The time from the list to its feedback."),
        ("Feedback event", count(feedback["seq"]), "The number of its event in the ranker's log."),
        ("Outcome", LEARNED[feedback["learned"]], "Whether the ranker learnt from the feedback."),
    ]
