"""The cache gives what was read, or nothing."""

import gzip
import hashlib
import json
import os
from typing import Any

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.letor import cache as letor_cache, queries as letor_queries, reader as letor
from keyhole.data.letor.reader import read_letor

TEXT = "2 qid:é 1:0.1 2:3\n0 qid:é 2:1e-5\n0 qid:b 1:1\n1 qid:c 1:7\n"
PARTS = ("features.npy", "relevance.npy", "starts.npy", "query_ids.npy", "manifest.json")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "letor.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def parsed(monkeypatch):
    """Count how often text is parsed."""
    calls, original = [], letor_queries.read_whole

    def counting(*arguments):
        calls.append(arguments[0])
        return original(*arguments)

    monkeypatch.setattr(letor, "read_whole", counting)
    return calls


def same(one, other):
    for name in ("features", "relevance", "starts"):
        mine, others = getattr(one, name), getattr(other, name)
        assert (mine.dtype, mine.shape) == (others.dtype, others.shape)
        assert mine.tobytes() == others.tobytes()
        assert mine.flags.c_contiguous
        assert not mine.flags.writeable
    assert (one.query_ids, one.n_dropped) == (other.query_ids, other.n_dropped)


def entry_of(cache):
    (entry,) = cache.iterdir()  # and no temporary folder beside it
    return entry


def test_a_hit_is_what_was_read_and_is_mapped(path, tmp_path, parsed):
    cache = tmp_path / "new" / "cache"
    plain = read_letor(path)
    same(read_letor(path, cache=cache), plain)
    hit = read_letor(path, cache=cache)
    same(hit, plain)
    assert len(parsed) == 2
    assert isinstance(hit.features.base, np.memmap)
    assert sorted(p.name for p in entry_of(cache).iterdir()) == sorted(PARTS)


def test_the_key_is_content_and_options_not_names(path, tmp_path, parsed):
    cache = tmp_path / "cache"
    read_letor(path, cache=cache)
    other = tmp_path / "other.txt"
    other.write_bytes(path.read_bytes())
    read_letor(other, cache=cache, n_threads=1)
    assert len(parsed) == 1
    several: list[dict[str, Any]] = [
        {"dtype": np.float32},
        {"n_features": 2},
        {"first_index": 1},
        {"max_grade": 2},
        {"missing_relevant": "keep"},
        {"normalise": "minmax"},
    ]
    for number, options in enumerate(several, 2):
        same(read_letor(path, cache=cache, **options), read_letor(path, **options))
        assert len(list(cache.iterdir())) == number
    path.write_text(TEXT.replace("0.1", "0.2"), encoding="utf-8")
    assert read_letor(path, cache=cache).features[0, 0] == 0.2


def test_where_one_file_ends_matters(tmp_path):
    lines, cache = TEXT.splitlines(keepends=True), tmp_path / "cache"
    for name, text in zip("abcd", (lines[:3], lines[3:], lines[:2], lines[2:]), strict=True):
        (tmp_path / name).write_text("".join(text), encoding="utf-8")
    for pair in ("ab", "cd"):
        read_letor([tmp_path / name for name in pair], cache=cache)
    assert len(list(cache.iterdir())) == 2


def test_group_files_are_part_of_the_key(tmp_path):
    cache, path, groups = tmp_path / "cache", tmp_path / "text", tmp_path / "sizes"
    path.write_bytes(gzip.compress(b"1 1:1\n1 1:2\n1 1:3\n"))
    for sizes in ("1\n2\n", "2\n1\n", "1\n2\n"):
        groups.write_text(sizes)
        read = read_letor(path, groups=groups, cache=cache)
        assert np.diff(read.starts).tolist() == [int(size) for size in sizes.split()]
    assert len(list(cache.iterdir())) == 2


def cut_short(file):
    file.write_bytes(file.read_bytes()[:-1])


def made_longer(file):
    file.write_bytes(file.read_bytes() + b"\0")


def emptied(file):
    file.write_bytes(b"")


def removed(file):
    file.unlink()


def first_byte(file):
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)


def last_byte(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "damage", [cut_short, made_longer, emptied, removed, first_byte, last_byte]
)
def test_damage_is_found_and_mended(path, tmp_path, parsed, part, damage):
    cache, plain = tmp_path / "cache", read_letor(path)
    read_letor(path, cache=cache)
    damage(entry_of(cache) / part)
    same(read_letor(path, cache=cache), plain)
    assert len(parsed) == 3
    same(read_letor(path, cache=cache), plain)
    assert len(parsed) == 3
    entry_of(cache)


def test_pickles_are_never_loaded(path, tmp_path, parsed):
    cache = tmp_path / "cache"
    plain = read_letor(path, cache=cache)
    entry = entry_of(cache)
    np.save(entry / "starts.npy", np.array([{}], object), allow_pickle=True)
    digest, text = (entry / "manifest.json").read_text().split("\n")
    manifest = json.loads(text)
    manifest["arrays"]["starts"] = [letor_cache._checksum(entry / "starts.npy"), "|O", [1]]
    text = json.dumps(manifest)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    (entry / "manifest.json").write_text(f"{digest}\n{text}")
    same(read_letor(path, cache=cache), plain)
    assert len(parsed) == 2


def test_nothing_is_stored_of_a_bad_file(tmp_path):
    path, cache = tmp_path / "bad", tmp_path / "cache"
    path.write_text("1 qid:1 1:\n")
    with pytest.raises(InvalidInput, match="line 1: a feature must be index:value"):
        read_letor(path, cache=cache)
    assert not cache.exists()


def test_a_failing_disk_leaves_nothing_behind(path, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    cache = tmp_path / "cache"
    with pytest.warns(RuntimeWarning, match=r"`cache` must be a folder .* No space left on device"):
        read = read_letor(path, cache=cache)
    assert read.features.tobytes() == read_letor(path).features.tobytes()
    assert list(cache.iterdir()) == []


def test_a_cache_that_is_a_file(path, tmp_path):
    with pytest.warns(RuntimeWarning, match="`cache` must be a folder that can be written"):
        read_letor(path, cache=path)


def test_another_process_that_was_faster(path, tmp_path, monkeypatch, parsed):
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    plain = read_letor(path, cache=elsewhere)
    original = letor_cache._put

    def late(new, entry):
        entry_of(elsewhere).rename(entry)
        monkeypatch.setattr(type(entry), "exists", lambda _: False)  # looked a moment too early
        with pytest.raises(OSError, match="not empty"):
            original(new, entry)
        monkeypatch.undo()
        original(new, entry)

    monkeypatch.setattr(letor_cache, "_put", late)
    read_letor(path, cache=cache)
    same(read_letor(path, cache=cache), plain)
    entry_of(cache)
