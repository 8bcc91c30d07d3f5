"""What the page of an impression shows: its data put into rows and words."""

from typing import Any

from keyhole.service.dashboard.formatting import NONE, count, duration, moment, percent, value

MAX_ROWS = 100
STATUS = {
    "observed": "the relevance of the first items",
    "none": "seen, nothing liked",
    "not_shown": "never shown to anybody",
}
LEARNED = {
    "learned": "learnt from",
    "late": "too late to learn from",
    "unused": "not learnt from",
    "refused": "refused: its numbers are too large",
    "unknown": "not known any more: learnt from or refused",
}


def event_rows(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the list, position by position, with what was revealed and how likely that was."""
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
    """Return what is known of an impression: a label, a text and what it means."""
    feedback = event["feedback"]
    pairs = [
        ("Shown", moment(event["at"]), "When the list was asked for."),
        ("Event", count(event["seq"]), "Its number in the log of the ranker."),
        ("Round", count(event["round"]), "Lists that the ranker had shown before."),
        ("Known up to event", count(event["model_seq"]), "What the ranker knew then."),
        ("Mode", event["mode"], "How the ranker was run."),
        ("Exploring", "yes" if event["explored"] else "no", "Whether it was chosen to learn."),
        (
            "Marginal propensity",
            value(event["p_marginal"]),
            "The chance of what was on top, before anything of the round's block was drawn:"
            " evaluations use it.",
        ),
        (
            "Conditional propensity",
            value(event["p_conditional"]),
            "The chance of what was on top, given all that was drawn before.",
        ),
    ]
    if feedback is None:
        waits = "still awaited" if event["waiting"] else "none in time"
        return [*pairs, ("Feedback", waits, "What came back.")]
    return [
        *pairs,
        ("Feedback", STATUS[feedback["status"]], "What came back."),
        ("Came after", duration(feedback["delay_seconds"]), "From the list to the feedback."),
        ("Feedback's event", count(feedback["seq"]), "Its number in the log of the ranker."),
        ("It was", LEARNED[feedback["learned"]], "What became of the feedback."),
    ]
