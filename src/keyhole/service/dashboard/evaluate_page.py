"""What the page of an evaluation shows: a form, and what came of it in words, rows and lines."""

from typing import Any
from urllib.parse import parse_qs

import msgspec

from keyhole.base.errors import InvalidInput
from keyhole.service.commands import EvaluationRequest
from keyhole.service.dashboard.formatting import NONE, count, interval, signed, value

DECISIVE = "doubly-robust"
PLAIN = "importance-weighted"
POLICIES = {
    "best": "The list that it believes best by now",
    "uniform": "All orders alike",
    "order": "A fixed order, written below",
}
BASELINES = {
    "logged": "What was shown",
    "best": "The list that it believes best by now",
    "uniform": "All orders alike",
}
BOUNDS = {
    "betting": "betting: holds for every number of rounds, if each list is drawn anew",
    "empirical-bernstein": "empirical Bernstein: holds as well, wider",
    "student-t": "Student's t: holds in the limit",
}
_MOST_FIELDS = 16
_WIDTH = 400.0
_ROOM = 0.25
"""What a figure has beside what it must show, as a share of it."""
_ROWS = (("policy", "The policy"), ("baseline", "What it must beat"), ("difference", "Difference"))


def blank_form(best: list[str]) -> dict[str, str]:
    """Return the form as it is before it is filled in: the order begins with the best one."""
    return {
        "policy": "best",
        "order": "\n".join(best),
        "baseline": "logged",
        "confidence": "0.95",
        "bound": "betting",
        "after": "0",
    }


def read_form(body: bytes, blank: dict[str, str]) -> dict[str, str]:
    """Return a form as it came; what it leaves out is as it was."""
    try:
        given = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:  # which UnicodeDecodeError is
        raise InvalidInput("A form must be pairs NAME=VALUE in UTF-8.") from None
    return {name: given.get(name, [text])[0] for name, text in blank.items()}


def request_of(form: dict[str, str]) -> EvaluationRequest:
    """Return what a form asks for, or raise."""
    fields: dict[str, Any] = dict(form)
    order = [line for line in fields.pop("order").splitlines() if line]
    if fields["policy"] == "order":
        fields["policy"] = order
    try:
        return msgspec.convert(fields, EvaluationRequest, strict=False)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`") or "form"
        raise InvalidInput(f"The field {name} must be as the form says: {said}.") from None


def result_page(result: dict[str, Any]) -> dict[str, Any]:
    """Return what the page says of an evaluation."""
    difference = result["difference"][DECISIVE]
    promote = result["verdict"] == "promote"
    return {
        "promote": promote,
        "verdict": "Promote it" if promote else "Keep what is shown",
        "sentence": _sentence(result, promote),
        "rows": [
            _row(label, result[key], is_difference=key == "difference") for key, label in _ROWS
        ],
        "whisker": whisker(difference),
        "notes": result["notes"],
        "skipped": count(result["skipped"]) if result["skipped"] else None,
    }


def _sentence(result: dict[str, Any], promote: bool) -> str:
    sure, n = f"{100.0 * result['confidence']:g} %", count(result["rows"])
    bound = result["lower_bound"]
    if bound is None:
        return f"{n} rounds of the log give no bound on the difference in {result['measure']}."
    verb = "is above" if promote else "is not above"
    return (
        f"With {sure} confidence the policy earns at least {signed(bound)} in"
        f" {result['measure']} beyond what it must beat, by {n} rounds of the log: that"
        f" {verb} zero."
    )


def _row(label: str, record: dict[str, Any], *, is_difference: bool) -> dict[str, str]:
    shown = signed if is_difference else value
    decisive = record[DECISIVE]
    return {
        "label": label,
        "text": shown(decisive["value"]),
        "interval": interval(*decisive["interval"]),
        "approximate": interval(*decisive["approximate_interval"]),
        "plain": shown(record[PLAIN]["value"]) if PLAIN in record else NONE,
    }


def whisker(record: dict[str, Any]) -> dict[str, Any]:
    """Return where the difference, its intervals and zero are in a figure.

    The figure is as wide as the approximate interval asks for. The other may be far wider: it then
    goes on beyond the edges.
    """
    ends = [record["value"], 0.0]
    ends += [end for end in record["approximate_interval"] if end is not None]
    low, high = min(ends), max(ends)
    room = _ROOM * (high - low) or 1.0

    def at(number: float) -> float:
        share = (number - low + room) / (high - low + 2.0 * room)
        return round(_WIDTH * min(max(share, 0.0), 1.0), 1)

    def span(name: str) -> tuple[float, float]:
        left, right = record[name]
        return 0.0 if left is None else at(left), _WIDTH if right is None else at(right)

    return {
        "zero": at(0.0),
        "value": at(record["value"]),
        "sure": span("interval"),
        "approximate": span("approximate_interval"),
        "says": f"Difference {signed(record['value'])}; interval that holds for every number of"
        f" rounds {interval(*record['interval'])}; approximate interval"
        f" {interval(*record['approximate_interval'])}.",
    }
