"""The evaluation page: its form, and the result as a sentence, a table and a figure."""

from typing import Any
from urllib.parse import parse_qs

import msgspec

from keyhole.base.errors import InvalidInput
from keyhole.service.commands import EvaluationRequest
from keyhole.service.dashboard.formatting import NONE, count, interval, signed, value

DECISIVE = "doubly-robust"
PLAIN = "importance-weighted"
POLICIES = {
    "best": "The ranker's current best list",
    "uniform": "Random order",
    "order": "A fixed order, entered below",
}
BASELINES = {
    "logged": "The lists that were shown",
    "best": "The ranker's current best list",
    "uniform": "Random order",
}
BOUNDS = {
    "betting": "betting: valid at every sample size, if lists are drawn independently",
    "empirical-bernstein": "empirical Bernstein: also valid at every sample size, but wider",
    "student-t": "Student's t: asymptotic",
}
_MOST_FIELDS = 16
_WIDTH = 400.0
_ROOM = 0.25
"""The margin of a figure, as a share of its range."""
_ROWS = (("policy", "Policy"), ("baseline", "Baseline"), ("difference", "Difference"))


def blank_form(best: list[str]) -> dict[str, str]:
    """Return the default values of the form; the order is the best list."""
    return {
        "policy": "best",
        "order": "\n".join(best),
        "baseline": "logged",
        "confidence": "0.95",
        "bound": "betting",
        "after": "0",
    }


def read_form(body: bytes, blank: dict[str, str]) -> dict[str, str]:
    """Parse a submitted form; missing fields keep their default."""
    try:
        given = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:  # includes UnicodeDecodeError
        raise InvalidInput("A form must be NAME=VALUE pairs in UTF-8.") from None
    return {name: given.get(name, [text])[0] for name, text in blank.items()}


def request_of(form: dict[str, str]) -> EvaluationRequest:
    """Return the evaluation request of a form, or raise."""
    fields: dict[str, Any] = dict(form)
    order = [line for line in fields.pop("order").splitlines() if line]
    if fields["policy"] == "order":
        fields["policy"] = order
    try:
        return msgspec.convert(fields, EvaluationRequest, strict=False)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`") or "form"
        raise InvalidInput(f"The field {name} is invalid: {said}.") from None


def result_page(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an evaluation as shown on the page."""
    difference = result["difference"][DECISIVE]
    promote = result["verdict"] == "promote"
    return {
        "promote": promote,
        "verdict": "Promote the policy" if promote else "Keep the baseline",
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
        f"The {sure} lower confidence bound of the difference in {result['measure']} between"
        f" the policy and the baseline is {signed(bound)}, from {n} rounds of the log: it"
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
    """Return the coordinates of the difference, its intervals and zero in the figure.

    The figure fits the approximate interval. The exact one may be far wider and is then cut off at
    the edges.
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
        "says": f"Difference {signed(record['value'])}; interval valid at every sample size"
        f" {interval(*record['interval'])}; approximate interval"
        f" {interval(*record['approximate_interval'])}.",
    }
