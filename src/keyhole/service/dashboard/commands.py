"""Example shell commands for the first requests."""

import json
import shlex
from typing import Any

from keyhole.service.ranker_state import LiveRanker

_DOCUMENTS = ("first", "second", "third")
_FIRST_ITEMS = ["news", "sport", "weather", "puzzle"]


def first_commands(base: str, needs_key: bool) -> str:
    """Return commands that create a ranker, request a list and give feedback."""
    address = f"{base}/v1/rankers/front-page"
    make = _curl("-X PUT", address, {"items": _FIRST_ITEMS, "k": 1}, needs_key)
    return f"{make}\n{_show_and_tell(address, {}, 1, needs_key)}"


def next_commands(base: str, live: LiveRanker, needs_key: bool) -> str:
    """Return commands that request a list and give feedback."""
    query: dict[str, Any] = {}
    n_shown = live.config.k
    if live.config.catalogue is None:
        n_features = int(live.config.request["n_features"])
        query = {
            "items": [{"id": name} for name in _DOCUMENTS],
            "features": [
                [int(feature == row) for feature in range(n_features)]
                for row in range(len(_DOCUMENTS))
            ],
        }
        n_shown = min(n_shown, len(_DOCUMENTS))
    return _show_and_tell(f"{base}/v1/rankers/{live.name}", query, n_shown, needs_key)


def _show_and_tell(address: str, query: dict[str, Any], n_told: int, needs_key: bool) -> str:
    told = {"relevance": [1] + [0] * (n_told - 1)}
    # While the code of a new kind of ranker compiles, requests get a 503.
    rank = _curl(
        "--retry 100 -X POST", f"{address}/rank", {**query, "event_id": "first"}, needs_key
    )
    return f"{rank}\n{_curl('-X PUT', f'{address}/events/first/feedback', told, needs_key)}"


def _curl(options: str, address: str, body: dict[str, Any], needs_key: bool) -> str:
    """Return a curl command, quoted for a shell."""
    key = """ -H "authorization: Bearer $KEYHOLE_KEY\"""" if needs_key else ""
    return (
        f"curl {options} {shlex.quote(address)}{key} \\\n"
        f"  -H 'content-type: application/json' -d {shlex.quote(json.dumps(body))}"
    )
