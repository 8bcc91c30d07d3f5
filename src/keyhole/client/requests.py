"""Builds paths and bodies of requests from the caller's arguments."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import InvalidInput, check_array, shown
from keyhole.client.replies import Ranking, RankItem

Status = Literal["observed", "none", "not_shown"]
Relevance = float | Sequence[float]


def path_of(*parts: str) -> str:
    """Return the path of a resource, with names escaped.

    Examples
    --------
    >>> path_of("rankers", "a/b", "rank")
    '/v1/rankers/a%2Fb/rank'
    """
    for part in parts:
        if not isinstance(part, str) or not part or set(part) <= {"."}:
            raise InvalidInput(f"A name or an id must be text, got {shown(part)}.")
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def body_of(fields: Mapping[str, Any], *, none: bool = False) -> bytes:
    """Return the fields as JSON without those that are None, unless ``none`` is set."""
    given = {name: value for name, value in fields.items() if none or value is not None}
    try:
        return msgspec.json.encode(given)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(f"A request must be JSON data: {error}.") from None


def packed(features: ArrayLike, n_documents: int) -> dict[str, Any]:
    """Return features as base64 of little-endian float32, the fastest encoding.

    Examples
    --------
    >>> packed([[1.0, 2.0]], 1)
    {'shape': [1, 2], 'dtype': 'f4', 'b64': 'AACAPwAAAEA='}
    """
    rows = check_array(features, "`features`", n_dims=2)
    if rows.shape[0] != n_documents or not rows.shape[1]:
        raise InvalidInput(
            f"`features` must have a row for each of the {n_documents} documents and at least one "
            f"column, got {rows.shape[0]} rows and {rows.shape[1]} columns."
        )
    with np.errstate(over="ignore"):  # infinite values raise below
        small = rows.astype("<f4")
    bad = np.argwhere(~np.isfinite(small))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        raise InvalidInput(
            f"`features` must be finite numbers of 32 bits, got {rows[row, column]} in row {row}, "
            f"column {column}."
        )
    text = base64.b64encode(small.tobytes()).decode()
    return {"shape": list(small.shape), "dtype": "f4", "b64": text}


def names_of(items: Sequence[str] | None, name: str) -> list[str] | None:
    """Return item names as a list; a single string is refused."""
    if items is None:
        return None
    if isinstance(items, str | bytes) or not all(isinstance(item, str) for item in items):
        raise InvalidInput(f"`{name}` must be a list of names, got {shown(items)}.")
    return list(items)


def rank_fields(
    documents: Sequence[str] | None,
    features: ArrayLike | None,
    exclude: Sequence[str] | None,
    baseline: Sequence[str] | None,
    deferred: bool,
    event_id: str | None,
) -> dict[str, Any]:
    """Return a rank request."""
    ids = names_of(documents, "documents")
    if (ids is None) != (features is None):
        missing = "features" if features is None else "documents"
        raise InvalidInput(f"`documents` and `features` come together, got no `{missing}`.")
    return {
        "items": None if ids is None else [{"id": each} for each in ids],
        "features": None if ids is None or features is None else packed(features, len(ids)),
        "exclude": names_of(exclude, "exclude"),
        "baseline": names_of(baseline, "baseline"),
        "deferred": deferred or None,
        "event_id": event_id,
    }


def feedback_fields(
    relevance: Relevance | None, status: Status, truth: Mapping[str, float] | None
) -> dict[str, Any]:
    """Return a feedback request; status ``observed`` requires the relevance."""
    if status not in ("observed", "none", "not_shown"):
        raise InvalidInput(f"`status` must be observed, none or not_shown, got {shown(status)}.")
    if (status == "observed") != (relevance is not None):
        raise InvalidInput(
            f"`relevance` must be given if and only if the status is observed, got "
            f"{shown(relevance)} and {status!r}."
        )
    values = None
    if relevance is not None:
        given = [relevance] if isinstance(relevance, int | float) else relevance
        values = check_array(given, "`relevance`", n_dims=1)
        if not bool(np.isfinite(values).all()):
            raise InvalidInput(f"`relevance` must be finite numbers, got {shown(relevance)}.")
    return {
        "status": status,
        "relevance": None if values is None else values.tolist(),
        "truth": None if truth is None else {name: float(truth[name]) for name in truth},
    }


def event_of(event: str | Ranking | RankItem) -> str | None:
    """Return the event id of a list; None for a fallback list."""
    return event.event_id if isinstance(event, Ranking | RankItem) else event
