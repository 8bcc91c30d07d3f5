"""The content of a snapshot, with a checksum."""

import hashlib
from contextlib import suppress
from typing import Any

import msgspec

from keyhole.service.counters import Tally
from keyhole.service.errors import StoreDamaged
from keyhole.service.events import Snapshot
from keyhole.service.store.base import Store

_SEAL, _SEAL_BEFORE = b"KHS\x03", b"KHS\x02"
_encoder = msgspec.msgpack.Encoder()
_HEAD = len(_SEAL) + hashlib.sha256().digest_size


class Kept(msgspec.Struct):
    """The whole state of a ranker, in snapshots and in rebase events."""

    version: int
    round: int
    link: bytes
    learnt_by: str
    arrays: dict[str, tuple[str, tuple[int, ...], bytes]]
    spec: dict[str, Any]
    waiting: list[tuple[int, str, int, bool]]
    tally: Tally
    waits: list[tuple[int, float]] = []
    begun: int = 1
    since: int = 0


class _Begun(msgspec.Struct):
    """The part of a snapshot with the seq of its ranker's first event."""

    begun: int = 1


def sealed(ranker: str, seq: int, sha256: str, kept: Kept) -> Snapshot:
    """Return a snapshot with a checksum.

    The state is copied only once, because copying holds the GIL.
    """
    body = bytearray(_HEAD)
    _encoder.encode_into(kept, body, _HEAD)
    with memoryview(body) as view:
        digest = _digest(ranker, seq, sha256, view[_HEAD:])
    body[:_HEAD] = _SEAL + digest
    return Snapshot(ranker, seq, sha256, body)


def is_sealed(snapshot: Snapshot) -> bool:
    """Return whether a snapshot has a checksum; only those have all counters."""
    return snapshot.body.startswith(_SEAL)


def _content(snapshot: Snapshot) -> bytes | bytearray:
    """Return the content of a snapshot without its checksum, which early versions lack."""
    has_head = snapshot.body.startswith((_SEAL, _SEAL_BEFORE))
    return snapshot.body[_HEAD:] if has_head else snapshot.body


def kept_by(snapshot: Snapshot) -> Kept:
    """Return the content of a snapshot, or raise if it is damaged."""
    name = f"The snapshot of ranker {snapshot.ranker!r} after event {snapshot.seq}"
    content = _content(snapshot)
    if is_sealed(snapshot):
        digest = _digest(snapshot.ranker, snapshot.seq, snapshot.sha256, content)
        if snapshot.body[len(_SEAL) : _HEAD] != digest:
            raise StoreDamaged(f"{name} is damaged.")
    try:
        return msgspec.msgpack.decode(content, type=Kept)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreDamaged(f"{name} cannot be read: {error}.") from error


def begun_of(store: Store, name: str) -> int:
    """Return the seq of a ranker's first event according to its newest snapshot."""
    for snapshot in store.snapshots(name):
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            return msgspec.msgpack.decode(_content(snapshot), type=_Begun).begun
    return 1


def _digest(ranker: str, seq: int, sha256: str, content: bytes | bytearray | memoryview) -> bytes:
    digest = hashlib.sha256(f"{ranker}\n{seq}\n{sha256}\n".encode())
    digest.update(content)
    return digest.digest()
