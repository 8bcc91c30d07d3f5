"""The contract of stores, held by every row of their table."""

import gc
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.base.lazy import named
from keyhole.service.errors import ConflictingRequest, StoreDamaged, StoreError, StoreInUse
from keyhole.service.events import Event, Key, Snapshot
from keyhole.service.store import STORES, open_store
from keyhole.service.store.base import Store
from keyhole.service.store.chain import checked, tip_of
from keyhole.service.store.integrity import check_log
from tests.service.addresses import DURABLE, address_of
from tests.service.chains import chain, linked, more

T = TypeVar("T", Event, Key, Snapshot)
KEY = Key("kh_abc", b"\1" * 32, ("rank", "read"), ("shop", "news"), 1_000, None)


@pytest.fixture(params=list(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with open_store(address_of(request.param, tmp_path)) as opened:
        yield opened


@pytest.fixture(params=DURABLE)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return address_of(request.param, tmp_path)


def all_of(store: Store) -> list[Event]:
    return [event for ranker in store.rankers() for event in store.events(ranker)]


def altered(record: T, **fields: object) -> T:
    return msgspec.structs.replace(record, **fields)


def test_every_row_is_held_to_the_contract(tmp_path):
    assert set(DURABLE) == {"sqlite", "postgresql"}
    for scheme, row in STORES.items():
        with open_store(address_of(scheme, tmp_path)) as store:
            assert type(store) is named(row.where)
            assert (tmp_path / "log.db").is_file() == (scheme == "sqlite")
            (tmp_path / "log.db").unlink(missing_ok=True)


def test_addresses_are_files_or_schemes(tmp_path):
    with open_store(tmp_path / "plain.db") as store:
        more(store, 1)
    assert (tmp_path / "plain.db").is_file()
    with pytest.raises(
        UnknownName, match=r"begins with must be one of memory, postgresql, sqlite, got 'htt"
    ):
        open_store("http://localhost/log")
    with pytest.raises(InvalidInput, match="in memory cannot be opened read-only"):
        open_store("memory:", read_only=True)


def test_an_empty_log_holds_nothing(store):
    assert store.rankers() == [] == store.keys() == store.snapshots("shop")
    assert list(store.events("shop")) == []
    assert store.last("shop") is None is store.event("shop", 1)
    assert store.find("shop", "x", "rank") is None is store.find_idem("shop", "x")
    assert not store.remove_key("x")
    store.append([])
    assert store.rankers() == []


def test_what_is_appended_comes_back_bit_for_bit(store):
    shop, news = chain(30), chain(7, ranker="news")
    # One batch may hold events of several rankers, in any order that each can follow.
    store.append([shop[0], *news, *shop[1:20]])
    store.append(shop[20:])
    assert store.rankers() == ["news", "shop"]
    assert list(store.events("shop")) == shop
    assert list(store.events("news")) == news
    assert store.last("shop") == shop[-1]
    assert [store.event("shop", seq) for seq in (0, 1, 30, 31)] == [None, shop[0], shop[29], None]


def test_names_are_told_apart_and_may_be_any_text(store):
    names = ["a", "A", "a ", "ä", "0", "\U0001f511", "a\x01", "%", "a'b"]
    for name in names:
        more(store, 3, ranker=name)
    assert store.rankers() == sorted(names)
    for name in names:
        assert [event.ranker for event in store.events(name)] == [name] * 3


def test_pages_are_read_without_a_gap(store):
    events = chain(600)
    store.append(events)
    for after in (0, 1, 255, 256, 257, 511, 512, 599, 600, 10**6):
        assert list(store.events("shop", after=after)) == events[after:]
        for limit in (0, 1, 255, 256, 257, 512, 10**6):
            page = list(store.events("shop", after=after, limit=limit))
            assert page == events[after : after + limit]


def test_impressions_and_idempotency_keys_are_found(store):
    events = chain(40)
    store.append(events)
    more(store, 40, ranker="news")
    for event in events:
        if event.key is not None:
            assert store.find("shop", event.key, event.kind) == event
            other = "feedback" if event.kind == "rank" else "rank"
            assert store.find("shop", event.key, other) is None
            assert store.find("nobody", event.key, event.kind) is None
        if event.idem is not None:
            assert store.find_idem("shop", event.idem) == event
            assert store.find_idem("nobody", event.idem) is None


def bad_batches() -> dict[str, list[Event]]:
    """Batches that do not follow the first ten events; their first two events would."""
    kept, events = chain(10), chain(16)[10:]
    again = altered(events[2], kind="rank", key=events[0].key, idem=None)
    twice = altered(events[2], kind=kept[1].kind, key=kept[1].key, idem=None)
    same_idem = altered(events[2], kind="rank", key="new", idem=kept[0].idem)
    within = altered(events[2], kind="rank", key="new", idem=events[0].idem)
    tip = tip_of(events[1])
    batches = {
        "a gap": [*events[:2], events[3]],
        "the same again": [*events[:2], events[1]],
        "an old one": [*events[:2], kept[4]],
        "a link to nothing": [*events[:2], altered(events[2], link=bytes(16))],
        "another body": [*events[:2], altered(events[2], body=b"forged")],
        "another time": [*events[:2], altered(events[2], at=7)],
        "a key of the batch": [*events[:2], linked(tip, again)],
        "a key of the log": [*events[:2], linked(tip, twice)],
        "an idempotency key of the log": [*events[:2], linked(tip, same_idem)],
        "an idempotency key of the batch": [*events[:2], linked(tip, within)],
        "a ranker that begins at 2": [*events[:2], chain(2, ranker="news")[1]],
    }
    assert again.key is not None is not same_idem.idem is not within.idem
    return batches


@pytest.mark.parametrize("what", bad_batches())
def test_all_or_none(store, what):
    kept = more(store, 10)
    with pytest.raises(ConflictingRequest):
        store.append(bad_batches()[what])
    assert all_of(store) == kept
    assert store.last("shop") == kept[-1]
    more(store, 10)
    assert len(list(checked(store.events("shop")))) == 20


def test_conflicts_say_what_must_follow(store):
    events = chain(3)
    with pytest.raises(
        ConflictingRequest, match=r"event of ranker 'shop' must have seq 1, got 2\."
    ):
        store.append(events[1:])
    with pytest.raises(
        ConflictingRequest, match="to the hash of the event before it; event 1 does not"
    ):
        store.append([altered(events[0], idem="forged")])


def test_staged_events_are_there_once_they_are_committed_by_any_thread(store):
    kept = more(store, 4)
    commit = store.stage(chain(9)[4:])
    assert all_of(store) == kept
    thread = threading.Thread(target=commit)
    thread.start()
    thread.join()
    assert all_of(store) == chain(9)
    store.stage([])()
    more(store, 3)


@pytest.mark.parametrize("what", bad_batches())
def test_what_cannot_be_staged_or_committed_leaves_nothing(store, what):
    kept = more(store, 10)
    with pytest.raises(ConflictingRequest):
        store.stage(bad_batches()[what])()
    assert all_of(store) == kept
    more(store, 1)


def test_what_is_staged_and_given_up_leaves_nothing(store):
    kept = more(store, 10)
    commit = store.stage(chain(12)[10:])
    del commit
    gc.collect()
    assert all_of(store) == kept
    more(store, 3)


def test_two_snapshots_are_kept(store):
    shots = [Snapshot("shop", seq, f"{seq:064x}", bytes([seq]) * 1_000) for seq in range(1, 6)]
    others = [altered(shot, ranker="news") for shot in shots]
    for shot, other in zip(shots, others, strict=True):
        store.put_snapshot(shot)
        store.put_snapshot(other)
    assert store.snapshots("shop") == [shots[4], shots[3]]
    assert store.snapshots("news") == [others[4], others[3]]
    again = altered(shots[4], body=b"again")
    store.put_snapshot(again)
    assert store.snapshots("shop") == [again, shots[3]]


def test_keys_are_kept_once_and_forgotten(store):
    second = altered(KEY, prefix="kh_xyz", expires_at=2_000, rankers=("*",))
    store.add_key(second)
    store.add_key(KEY)
    assert store.keys() == [KEY, second]
    with pytest.raises(ConflictingRequest, match="There is an access key kh_abc already"):
        store.add_key(altered(KEY, scopes=("admin",)))
    assert store.remove_key("kh_abc")
    assert not store.remove_key("kh_abc")
    assert store.keys() == [second]


def test_a_log_has_a_secret_of_its_own(store):
    assert len(store.secret()) == 32
    assert store.secret() == store.secret()
    with open_store("memory:") as other:
        assert store.secret() != other.secret()


def test_threads_read_whole_batches_while_one_writes(store):
    n_batches, size = 60, 8
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                before = store.last("shop")
                seen = list(checked(store.events("shop")))
                if len(seen) % size:
                    wrong.append(f"{len(seen)} events are no whole batches")
                if before and len(seen) < before.seq:
                    wrong.append("an event went away")
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    events = chain(n_batches * size)
    for first in range(0, len(events), size):
        store.append(events[first : first + size])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert list(store.events("shop")) == events


def test_threads_that_append_the_same_get_one_through(store):
    events = chain(40)
    outcomes: list[str] = []

    def write() -> None:
        for event in events:
            try:
                store.append([event])
                outcomes.append("kept")
            except ConflictingRequest:
                outcomes.append("refused")

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("kept") == len(events) == len(outcomes) // 3
    assert list(store.events("shop")) == events


@pytest.mark.parametrize("forgotten", ["find", "find_idem", "event at the end"])
def test_a_check_finds_what_is_not_found(monkeypatch, forgotten):
    with open_store("memory:") as store:
        events = more(store, 5)
        assert check_log(store) == {"shop": 5}
        if forgotten == "event at the end":
            monkeypatch.setattr(store, "events", lambda _: iter(events[:4]))
        else:
            monkeypatch.setattr(store, forgotten, lambda *_: None)
        with pytest.raises(
            StoreDamaged, match=r"must be in the index by|must have 5 events, got 4"
        ):
            check_log(store)


# --------------------------------------------------------------- stores that outlive a process


def test_reopening_finds_everything(address):
    shot = Snapshot("shop", 10, "0" * 64, b"state")
    with open_store(address) as store:
        events, secret = more(store, 10), store.secret()
        store.put_snapshot(shot)
        store.add_key(KEY)
    with open_store(address) as store:
        assert all_of(store) == events
        assert (store.secret(), store.keys(), store.snapshots("shop")) == (secret, [KEY], [shot])
        events += more(store, 5)
    with open_store(address, read_only=True) as store:
        assert list(checked(store.events("shop"))) == events


def test_one_process_writes(address):
    with open_store(address) as first:
        more(first, 3)
        with pytest.raises(StoreInUse, match="is in use: another process writes to it"):
            open_store(address)
        more(first, 3)
    with open_store(address) as second:
        more(second, 3)


def test_readers_stand_beside_the_writer_and_manage_keys(address):
    with open_store(address) as writer:
        events = more(writer, 3)
        with open_store(address, read_only=True) as reader:
            assert all_of(reader) == events
            events += more(writer, 3)
            assert all_of(reader) == events
            reader.add_key(KEY)
            assert writer.keys() == [KEY] == reader.keys()
            assert writer.remove_key(KEY.prefix)
            assert reader.keys() == []
            with pytest.raises(StoreError, match="was opened read-only"):
                more(reader, 1)
            with pytest.raises(StoreError, match="was opened read-only"):
                reader.put_snapshot(Snapshot("shop", 1, "", b""))
        more(writer, 1)
    nowhere = address.replace("log.db", "no.db").replace("@/", "@/no_")
    with pytest.raises(StoreError, match=r"there is no file|no_.* does not exist"):
        open_store(nowhere, read_only=True)


def test_a_closed_store_says_so(address):
    store = open_store(address)
    more(store, 2)
    pages = store.events("shop")
    with closing(store):
        assert next(pages).seq == 1
    store.close()
    for use in (store.rankers, store.keys, lambda: more(store, 1), lambda: store.add_key(KEY)):
        with pytest.raises(StoreError, match="has been closed"):
            use()
