"""What a power cut leaves of a log: bench/powercuts.py cuts more often."""

import random

import pytest

from bench.disks import Call, PaperDisk
from bench.powercuts import cut, images, record, verdict

N_IMAGES = 500


def test_nothing_acknowledged_is_lost_at_any_write_or_sync():
    recording = record(24)
    # One cut after every call at least, and more than one promise to be kept at most of them.
    assert len(recording.calls) <= N_IMAGES
    assert {call.kind for call in recording.calls} >= {"write", "sync", "truncate", "delete"}
    verdicts = [verdict(recording, *image) for image in images(recording, N_IMAGES)]
    assert verdicts == ["whole"] * N_IMAGES


@pytest.mark.parametrize(("synchronous", "expected"), [("NORMAL", "lost"), ("OFF", "corrupt")])
def test_the_simulator_finds_what_fewer_syncs_lose(synchronous, expected):
    assert cut(60, n_batches=12, synchronous=synchronous)[expected] >= 5


def test_paper_disks_keep_what_was_synced_and_any_sector_of_the_rest():
    disk = PaperDisk()
    disk.do(Call("create", "f"))
    disk.do(Call("write", "f", 0, b"a" * 2_000))
    disk.do(Call("sync", "f"))
    disk.do(Call("write", "f", 100, b"b" * 1_500))
    numbers = random.Random(0)
    seen = {disk.image(numbers)["f"] for _ in range(400)}
    # The write covers parts of four sectors, each of which is old or new.
    borders = [(100, 512), (512, 1_024), (1_024, 1_536), (1_536, 1_600)]
    for content in seen:
        assert len(content) == 2_000
        assert content[:100] == b"a" * 100
        assert content[1_600:] == b"a" * 400
        assert all(len(set(content[start:stop])) == 1 for start, stop in borders)
    assert len(seen) == 2 ** len(borders)


def test_paper_disks_lose_and_keep_names_in_their_order():
    disk = PaperDisk()
    for call in (Call("create", "f"), Call("write", "f", 0, b"1"), Call("sync", "f")):
        disk.do(call)
    disk.do(Call("delete", "f"))
    disk.do(Call("create", "f"))
    disk.do(Call("write", "f", 0, b"2"))
    numbers = random.Random(0)
    seen = {disk.image(numbers).get("f") for _ in range(100)}
    assert seen == {b"1", None, b"", b"2"}
    disk.do(Call("sync", "f"))
    assert {disk.image(numbers).get("f") for _ in range(100)} == {b"2"}
