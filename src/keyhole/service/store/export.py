"""Exports of a log: events as records, impressions as a flat table."""

import base64
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from typing import IO, Any

import msgspec
import numpy as np

from keyhole.base.errors import LibraryMissing
from keyhole.service.errors import StoreDamaged
from keyhole.service.events import Answered, Config, Event, OutcomeOf, Ranked, body_of
from keyhole.service.store.base import Store

NamesOf = Callable[[Ranked], tuple[str, ...]]
"""Maps a list to the names of its items by index."""

_encoder = msgspec.json.Encoder()
_ROWS = 50_000
"""Rows per chunk of a table."""


def time_text(at: int) -> str:
    """Return a time as ISO 8601, to the millisecond.

    Examples
    --------
    >>> time_text(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    moment = datetime.fromtimestamp(at // 1_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1_000:03d}Z"


def event_record(
    event: Event, names_of: NamesOf | None = None, outcome: OutcomeOf | None = None
) -> dict[str, Any]:
    """Return an event as plain data, merged with the fields of its body.

    Rankings hold item names, or indices without ``names_of``. Feedback holds its outcome according
    to ``outcome``, or unknown without it.
    """
    body = body_of(event)
    record: dict[str, Any] = {
        "seq": event.seq,
        "kind": event.kind,
        "event_id": event.key,
        "idempotency_key": event.idem,
        "at": time_text(event.at),
        "link": event.link.hex(),
        **msgspec.to_builtins(body, builtin_types=(bytes,)),
    }
    if isinstance(body, Answered):
        record["learned"] = _became(body, event.seq, outcome)
    if isinstance(body, Ranked):
        record |= _of_ranked(body, names_of)
    return {name: _text(value) for name, value in record.items() if value is not None}


def _became(answered: Answered, seq: int, outcome: OutcomeOf | None) -> str:
    if outcome is not None:
        return outcome(answered, seq)
    return "unknown" if answered.learned == "pending" else answered.learned


def _of_ranked(body: Ranked, names_of: NamesOf | None) -> dict[str, Any]:
    """Return the fields of a rank record that differ from its body; None removes one."""
    names = range(len(body.ranking)) if names_of is None else names_of(body)
    named = [names[item] for item in body.ranking]
    n_shown = len(named) - body.n_excluded
    features = None
    if body.features:
        shape = [len(body.ranking), body.n_features]
        features = {"shape": shape, "dtype": body.dtype, "b64": _text(body.features)}
    return {
        "ranking": named[:n_shown],
        "excluded": named[n_shown:] or None,
        "own": None if body.own is None else [names[item] for item in body.own],
        "note": np.frombuffer(body.note, "<f8").tolist() or None,
        "features": features,
        "n_features": None,
        "n_excluded": None,
        "dtype": None,
        "fingerprint": body.fingerprint.hex() or None,
    }


def _text(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def names_in(store: Store, ranker: str) -> NamesOf:
    """Return a function from lists to the names of their items, read from the log."""
    catalogues: dict[int | None, tuple[str, ...]] = {}

    def names_of(ranked: Ranked) -> tuple[str, ...]:
        if ranked.items is not None:
            return ranked.items
        if ranked.catalogue not in catalogues:
            event = store.event(ranker, ranked.catalogue or 0)
            config = None if event is None else body_of(event)
            if not isinstance(config, Config) or config.catalogue is None:
                raise StoreDamaged(
                    f"Event {ranked.catalogue} of ranker {ranker!r} must name the items of a list."
                )
            catalogues[ranked.catalogue] = config.catalogue
        return catalogues[ranked.catalogue]

    return names_of


def event_records(
    store: Store,
    ranker: str,
    *,
    after: int = 0,
    limit: int | None = None,
    outcome: OutcomeOf | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the events of a ranker as records, in order."""
    names_of = names_in(store, ranker)
    for event in store.events(ranker, after=after, limit=limit):
        yield event_record(event, names_of, outcome)


def impressions(
    store: Store,
    ranker: str,
    *,
    after: int = 0,
    limit: int | None = None,
    outcome: OutcomeOf | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each of the first k items of every list shown.

    ``after`` and ``limit`` count events, as in :func:`event_records`; feedback is joined to its
    list wherever it is in the log.
    """
    names_of = names_in(store, ranker)
    for event in store.events(ranker, after=after, limit=limit):
        if event.kind == "rank" and event.key is not None:
            said = store.find(ranker, event.key, "feedback")
            yield from _rows(event, said, names_of, outcome)


def _rows(
    event: Event, said: Event | None, names_of: NamesOf, outcome: OutcomeOf | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list joined with its feedback."""
    ranked: Ranked = body_of(event)
    answered: Answered | None = None if said is None else body_of(said)
    became = None
    if said is not None and answered is not None:
        became = _became(answered, said.seq, outcome)
    names, contexts = names_of(ranked), _contexts(ranked)
    chances = ranked.chances or ()  # may cover only some of the first k
    k = min(ranked.k, len(ranked.ranking) - ranked.n_excluded)
    for position, item in enumerate(ranked.ranking[:k]):
        told = answered is not None and answered.status != "not_shown"
        yield {
            "event_id": event.key,
            "seq": event.seq,
            "at": event.at,
            "round": ranked.round,
            "model_seq": ranked.model_seq,
            "mode": ranked.mode,
            "explored": ranked.explored,
            "position": position,
            "action": names[item],
            "pscore": chances[position] if position < len(chances) else None,
            "p_marginal": ranked.p_marginal,
            "p_conditional": ranked.p_conditional,
            "reward": answered.relevance[position] if answered is not None and told else None,
            "status": None if answered is None else answered.status,
            "learned": became,
            "feedback_seq": None if said is None else said.seq,
            "feedback_at": None if said is None else said.at,
            "context": None if contexts is None else contexts[item].tolist(),
        }


def _contexts(ranked: Ranked) -> np.ndarray[Any, Any] | None:
    """Return the features of a list's items, one row each; None without features."""
    if not ranked.features:
        return None
    numbers = np.frombuffer(ranked.features, f"<{ranked.dtype}").astype(np.float64)
    return numbers.reshape(len(ranked.ranking), ranked.n_features)


def write_ndjson(records: Iterable[dict[str, Any]], target: IO[bytes]) -> int:
    """Write records as NDJSON and return their number."""
    n_records = 0
    for record in records:
        target.write(_encoder.encode(record) + b"\n")
        n_records += 1
    return n_records


def write_parquet(rows: Iterable[dict[str, Any]], target: IO[bytes]) -> int:
    """Write :func:`impressions` as Parquet and return their number.

    Columns use the names of the Open Bandit Pipeline where it has one: ``action``, ``position``,
    ``pscore``, ``reward`` and ``context``.
    """
    pl = load_polars()
    time = pl.Datetime("ms", "UTC")
    schema = {
        "event_id": pl.String,
        "seq": pl.Int64,
        "at": time,
        "round": pl.Int64,
        "model_seq": pl.Int64,
        "mode": pl.String,
        "explored": pl.Boolean,
        "position": pl.Int64,
        "action": pl.String,
        "pscore": pl.Float64,
        "p_marginal": pl.Float64,
        "p_conditional": pl.Float64,
        "reward": pl.Float64,
        "status": pl.String,
        "learned": pl.String,
        "feedback_seq": pl.Int64,
        "feedback_at": time,
        "context": pl.List(pl.Float64),
    }
    frames = [pl.DataFrame(schema=schema)]
    columns: dict[str, list[Any]] = {name: [] for name in schema}
    for row in rows:
        for name, cells in columns.items():
            cells.append(row[name])
        if len(columns["seq"]) == _ROWS:
            frames.append(pl.DataFrame(columns, schema=schema))
            columns = {name: [] for name in schema}
    frames.append(pl.DataFrame(columns, schema=schema))
    frame = pl.concat(frames)
    frame.write_parquet(target)
    return int(frame.height)


def load_polars() -> Any:
    """Return the module, or say how to install it."""
    try:
        return import_module("polars")
    except ModuleNotFoundError:
        raise LibraryMissing("Parquet files need polars", "service") from None
