"""Rank batches: the result of each request, and idempotent retries of a batch."""

from typing import NamedTuple

import msgspec

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import RankItem, RankMany, RankRequest
from keyhole.service.errors import ConflictingRequest
from keyhole.service.events import Batch, Event, Ranked, Repeated, body_of
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.ranking import (
    check_same,
    fingerprint_of,
    reused,
    show,
    shown_before,
    told,
    with_idem,
)
from keyhole.service.store.chain import event_at


def _item(live: LiveRanker, event: Event, ranked: Ranked) -> RankItem:
    """Return a list as a batch item."""
    event_id, ranking, k, policy, model_seq, by = told(live, event, ranked)
    return RankItem(201, event_id, ranking, k, policy, model_seq, by)


class ShownMany(NamedTuple):
    """The decided requests of a batch."""

    new: list[tuple[Ranked, str]]
    """The new lists, in consecutive rounds, with their event ids."""
    became: list[int | Event | Exception]
    """For each request: its index among the new lists, its earlier event, or its error."""
    fingerprint: bytes

    def noted(self, seq: int) -> list[tuple[Ranked, str]]:
        """Return the new lists, whose events follow ``seq``.

        The first one carries the :class:`Batch`, if there is an idempotency key to retry it under.
        """
        if not (self.fingerprint and self.new):
            return self.new
        ranked, event_id = self.new[0]
        noted = msgspec.structs.replace(ranked, batch=self._batch(seq))
        return [(noted, event_id), *self.new[1:]]

    @property
    def repeated(self) -> Repeated | None:
        """The record of the idempotency key if every list of the batch was shown before.

        None without a key, if a new list carries the key, or if all requests were refused: then the
        key stays unused, as for a single refused request.
        """
        known = [what.seq for what in self.became if isinstance(what, Event)]
        if not (self.fingerprint and known) or self.new:
            return None
        return Repeated(known[0], self._batch(0))

    def _batch(self, seq: int) -> Batch:
        """Return the record of all results; the new events follow ``seq``."""
        seqs = [
            seq + 1 + what if isinstance(what, int) else what.seq if isinstance(what, Event) else 0
            for what in self.became
        ]
        return Batch(self.fingerprint, tuple(seqs))

    def replies(self, live: LiveRanker, events: list[Event]) -> list[RankItem | Exception]:
        """Return the result of each request, given the events of the new lists."""
        found: list[RankItem | Exception] = []
        for what in self.became:
            if isinstance(what, int):
                found.append(_item(live, events[what], self.new[what][0]))
            elif isinstance(what, Event):
                found.append(_item(live, what, body_of(what)))
            else:
                found.append(what)
        return found


def show_many(live: LiveRanker, command: RankMany, round: int, secret: bytes) -> ShownMany:
    """Decide the requests of a batch in consecutive rounds."""
    requests, is_keyed = command.requests, command.idem is not None
    live.rank_ahead(round, len(requests))
    new: list[tuple[Ranked, str]] = []
    became: list[int | Event | Exception] = []
    named: dict[str, int] = {}
    for request in requests:
        if not isinstance(request, RankRequest):
            became.append(request)
            continue
        try:
            if request.event_id is not None:
                place = named.get(request.event_id)
                if place is not None:
                    check_same(request, new[place][0])
                before = shown_before(live, request) if place is None else place
                if before is not None:
                    became.append(before)
                    continue
            one = show(live, request, round + len(new), secret)
        except KeyholeError as error:
            became.append(error)
            continue
        named[one[1]] = len(new)
        became.append(len(new))
        new.append(one)
    return ShownMany(new, became, _of_all(requests) if is_keyed else b"")


def repeated_batch(live: LiveRanker, command: RankMany) -> Batch | None:
    """Return the record of a repeated batch; raise if its key belongs to another request."""
    event = None if command.idem is None else with_idem(live, command.idem)
    if event is None or command.idem is None:
        return None
    batch: Batch | None = body_of(event).batch
    if batch is None or batch.fingerprint != _of_all(command.requests):
        raise reused(command.idem)
    return batch


def _of_all(requests: list[RankRequest | Exception]) -> bytes:
    return fingerprint_of([one if isinstance(one, RankRequest) else None for one in requests])


def told_again(live: LiveRanker, batch: Batch) -> list[RankItem | Exception]:
    """Return the results of a repeated batch."""
    found: list[RankItem | Exception] = []
    for seq in batch.seqs:
        event = event_at(live.store, live.name, seq) if seq else None
        if event is None:
            found.append(
                ConflictingRequest(
                    "This request was refused when its batch came first: use a new key."
                )
            )
        else:
            found.append(_item(live, event, body_of(event)))
    return found
