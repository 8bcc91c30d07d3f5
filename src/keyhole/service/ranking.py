"""Decides a rank request: idempotency, the list to show, and its propensities."""

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput, shown
from keyhole.contracts.lists import Query
from keyhole.service.batching import Drawn
from keyhole.service.commands import Packed, PolicyReply, Rank, RankReply, RankRequest
from keyhole.service.errors import ConflictingRequest, KeyReused
from keyhole.service.events import Config, Event, Ranked, body_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.store.chain import as_written, event_at

_fingerprints = msgspec.json.Encoder(order="sorted")


def fingerprint_of(request: RankRequest | list[RankRequest | None]) -> bytes:
    """Return the hash that recognises a repeated request or batch."""
    return hashlib.sha256(_fingerprints.encode(request)).digest()


def repeated(live: LiveRanker, command: Rank) -> Event | None:
    """Return the event of a repeated request; raise if its key belongs to another request."""
    event = None
    if command.idem is not None:
        event = _by_idem(live, command.idem)
        if event is not None and body_of(event).fingerprint != fingerprint_of(command.request):
            raise reused(command.idem)
    if event is None and command.request.event_id is not None:
        event = shown_before(live, command.request)
    return event


def _by_idem(live: LiveRanker, idem: str) -> Event | None:
    """Return the rank event that answered an idempotency key."""
    event = with_idem(live, idem)
    if event is not None and body_of(event).batch is not None:
        raise reused(idem)
    if event is None or event.kind == "rank":
        return event
    return event_at(live.store, live.name, body_of(event).rank_seq)


def with_idem(live: LiveRanker, idem: str) -> Event | None:
    """Return the event of an idempotency key; raise if it belongs to a deleted ranker."""
    event = live.store.find_idem(live.name, idem)
    return None if event is None else _own(live, as_written(live.store, event))


def shown_before(live: LiveRanker, request: RankRequest) -> Event | None:
    """Return the event whose id a request gives; raise if another request has it."""
    event = live.found(str(request.event_id), "rank")
    if event is not None:
        check_same(request, body_of(event))
        _own(live, event)
    return event


def _own(live: LiveRanker, event: Event) -> Event:
    """Return an event of this ranker; raise if it belongs to a deleted one of its name."""
    if event.seq <= live.since:
        raise ConflictingRequest(
            f"Event {shown(event.key)} belongs to another ranker {live.name!r}, which was deleted: "
            "give another id or key."
        )
    return event


def check_same(request: RankRequest, before: Ranked) -> None:
    """Raise if an event id belongs to a different request."""
    if before.fingerprint != fingerprint_of(request):
        raise ConflictingRequest(f"Event {shown(request.event_id)} belongs to another request.")


def reused(idem: str) -> KeyReused:
    """Return the error for an idempotency key with a different request."""
    return KeyReused(f"Idempotency key {shown(idem)} belongs to another request.")


def show(
    live: LiveRanker, request: RankRequest, round: int, secret: bytes, *, is_keyed: bool = False
) -> tuple[Ranked, str]:
    """Return the body of the rank event of a round, and its event id."""
    if live.config.catalogue is None:
        query, items, packed, dtype, n_features = _documents(live, request)
    else:
        if request.items is not None or request.features is not None:
            raise InvalidInput("`items` and `features` must be omitted for a fixed list.")
        query, items, packed, dtype, n_features = live.learner.own_list, None, b"", "f8", 0
    names = items if items is not None else live.config.catalogue or ()
    event_id = request.event_id or _id_of(live, round, secret)
    named = is_keyed or request.event_id is not None
    config = live.config
    if config.mode == "online" and request.exclude is None and request.baseline is None:
        drawn, own, n_excluded, teaches = live.draw(query, round), None, 0, True  # the fast path
    else:
        drawn, own, n_excluded, teaches = _choose(
            live, request, config, round, query, names, secret
        )
    ranked = Ranked(  # positional arguments are faster
        round,
        live.seq,
        drawn.ranking,
        drawn.explored,
        config.mode,
        min(config.k, len(names)),
        drawn.propensity,
        drawn.p_marginal,
        drawn.p_conditional,
        drawn.chances,
        drawn.least_chance,
        drawn.note,
        live.version if items is None else None,
        items,
        packed,
        n_features,
        dtype,
        own,
        n_excluded,
        teaches,
        request.deferred,
        fingerprint_of(request) if named else b"",
    )
    return ranked, event_id


_Chosen = tuple[Drawn, tuple[int, ...] | None, int, bool]
"""A list to show, the apprentice's own if it is not shown, how many items of it are excluded, and
whether its feedback is learnt from."""


def _choose(
    live: LiveRanker,
    request: RankRequest,
    config: Config,
    round: int,
    query: Query,
    names: tuple[str, ...],
    secret: bytes,
) -> _Chosen:
    """Return the ranking to show, with its propensities."""
    if request.baseline is not None and config.mode != "apprentice":
        raise InvalidInput(f"`baseline` must be omitted in mode {config.mode}.")
    if config.mode == "frozen":
        places = {name: index for index, name in enumerate(names)}
        best = tuple(places[str(name)] for name in live.learner.best(query))
        order, n_excluded = _without(best, request, names, live)
        ones = (1.0,) * min(config.k, len(names))
        least = 1.0 if config.k >= len(names) else 0.0
        return Drawn(order, False, None, b"", 1.0, 1.0, ones, least), None, n_excluded, False
    drawn = live.draw(query, round)
    if config.mode == "apprentice":
        return _apprentice(live, request, drawn, round, names, secret)
    if not request.exclude:
        return drawn, None, 0, True
    order, n_excluded = _without(drawn.ranking, request, names, live)
    if order[: config.k] != drawn.ranking[: config.k]:
        return _instead(drawn, order), None, n_excluded, False
    return msgspec.structs.replace(drawn, ranking=order), None, n_excluded, True


def _instead(drawn: Drawn, ranking: tuple[int, ...]) -> Drawn:
    """Return another ranking shown in the same round, whose propensities are unknown."""
    return Drawn(ranking, drawn.explored, drawn.propensity, drawn.note)


def _apprentice(
    live: LiveRanker,
    request: RankRequest,
    drawn: Drawn,
    round: int,
    names: tuple[str, ...],
    secret: bytes,
) -> _Chosen:
    """Show the caller's list, or in a share of rounds the apprentice's own.

    If the own list is never shown, the apprentice learns from rounds in which the caller's list has
    the same top k. If it is shown in a share of rounds, it learns from those alone: they are a fair
    sample, and rounds in which both lists agree are not. Excluded items are left out of both lists;
    if that changes the top k of the own list, the round is not learnt from.
    """
    share, k, own = live.config.apprentice_share, live.config.k, drawn.ranking
    baseline, n_excluded = _without(_baseline(request, names), request, names, live)
    if share > 0.0 and _coin(live.name, round, secret) < share:
        order, _ = _without(own, request, names, live)
        if order[:k] != own[:k]:
            return _instead(drawn, order), None, n_excluded, False
        chances, *others = drawn.chances, drawn.p_marginal, drawn.p_conditional, drawn.least_chance
        scaled = [None if one is None else share * one for one in others]
        known = None if chances is None else tuple(share * chance for chance in chances)
        marginal, conditional, least = scaled
        own_list = Drawn(
            order, drawn.explored, drawn.propensity, drawn.note, marginal, conditional, known, least
        )
        return own_list, None, n_excluded, True
    agree = share == 0.0 and set(baseline[:k]) == set(own[:k])
    return _instead(drawn, baseline), own, n_excluded, agree


def _baseline(request: RankRequest, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the caller's list as indices; items that it omits come last."""
    if request.baseline is None:
        return tuple(range(len(names)))
    places = {name: index for index, name in enumerate(names)}
    out = set(request.exclude or ())  # already removed from request documents
    listed = [name for name in request.baseline if name in places or name not in out]
    for name in listed:
        if name not in places:
            raise InvalidInput(f"`baseline` must name items of the list, got {shown(name)}.")
    first = [places[name] for name in listed]
    if len(set(first)) < len(first):
        raise InvalidInput("`baseline` must name every item once.")
    named = set(first)
    return (*first, *(index for index in range(len(names)) if index not in named))


def _without(
    order: tuple[int, ...], request: RankRequest, names: tuple[str, ...], live: LiveRanker
) -> tuple[tuple[int, ...], int]:
    """Return a ranking with the excluded items moved to the end, and their number."""
    if not request.exclude or live.config.catalogue is None:
        return order, 0
    out, known = set(request.exclude), set(names)
    unknown = next((name for name in request.exclude if name not in known), None)
    if unknown is not None:
        raise InvalidInput(f"`exclude` must name items of the list, got {shown(unknown)}.")
    if len(names) - len(out) < live.config.k:
        raise InvalidInput(f"`exclude` must leave at least k={live.config.k} items.")
    last = [index for index in order if names[index] in out]
    return (*[index for index in order if names[index] not in out], *last), len(last)


def _documents(
    live: LiveRanker, request: RankRequest
) -> tuple[Query, tuple[str, ...], bytes, Any, int]:
    """Return the query of a request, and its features as stored in the log, or raise."""
    if request.features is None:
        raise InvalidInput("`features` must be given: this ranker has no fixed list.")
    wanted = int(live.config.request["n_features"])
    features, dtype = _numbers(request.features)
    if request.items is None:
        names = tuple(_name_by_content(row) for row in features)
    else:
        names = tuple(document.id for document in request.items)
    if len(names) != len(features) or features.shape[1] != wanted:
        raise InvalidInput(
            f"`features` must be {len(names)} rows of {wanted} numbers, got "
            f"{features.shape[0]} rows of {features.shape[1]}."
        )
    if request.items is not None and len(set(names)) < len(names):
        raise InvalidInput("`items` must have different ids.")
    if request.exclude:
        out = set(request.exclude)
        kept = [place for place, name in enumerate(names) if name not in out]
        if not kept:
            raise InvalidInput("`exclude` must leave at least one item.")
        names, features = tuple(names[place] for place in kept), features[kept]
    query = live.query_of(names, features)
    return query, names, features.tobytes(), dtype, wanted


def _numbers(given: Packed | list[list[float]]) -> tuple[FloatArray, str]:
    """Return features as an array, and their dtype, or raise."""
    if isinstance(given, Packed):
        try:
            raw = base64.b64decode(given.b64, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput("`b64` of features must be base64.") from None
        n_bytes = given.shape[0] * given.shape[1] * int(given.dtype[1])
        if len(raw) != n_bytes:
            raise InvalidInput(
                f"`b64` of features must be {n_bytes} bytes for shape {list(given.shape)} of "
                f"{given.dtype}, got {len(raw)}."
            )
        array = np.frombuffer(raw, dtype=f"<{given.dtype}").reshape(given.shape)
        dtype = given.dtype
    else:
        width = len(given[0])
        if any(len(row) != width for row in given):
            raise InvalidInput("`features` must be rows of equal length.")
        array, dtype = np.array(given, dtype="<f8"), "f8"
    if not np.isfinite(array).all():
        raise InvalidInput("`features` must be finite.")
    return array, dtype


def _name_by_content(row: FloatArray) -> str:
    """Return a name for a document without id: a hash of its features."""
    return "features-" + hashlib.blake2b(row.tobytes(), digest_size=12).hexdigest()


def _id_of(live: LiveRanker, round: int, secret: bytes) -> str:
    """Return an unguessable event id, unique across rankers and resets.

    It starts with the round, so that the id index of a store grows at its end.
    """
    anew = f" since {live.begun}" if live.begun > 1 else ""
    digest = _keyed(secret).copy()
    digest.update(f"event {round} of {live.name}{anew}".encode())
    return f"e{round:012x}{digest.hexdigest()}"


@lru_cache(maxsize=4)
def _keyed(secret: bytes) -> Any:
    return hashlib.blake2b(key=secret, digest_size=12)


def _coin(ranker: str, round: int, secret: bytes) -> float:
    """Return the pseudo-random number between 0 and 1 of a round."""
    digest = hmac.digest(secret, f"coin {round} of {ranker}".encode(), hashlib.sha256)
    return int.from_bytes(digest[:7], "little") / 2.0**56


@lru_cache(maxsize=16)
def _written(milliseconds: int) -> str:
    """Return a time in ISO 8601; cached, because a group of commands shares its time."""
    moment = datetime.fromtimestamp(milliseconds / 1000.0, UTC)
    return moment.isoformat(timespec="milliseconds")


def rank_reply(live: LiveRanker, event: Event, ranked: Ranked) -> RankReply:
    """Return the reply on a list."""
    return RankReply(*told(live, event, ranked))


def told(
    live: LiveRanker, event: Event, ranked: Ranked
) -> tuple[str, list[str], int, PolicyReply, int, str | None]:
    """Return the fields of a rank reply, in order."""
    names = live.names_of(ranked)
    shown_now = ranked.ranking
    if ranked.n_excluded:
        shown_now = shown_now[: len(shown_now) - ranked.n_excluded]
    wait = live.wait_at(event.seq)
    by = None if ranked.deferred else _written(event.at + int(wait * 1000.0))
    policy = PolicyReply(ranked.mode, ranked.explored, ranked.p_marginal, ranked.p_conditional)
    listed = [names[index] for index in shown_now]
    return str(event.key), listed, ranked.k, policy, ranked.model_seq, by
