"""Reading LETOR files: real ones against two other readers, options, threads, blocks."""

import bz2
import gzip
import lzma
import os
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.data.letor import parse as letor_parse, queries as letor_queries
from keyhole.data.letor.queries import QuerySet
from keyhole.data.letor.reader import iterate_letor, read_letor

DATA = Path(os.environ.get("KEYHOLE_DATA") or Path(__file__).parents[3] / "shared" / "data")
TEXT = """\
# made by hand
2 qid:a 1:0.5 3:-1e3 # docid = 1:9
0 qid:a 2:7

0 qid:b 1:1
0 qid:b 3:1 \t
1.5\tqid:c  1:0.1\t2:0.2 3:0.30000000000000000001#x
1 qid:c
"""


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="letor.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_text


def folder(name):
    path = DATA / name
    if not path.is_dir():
        pytest.skip(f"{path} is not there: set KEYHOLE_DATA to the folder with {name}")
    return path


def plain_reader(path):
    """Read a gzipped file the obvious way."""
    labels, ids, rows = [], [], []
    for line in gzip.decompress(path.read_bytes()).decode("ascii").splitlines():
        label, *pairs = line.split("#")[0].split()
        labels.append(float(label))
        ids.append(pairs.pop(0)[4:] if pairs[0].startswith("qid:") else "")
        rows.append({int(p.split(":")[0]): float(p.split(":")[1]) for p in pairs})
    features = np.zeros((len(rows), max(max(row) for row in rows)))
    for document, row in enumerate(rows):
        for index, value in row.items():
            features[document, index - 1] = value
    return labels, ids, features


def same(one: QuerySet, other: QuerySet) -> None:
    assert one.features.dtype == other.features.dtype
    assert one.features.tobytes() == other.features.tobytes()
    assert one.relevance.tobytes() == other.relevance.tobytes()
    assert one.starts.tolist() == other.starts.tolist()
    assert (one.query_ids, one.n_dropped) == (other.query_ids, other.n_dropped)


def joined(parts) -> QuerySet:
    parts = list(parts)
    starts = [0]
    for part in parts:
        starts += (part.starts[1:] + starts[-1]).tolist()
    return QuerySet(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.relevance for part in parts]),
        np.array(starts),
        tuple(identity for part in parts for identity in part.query_ids),
        sum(part.n_dropped for part in parts),
    )


@pytest.mark.parametrize("part", ["S1", "S2", "S3", "S4", "S5"])
def test_mq2008_as_two_other_readers_read_it(part):
    path = folder("mq2008") / f"{part}.txt.gz"
    read = read_letor(path, missing_relevant="keep")
    labels, ids, features = plain_reader(path)
    assert read.features.tobytes() == features.tobytes()
    assert read.relevance.tolist() == labels
    own_ids = np.repeat(read.query_ids, np.diff(read.starts)).tolist()
    assert own_ids == ids
    matrix, y, query_id = load_svmlight_file(str(path), query_id=True)
    assert read.features.tobytes() == matrix.toarray().tobytes()
    assert read.relevance.tolist() == y.tolist()
    assert [int(i) for i in own_ids] == query_id.tolist()


def test_mq2008_whole():
    paths = [folder("mq2008") / f"S{part}.txt.gz" for part in range(1, 6)]
    everything = read_letor(paths, missing_relevant="keep", max_grade=2)
    assert (everything.n_queries, everything.n_documents, everything.n_features) == (784, 15211, 46)
    assert (np.diff(everything.starts).min(), everything.largest) == (5, 121)
    assert np.unique_counts(everything.relevance).counts.tolist() == [12279, 2001, 931]
    relevant = read_letor(paths)
    assert (relevant.n_queries, relevant.n_dropped) == (564, 220)
    same(joined(iterate_letor(paths, block_bytes=50_000)), relevant)


@pytest.mark.parametrize(("part", "n_queries"), [("train", 201), ("test", 50)])
def test_lightgbm_example_with_group_files(part, n_queries):
    place = folder("lightgbm_rank")
    path, groups = place / f"rank.{part}.gz", place / f"rank.{part}.query.gz"
    read = read_letor(path, groups=groups, missing_relevant="keep", n_features=300)
    sizes = [int(size) for size in gzip.decompress(groups.read_bytes()).split()]
    assert np.diff(read.starts).tolist() == sizes
    assert read.query_ids == tuple(str(number) for number in range(1, n_queries + 1))
    matrix, labels = load_svmlight_file(str(path), n_features=300)
    assert read.features.tobytes() == matrix.toarray().tobytes()
    assert read.relevance.tolist() == labels.tolist()
    options: dict[str, Any] = {"groups": groups, "missing_relevant": "keep", "n_features": 300}
    same(joined(iterate_letor(path, **options, block_bytes=9_000)), read)


def test_both_lightgbm_files_at_once():
    place = folder("lightgbm_rank")
    files = [place / f"rank.{part}.gz" for part in ("train", "test")]
    groups = [place / f"rank.{part}.query.gz" for part in ("train", "test")]
    read = read_letor(files, groups=groups)
    assert (read.n_queries, read.n_dropped, read.largest) == (248, 3, 27)
    same(joined(iterate_letor(files, groups=groups, block_bytes=20_000)), read)


def test_what_a_line_can_look_like(write):
    read = read_letor(write(TEXT))
    assert read.query_ids == ("a", "c")
    assert read.n_dropped == 1
    assert read.starts.tolist() == [0, 2, 4]
    assert read.relevance.tolist() == [2, 0, 1.5, 1]
    assert read.features.tolist() == [[0.5, 0, -1000], [0, 7, 0], [0.1, 0.2, 0.3], [0, 0, 0]]
    assert read.features.flags.c_contiguous
    assert not any(a.flags.writeable for a in (read.features, read.relevance, read.starts))
    assert (read.n_queries, read.n_documents, read.n_features, read.largest) == (2, 4, 3, 2)
    features, relevance = read.query(1)
    assert (features.tolist(), relevance.tolist()) == ([[0.1, 0.2, 0.3], [0, 0, 0]], [1.5, 1])
    with pytest.raises(InvalidInput, match=r"`i` must be an integer between 0 and n_queries-1=1"):
        read.query(2)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\n\n" + text + "\n# the end",
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(text[:60].encode()) + gzip.compress(text[60:].encode()),
        lambda text: gzip.compress(text.encode()) + bytes(512),
        lambda text: bz2.compress(text.encode()),
        lambda text: bz2.compress(text[:60].encode()) + bz2.compress(text[60:].encode()),
        lambda text: lzma.compress(("\ufeff" + text).encode()),
        lambda text: lzma.compress(text[:60].encode()) + lzma.compress(text[60:].encode()),
    ],
)
def test_line_ends_marks_and_compression(write, change):
    expected, path = read_letor(write(TEXT)), write(change(TEXT), "changed")
    same(read_letor(path), expected)
    for block_bytes in (1, 7, 64, 1000):
        same(joined(iterate_letor(path, block_bytes=block_bytes)), expected)


def test_the_same_qid_in_two_files_is_two_queries(write):
    one, two = write("1 qid:1 1:1\n", "one"), write("1 qid:1 2:1\n", "two")
    read = read_letor([one, str(two)])
    assert read.query_ids == ("1", "1")
    assert read.features.tolist() == [[1, 0], [0, 1]]
    same(joined(iterate_letor([one, two], block_bytes=1)), read)


def test_first_index(write):
    path = write("1 qid:1 1:5\n0 qid:1 2:6\n")
    assert read_letor(path).features.tolist() == [[5, 0], [0, 6]]
    assert read_letor(path, first_index=0).features.tolist() == [[0, 5, 0], [0, 0, 6]]
    assert read_letor(path, n_features=3).features.tolist() == [[5, 0, 0], [0, 6, 0]]
    zero = write("1 qid:1 1:5\n0 qid:1 0:6\n", "zero")
    assert read_letor(zero).features.tolist() == [[0, 5], [6, 0]]
    assert next(iterate_letor(zero, block_bytes=1)).features.tolist() == [[0, 5], [6, 0]]


def test_float32_is_the_nearest_to_the_double(write):
    numbers = ["0.1", "1.00000005960464477540", "16777217", "0e-400", "3.4028235e38", "-0.0"]
    numbers += ["3.4028235677973362e38", "-3.4028235677973362e38", "-1.1754944e-38"]
    pairs = " ".join(f"{i}:{number}" for i, number in enumerate(numbers, 1))
    read = read_letor(write(f"1 qid:1 {pairs}\n"), dtype=np.float32)
    assert read.features.dtype == np.float32
    assert read.features[0].tobytes() == np.array([float(n) for n in numbers], np.float32).tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_minmax_within_each_query(write, dtype):
    text = "1 qid:1 1:1 2:3 3:-4\n0 qid:1 1:3 2:3\n0 qid:1 1:2 2:3 3:4\n1 qid:2 1:9\n"
    read = read_letor(write(text), normalise="minmax", dtype=dtype)
    expected = [[0, 0, 0], [1, 0, 0.5], [0.5, 0, 1], [0, 0, 0]]
    assert read.features.tolist() == expected


def test_minmax_is_computed_in_double_precision_and_rounded_once(write):
    columns = [
        ("1e308", "0", "-1e308"),
        ("1e-300", "3e-300", "2e-300"),
        ("16777217", "16777216", "16777219"),
        ("0.1", "0.7", "0.3"),
        ("1e-400", "0", "5e-324"),
    ]
    text = "".join(
        "1 qid:1 " + " ".join(f"{i}:{column[row]}" for i, column in enumerate(columns, 1)) + "\n"
        for row in range(3)
    )
    path = write(text)
    options: dict[str, Any] = {"normalise": "minmax", "dtype": np.float32}
    exact = read_letor(path, normalise="minmax").features
    read = read_letor(path, **options)
    by_hand = np.array([[1, 0, 1 / 3], [0.5, 1, 0], [0, 0.5, 1]], np.float32)
    assert np.array_equal(read.features[:, :3], by_hand)
    assert read.features[:, 4].tolist() == [0, 0, 1]
    assert read.features.dtype == np.float32
    assert read.features.tobytes() == exact.astype(np.float32).tobytes()
    same(joined(iterate_letor(path, block_bytes=1, **options)), read)


def test_single_precision_after_minmax_is_the_double_one_rounded(write, monkeypatch):
    monkeypatch.setattr(letor_queries, "CHUNK_BYTES", 500)  # many blocks, with queries across
    path = write(made_up())
    for missing_relevant in ("drop", "keep"):
        options: dict[str, Any] = {"normalise": "minmax", "missing_relevant": missing_relevant}
        exact = read_letor([path, path], **options)
        for n_threads in (1, 3):
            read = read_letor([path, path], **options, dtype=np.float32, n_threads=n_threads)
            same(read, replace(exact, features=exact.features.astype(np.float32)))
            assert not any(a.flags.writeable for a in (read.features, read.relevance, read.starts))
        parts = iterate_letor([path, path], **options, dtype=np.float32, block_bytes=900)
        same(joined(parts), read)


def test_minmax_in_single_precision_needs_little_more_memory(write):
    pairs = " ".join(f"{index}:0.{index}" for index in range(1, 101))
    path = write("".join(f"1 qid:{row // 10} {pairs}\n" for row in range(30_000)))
    table = 30_000 * 100 * 4

    def read():
        read_letor(path, dtype=np.float32, normalise="minmax")

    read()  # compiled
    assert table < peak_memory(read) < 1.6 * table


QIDS = ["007", "7", "+7", "8", "-7", "-007", "0", "-0", "+000", "9223372036854775807"]


def test_integer_qids_are_equal_by_value_as_in_scikit_learn(write):
    text = "".join(f"1 qid:{identity} 1:{row}\n" for row, identity in enumerate(QIDS))
    path = write(text)
    theirs = load_svmlight_file(str(path), query_id=True)[2]
    read = read_letor(path)
    assert read.starts[1:-1].tolist() == (np.flatnonzero(np.diff(theirs)) + 1).tolist()
    assert [int(identity) for identity in read.query_ids] == theirs[read.starts[:-1]].tolist()
    assert read.query_ids == ("007", "8", "-7", "0", "9223372036854775807")  # as first written
    for block_bytes in (1, 20, 60):
        same(joined(iterate_letor(path, block_bytes=block_bytes)), read)


def test_other_qids_are_equal_by_their_text(write):
    names = ["7.0", "7", "007.0", "1_0", "10", "\u0667", "0x7", "+", "-", "+-7", "7-"]
    huge = "1" + "0" * 30
    text = "".join(f"1 qid:{identity} 1:1\n" for identity in [*names, huge, f"00{huge}"])
    assert read_letor(write(text)).query_ids == (*names, huge)


def test_minmax_of_the_largest_numbers(write):
    path = write("1 qid:1 1:-1.7e308\n1 qid:1 1:0\n0 qid:1 1:1.7e308\n")
    assert read_letor(path, normalise="minmax").features.tolist() == [[0], [0.5], [1]]


def test_minmax_is_what_numpy_computes_for_many_queries(write):
    rng = np.random.default_rng(1)
    values = rng.normal(size=(1500, 3))
    lines = [
        f"1 qid:{row // 3} "
        + " ".join(f"{i + 1}:{v!r}" for i, v in enumerate(values[row].tolist()))
        for row in range(len(values))
    ]
    lists = values.reshape(500, 3, 3)
    low, high = lists.min(1, keepdims=True), lists.max(1, keepdims=True)
    expected = ((lists - low) / (high - low)).reshape(1500, 3)
    read = read_letor(write("\n".join(lines)), normalise="minmax", n_threads=3)
    assert read.features.tobytes() == expected.tobytes()


def test_dropped_queries_are_counted_wherever_they_are(write):
    none, some = "0 qid:{} 1:1\n0 qid:{} 1:2\n", "1 qid:{} 1:3\n"
    text = "".join((some if q in (4, 5, 9) else none).replace("{}", str(q)) for q in range(13))
    path = write(text)
    read = read_letor(path)
    assert (read.query_ids, read.n_dropped) == (("4", "5", "9"), 10)
    assert read.features.tolist() == [[3], [3], [3]]
    assert read_letor(path, missing_relevant="keep").n_dropped == 0
    for block_bytes in (1, 13, 40, 1000):
        same(joined(iterate_letor(path, block_bytes=block_bytes)), read)
    with pytest.raises(InvalidInput, match="must have at least one query with a relevant document"):
        read_letor(write(none, "none"))
    with pytest.raises(InvalidInput, match="must have at least one query with a relevant document"):
        list(iterate_letor(write(none, "none")))


def made_up(n_queries=60):
    rng = np.random.default_rng(7)
    lines = []
    for query in range(n_queries):
        for _ in range(rng.integers(1, 9)):
            indices = np.flatnonzero(rng.random(12) < 0.6) + 1
            pairs = [f"{i}:{rng.normal() * 10.0 ** rng.integers(-30, 30)!r}" for i in indices]
            lines.append(f"{rng.integers(0, 3)} qid:{query} " + " ".join(pairs).replace("np.", ""))
            lines[-1] += rng.choice(["", " # note", "\n", "\r"])
    return "\n".join(lines).replace("float64(", "").replace(")", "")


@pytest.mark.parametrize("chunk_bytes", [1, 50, 333, 4000, 10**6])
def test_threads_and_chunks_make_no_difference(write, monkeypatch, chunk_bytes):
    path = write(made_up())
    expected = read_letor(path, n_threads=1)
    monkeypatch.setattr(letor_parse, "CHUNK_BYTES", chunk_bytes)
    for n_threads in (1, 2, 5):
        same(read_letor(path, n_threads=n_threads), expected)
    same(joined(iterate_letor(path, n_threads=2, block_bytes=3000)), expected)


@pytest.mark.parametrize("block_bytes", [1, 100, 1000, 5000, 10**6])
def test_blocks_are_the_whole(write, block_bytes):
    path, expected = write(made_up()), read_letor(write(made_up(), "whole"))
    parts = list(iterate_letor(path, block_bytes=block_bytes))
    same(joined(parts), expected)
    assert (len(parts) == 1) == (block_bytes == 10**6)
    given: dict[str, Any] = {"n_features": expected.n_features, "first_index": 1}
    same(joined(iterate_letor(path, block_bytes=block_bytes, **given)), expected)


def peak_memory(read):
    tracemalloc.start()
    read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_blocks_bound_the_memory(write):
    pairs = " ".join(f"{index}:0.125" for index in range(1, 101))
    path = write("".join(f"1 qid:{row // 10} {pairs}\n" for row in range(5000)))

    def blocks():
        for part in iterate_letor(path, block_bytes=50_000):
            assert part.n_documents < 100

    blocks()  # compiled
    assert peak_memory(blocks) < 10 * 50_000 < peak_memory(lambda: read_letor(path)) / 5


def test_more_slow_numbers_than_the_list_holds(write, monkeypatch):
    monkeypatch.setattr(letor_parse, "_SLOW_NUMBERS", 1)
    long = "0.1000000000000000055511151231257827"
    lines = [f"1 qid:1 1:{long} 2:{long}1 3:{row}" for row in range(20)]
    read = read_letor(write("\n".join(lines)))
    assert read.features.tolist() == [[0.1, 0.1, row] for row in range(20)]


def test_other_things_that_can_be_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("1 qid:1 1:2\n",))
    writer.start()
    assert read_letor(path).features.tolist() == [[2]]
    writer.join()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_features": 0}, "`n_features` must be an integer of at least 1"),
        ({"first_index": 2}, "`first_index` must be an integer between 0 and 1"),
        ({"dtype": np.int64}, "`dtype` must be float64 or float32"),
        ({"dtype": "colour"}, "`dtype` must be float64 or float32, got 'colour'"),
        ({"max_grade": -1}, "`max_grade` must be a number of at least 0"),
        ({"n_threads": 0}, "`n_threads` must be an integer of at least 1"),
        ({"groups": []}, "`groups` must name at least one file"),
        ({"groups": ["a", "b"]}, "`groups` must name one group file for each of the 1 files"),
        ({"groups": 3}, "`groups` must be a path or a list of paths, got 3"),
    ],
)
def test_bad_options(write, options, sentence):
    path = write(TEXT)
    with pytest.raises(InvalidInput, match=sentence):
        read_letor(path, **options)
    with pytest.raises(InvalidInput, match=sentence):
        iterate_letor(path, **options)  # before anything is read


def test_unknown_choices(write):
    with pytest.raises(UnknownName, match="Did you mean 'keep'"):
        read_letor(write(TEXT), missing_relevant="kept")
    with pytest.raises(UnknownName, match="`normalise` must be one of minmax"):
        read_letor(write(TEXT), normalise="min-max")
    with pytest.raises(InvalidInput, match="`block_bytes` must be an integer of at least 1"):
        iterate_letor(write(TEXT), block_bytes=0)
    with pytest.raises(InvalidInput, match="`paths` must name at least one file"):
        read_letor([])
