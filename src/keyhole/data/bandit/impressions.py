"""Logs of Keyhole's own rankers, as its service exports them: one item of each list shown.

A list reveals k items, and the log says of each how likely it was to be among them. Rewards of one
list belong to one visitor and are not independent, so of each list one item is drawn by chance,
always the same: it was taken with a k-th of its chance to be seen.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.tables import Sheet
from keyhole.data.packed import decoded, read_unpacked
from keyhole.kernels.draw import WORLD_STREAM, Draw, stream_of, uniforms

COLUMNS = ("event_id", "at", "explored", "action", "pscore", "reward", "context")
_ITEM_USE = 13
"""Draws of worlds, of studies and of splits have lower numbers."""


class _ShownList(NamedTuple):
    """A list that was shown: when, the items it revealed, their chances and rewards."""

    at: str
    explored: bool
    items: Sequence[str]
    chances: Sequence[float] | None
    rewards: Sequence[float] | None


def log_of_impressions(sheet: Sheet, **options: Any) -> BanditLog:
    """Return the log of a table of impressions, which ``keyhole db export`` writes as Parquet."""
    columns = {name: sheet.cells(name) for name in COLUMNS}
    if any(columns["context"]):
        raise _not_of_one_list(sheet.path)
    return _log(sheet.path, list(_lists_of(columns)), **options)


def _lists_of(columns: dict[str, list[str]]) -> Iterator[_ShownList]:
    rows = zip(*(columns[name] for name in COLUMNS), strict=True)
    for _, of_one in groupby(rows, key=lambda row: row[0]):
        _, at, explored, items, chances, rewards, _ = zip(*of_one, strict=True)
        is_explored = explored[0].lower() == "true"
        yield _ShownList(at[0], is_explored, items, _numbers(chances), _numbers(rewards))


def _numbers(cells: Sequence[str]) -> list[float] | None:
    return [float(cell) for cell in cells] if all(cells) else None


def read_events(path: Path | str, **options: Any) -> BanditLog:
    """Return the log of events, a line of JSON each, as the service and its export give them."""
    path = Path(path)
    return _log(path, list(_lists_in(path)), **options)


def _lists_in(path: Path) -> Iterator[_ShownList]:
    """Yield the lists of events; feedback is joined to its list."""
    shown: dict[str, _ShownList] = {}
    said: dict[str, list[float]] = {}
    text = decoded(path, read_unpacked(path, "JSON"), "JSON")
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            kind, key = record["kind"], str(record.get("event_id"))
            if kind == "rank":
                is_of_one_list = "items" not in record and "features" not in record
                shown[key] = _shown(record)
            elif kind == "feedback" and record["status"] != "not_shown":
                said[key] = [float(reward) for reward in record["relevance"]]
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
            raise InvalidInput(
                f"{path}, line {number}: an event must be JSON with the fields that keyhole db "
                f"export writes, got {line[:60]!r}."
            ) from None
        if kind == "rank" and not is_of_one_list:
            raise _not_of_one_list(path)
    for key, one in shown.items():
        rewards = said.get(key)
        fits = rewards is None or len(rewards) >= len(one.items)
        yield one._replace(rewards=rewards if fits else None)


def _shown(record: dict[str, Any]) -> _ShownList:
    """Return the list of a rank event, before anything was said of it."""
    k = min(int(record["k"]), len(record["ranking"]))
    items = [str(item) for item in record["ranking"][:k]]
    chances = record.get("chances")
    known = None if chances is None else [float(chance) for chance in chances[:k]]
    if known is not None and len(known) != k:
        raise ValueError("an item has no chance")
    return _ShownList(str(record["at"]), bool(record["explored"]), items, known, None)


def _not_of_one_list(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} must be the log of a ranker of one list for everybody to say which of its items "
        f"is worth showing, got lists of documents with features."
    )


def _log(path: Path, lists: list[_ShownList], **options: Any) -> BanditLog:
    answered = [one for one in lists if one.rewards is not None]
    usable = [one for one in answered if one.chances is not None]
    if not usable:
        raise InvalidInput(
            f"{path} must have lists that were answered and whose ranker knows how likely its "
            f"items were to be seen, got {len(lists)} lists, {len(answered)} of them answered."
        )
    # Chances that are known of explored lists alone are chances to be explored and seen: without
    # the other lists they are too small.
    if all(one.explored for one in usable) and answered != usable:
        raise InvalidInput(
            f"{path} must be of a ranker that knows in every round how likely items were to be "
            f"seen, got one that knows it where it explores, {len(usable)} of {len(answered)} "
            f"lists; the service itself can judge lists on such a log."
        )
    keys = np.empty(len(usable))
    uniforms(Draw(0, stream_of(WORLD_STREAM, 0), 0), _ITEM_USE, keys)
    places = [int(key * len(one.items)) for key, one in zip(keys, usable, strict=True)]
    drawn = list(zip(usable, places, strict=True))
    names = sorted({item for one in usable for item in one.items})
    given = {"action_names": names, **{n: v for n, v in options.items() if v is not None}}
    return BanditLog.of(
        np.empty((len(usable), 0)),
        [one.items[place] for one, place in drawn],
        [(one.rewards or ())[place] for one, place in drawn],
        [(one.chances or ())[place] / len(one.items) for one, place in drawn],
        positions=places,
        times=[one.at for one, _ in drawn],
        **given,
    )
