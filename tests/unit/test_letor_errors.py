"""Every file that cannot be read is refused with one sentence that names the line."""

import bz2
import gzip
import io
import lzma
import re
import tarfile

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.letor import parse as letor_parse
from keyhole.data.letor.reader import iterate_letor, read_letor

FLOAT32 = r"a value must be 0 or fit float32 with all its digits \(1.2e-38 to 3.4e38\)"
GOOD = "1 qid:1 1:1 2:2\n0 qid:1 1:3 # fine\n"


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="letor.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_text


def refused(sentence, path, **options):
    """Check that all ways to read a file end in the same sentence."""
    said = []
    for n_threads in (1, 2):
        with pytest.raises(InvalidInput, match=sentence) as error:
            read_letor(path, n_threads=n_threads, **options)
        said.append(str(error.value))
    for block_bytes in (1, 64, 10**6):
        with pytest.raises(InvalidInput, match=sentence) as error:
            list(iterate_letor(path, block_bytes=block_bytes, **options))
    assert said[0] == said[1] == str(error.value)
    assert re.fullmatch(r"[^\n]*[^.]\.", said[0])
    assert str(path) in said[0]


LINES = [
    ("3 qid:2 1:", "3 qid:2 1:1", "a feature must be index:value, got '1:' without a value"),
    ("3 qid:2 1", "3 qid:2 1:1", "a feature must be index:value, got '1'"),
    ("3 qid:2 1: 2:3", "3 qid:2 1:1 2:3", "got '1:' without a value"),
    ("3 qid:2 1:#2", "3 qid:2 1:1#2", "got '1:' without a value"),
    ("3 qid:2 x:1", "3 qid:2 1:1", "a feature must be index:value, got 'x:1'"),
    ("3 qid:2 -1:1", "3 qid:2 1:1", "a feature must be index:value, got '-1:1'"),
    ("3 qid:2 +1:1", "3 qid:2 1:1", r"a feature must be index:value, got '\+1:1'"),
    ("3 qid:2 1.5:1", "3 qid:2 1:1", "a feature must be index:value, got '1.5:1'"),
    ("3 qid:2 :1", "3 qid:2 1:1", "a feature must be index:value, got ':1'"),
    ("3 qid:2 1:1 qid:2", "3 qid:2 1:1", "a feature must be index:value, got 'qid:2'"),
    ("3 qid:2 1:nan", "3 qid:2 1:0", "a value must be a finite number, got 'nan'"),
    ("3 qid:2 1:-inf", "3 qid:2 1:-1", "a value must be a finite number, got '-inf'"),
    ("3 qid:2 1:1e999", "3 qid:2 1:1e99", "a value must be a finite number, got '1e999'"),
    ("3 qid:2 1:1_0", "3 qid:2 1:10", "a value must be a finite number, got '1_0'"),
    ("3 qid:2 1:1:2", "3 qid:2 1:1 2:2", "a value must be a finite number, got '1:2'"),
    ("3 qid:2 1:0x10", "3 qid:2 1:10", "a value must be a finite number, got '0x10'"),
    ("3 qid:2 1:1e", "3 qid:2 1:1e0", "a value must be a finite number, got '1e'"),
    ("3 qid:2 1:.", "3 qid:2 1:0.", "a value must be a finite number, got '.'"),
    ("3 qid:2 1:--1", "3 qid:2 1:-1", "a value must be a finite number, got '--1'"),
    ("3 qid:2 1:1\0", "3 qid:2 1:1", r"a value must be a finite number, got '1\\x00'"),
    ("3 qid:2 1:1\v", "3 qid:2 1:1\t", r"a value must be a finite number, got '1\\x0b'"),
    ("3 qid:2 1:\u0661", "3 qid:2 1:1", r"a value must be a finite number, got '\\xd9\\xa1'"),
    ("nan qid:2 1:1", "1 qid:2 1:1", "a label must be a finite number of at least 0, got 'nan'"),
    ("inf qid:2 1:1", "1 qid:2 1:1", "a label must be a finite number of at least 0, got 'inf'"),
    (
        "1e400 qid:2 1:1",
        "1e100 qid:2 1:1",
        "a label must be a finite number of at least 0, got '1e400'",
    ),
    ("-1 qid:2 1:1", "1 qid:2 1:1", "a label must be a finite number of at least 0, got '-1'"),
    (
        "-0.00000000000000000000000001 qid:2 1:1",
        "0.00000000000000000000000001 qid:2 1:1",
        "a label must be a finite number of at least 0",
    ),
    ("one qid:2 1:1", "1 qid:2 1:1", "a label must be a finite number of at least 0, got 'one'"),
    ("qid:2 1:1", "1 qid:2 1:1", "a label must be a finite number of at least 0, got 'qid:2'"),
    ("1:1 2:3", "1 qid:2 1:1 2:3", "a label must be a finite number of at least 0, got '1:1'"),
    (
        "1 qid:2 2:1 1:1",
        "1 qid:2 1:1 2:1",
        "feature indices must ascend within a line, got '1:1' after",
    ),
    (
        "1 qid:2 7:1 1:1",
        "1 qid:2 1:1 7:1",
        "feature indices must ascend within a line, got '1:1' after",
    ),
    (
        "1 qid:2 7:1 8:1 2:1",
        "1 qid:2 2:1 7:1 8:1",
        "feature indices must ascend within a line, got '2:1' after",
    ),
    (
        "1 qid:2 1:1 1:1",
        "1 qid:2 1:1 2:1",
        "feature indices must ascend within a line, got '1:1' after",
    ),
    (
        "1 qid:2 20000000:1",
        "1 qid:2 900:1",
        "a feature index must be at most 16777216, got '20000000:1'",
    ),
    (
        "1 qid:2 99999999999999999999:1",
        "1 qid:2 999:1",
        "a feature index must be at most 16777216, got '9999",
    ),
    (
        "1 qid:2 99999999999999999999:1 2:2",
        "1 qid:2 2:2 999:1",
        "a feature must be index:value, got '9999",
    ),
    (
        "1 1:1",
        "1 qid:2 1:1",
        "a document must have qid:ID after its label, as no group file is given",
    ),
    ("1", "1 qid:2", "a document must have qid:ID after its label"),
    ("1 qid: 1:1", "1 qid:2 1:1", "a query must be qid:ID, got 'qid:'"),
    ("1 qid:\x01 1:1", "1 qid:2 1:1", r"a query must be qid:ID, got 'qid:\\x01'"),
    ("1 quid:1 1:1", "1 qid:2 1:1", "a feature must be index:value, got 'quid:1'"),
    (
        "1 qid:2\v1:1",
        "1 qid:2\t1:1",
        r"a query must be qid:ID, got 'qid:2\\x0b1:1' with U\+000B \(a control",
    ),
    ("1 qid:2\f1:1", "1 qid:2 1:1", r"a query must be qid:ID, got 'qid:2\\x0c1:1' with U\+000C"),
    ("1 qid:2\0001:1", "1 qid:2 1:1", r"a query must be qid:ID, got 'qid:2\\x001:1' with U\+0000"),
    ("1 qid:2 \v1:1", "1 qid:2 1:1", r"a feature must be index:value, got '\\x0b1:1' with U\+000B"),
    (
        "1 qid:2 1:1\u00a02:1",
        "1 qid:2 1:1 2:1",
        r"a finite number, got '1\\xc2\\xa02:1' with U\+00A0 \(no-break sp",
    ),
    ("\ufeff1 qid:2 1:1", "1 qid:2 1:1", r"a label must be .*got '\\xef\\xbb\\xbf1' with U\+FEFF"),
    ("1\u2003qid:2 1:1", "1 qid:2 1:1", r"a label must be .* with U\+2003 \(em space\) in it"),
    ("1 qid:2\r1:1", "1 qid:2\t1:1", "a line must end with a line feed, got a carriage return"),
    ("1\rqid:2 1:1", "1\tqid:2 1:1", "a line must end with a line feed, got a carriage return"),
    (
        "1 qid:2 1:1\r0 qid:2 1:2",
        "1 qid:2 1:1\n0 qid:2 1:2",
        "a line must end with a line feed, got a carriage return",
    ),
    (
        "1 qid:2 1:1 # c\r0 qid:2 1:2",
        "1 qid:2 1:1 # c\n0 qid:2 1:2",
        "a line must end with a line feed, got a carriage return",
    ),
    (
        "# c\r0 qid:2 1:2",
        "# c\n1 qid:2 1:2",
        "a line must end with a line feed, got a carriage return",
    ),
]
HIDDEN = "\u00a0\u2003\u3000\u0085\u1680\u2028\u200b\u2060\ufeff\x7f"


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_cannot_be_seen_never_becomes_part_of_a_qid(write, hidden):
    for line in (f"1 qid:10{hidden}1:0.5 2:12", f"1 qid:10{hidden} 1:0.5", f"1 qid:{hidden}10 1:1"):
        refused(rf"line 3: a qid must .* with U\+{ord(hidden):04X} \(", write(GOOD + line))


@pytest.mark.parametrize("identity", ["101:0.5", "10,1:0.5", "a:b", ":", "10;1:0.5"])
def test_a_qid_has_no_colon(write, identity):
    path = write(f"{GOOD}1 qid:{identity} 2:12\n")
    refused(f"line 3: a qid must .* nor a colon in it, got '{identity}'", path)


@pytest.mark.parametrize(("line", "mended", "sentence"), LINES)
def test_bad_lines(write, line, mended, sentence):
    """The same line with what is wrong put right is read."""
    refused(f"letor.txt, line 4: .*{sentence}", write(f"{GOOD}\n{line}\n1 qid:9 1:1\n"))
    refused(f"letor.txt, line 3: .*{sentence}", write(GOOD + line))
    read = read_letor(write(f"{GOOD}\n{mended}\n1 qid:9 1:1\n"))
    assert read.query_ids == ("1", "2", "9")


def test_the_first_of_many_errors_is_named(write, monkeypatch):
    monkeypatch.setattr(letor_parse, "CHUNK_BYTES", 16)
    lines = [GOOD, "0 qid:1 1:inf\n", GOOD, "0 qid:1 1:\n", "-1 qid:1\n"]
    refused("line 3: a value must be a finite number, got 'inf'", write("".join(lines)))
    refused("line 3: a feature must be index:value", write("".join([GOOD, *lines[3:]])))


@pytest.mark.parametrize(
    ("token", "options", "sentence"),
    [
        ("3 qid:1 1:1", {"max_grade": 2}, "at least 0 and at most max_grade=2, got '3'"),
        ("2.00000000000000000000001e1 qid:1", {"max_grade": 2}, "at most max_grade=2, got '2.0000"),
        ("1 qid:1 0:1", {"first_index": 1}, "must be at least first_index=1, got '0:1'"),
        (
            "1 qid:1 3:1",
            {"n_features": 2},
            "at most 2 with n_features=2 and first_index=1, got '3:1'",
        ),
        ("1 qid:1 2:1", {"n_features": 2, "first_index": 0}, "at most 1 with n_features=2"),
        ("1 qid:1 1:1e39", {"dtype": np.float32}, f"{FLOAT32}, got '1e39'; normalise='minmax'"),
        ("1 qid:1 1:3.4028235677973367e38", {"dtype": np.float32}, FLOAT32),
        ("1 qid:1 1:-1e300", {"dtype": np.float32}, f"{FLOAT32}, got '-1e300'; normalise="),
        ("1 qid:1 1:1e-300", {"dtype": np.float32}, f"{FLOAT32}, got '1e-300'; normalise="),
        ("1 qid:1 1:-1e-39", {"dtype": np.float32}, f"{FLOAT32}, got '-1e-39'; normalise="),
        ("1 qid:1 1:1e-400", {"dtype": np.float32}, f"{FLOAT32}, got '1e-400'; normalise="),
        ("1 qid:1 1:" + "0" * 20 + "1e-40", {"dtype": np.float32}, f"{FLOAT32}, got '0000"),
        ("1 qid:1 1:inf", {"dtype": np.float32}, "a value must be a finite number, got 'inf'"),
        ("1 qid:1 1:1e309", {"dtype": np.float32}, "a value must be a finite number, got '1e309'"),
    ],
)
def test_lines_that_options_forbid(write, token, options, sentence):
    refused(f"line 3: .*{sentence}", write(f"1 qid:1 1:1\n0 qid:1\n{token}\n"), **options)


def test_a_query_that_comes_back(write):
    text = "1 qid:1 1:1\n1 qid:2 1:1\n\n0 qid:1 1:2\n0 qid:2 1:2\n"
    refused("line 4: documents of a query must follow one another, got qid:1 again", write(text))


def test_qids_that_are_no_text(write):
    refused(r"line 1: a qid must be UTF-8 text, got '\\xff'", write(b"1 qid:\xff 1:1\n"))


def test_qids_are_compared_to_the_byte(write):
    read = read_letor(write("1 qid:ab 1:1\n1 qid:ac 1:1\n1 qid:a 1:1\n1 qid:é# 1:1\n"))
    assert read.query_ids == ("ab", "ac", "a", "é")


def test_integer_qids_come_back_by_their_value(write):
    text = "1 qid:007 1:1\n1 qid:8 1:1\n0 qid:+7 1:2\n"
    refused(r"line 3: documents of a query must follow one another, got qid:\+7 again", write(text))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "must have at least one document"),
        (b"\n\n \t\n", "must have at least one document"),
        (b"# only\n# comments", "must have at least one document"),
        (b"1 qid:1\n0 qid:1\n", "must have at least one feature"),
        (b"\xff\xfe1\x00 \x00", "must be a LETOR file, got UTF-16 text: save it as UTF-8"),
        (b"\x00\x01\x02\x03", "line 1: a label must be"),
        (bytes(range(14, 30)) * 50, "line 1: a label must be"),
        (b"\x1f\x8b", "must be a readable LETOR file: "),
        (b"\x1f\x8b\x08garbage-garbage-garbage", "must be a readable LETOR file: "),
        (
            gzip.compress(GOOD.encode() * 50, mtime=0)[:-10],
            "must be a readable LETOR file: Compressed file",
        ),
        (
            gzip.compress(GOOD.encode() * 50, mtime=0)[:30],
            "must be a readable LETOR file: Compressed file",
        ),
        (gzip.compress(b"", mtime=0), "must have at least one document"),
    ],
)
def test_files_that_are_something_else(write, content, sentence):
    refused(sentence, write(content))


def tarred(content):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        member = tarfile.TarInfo("train.txt")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def saved(save, *arrays):
    file = io.BytesIO()
    save(file, *arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x28\xb5\x2f\xfd\x24\x00", "a Zstandard file: unpack it first, with zstd -d"),
        (saved(np.savez, np.arange(3)), "a ZIP archive, as .zip, .npz and .xlsx files are: unpack"),
        (saved(np.save, np.arange(3)), "a NumPy array: write its table as text first"),
        (b"PAR1\x15\x04", "a Parquet file: write its table as text first"),
        (tarred(GOOD.encode()), "a tar archive: unpack it first"),
        (gzip.compress(tarred(GOOD.encode()), mtime=0), "a tar archive: unpack it first"),
        (bz2.compress(lzma.compress(GOOD.encode())), "a file compressed twice: unpack it first"),
    ],
)
def test_other_formats_are_called_by_their_names(write, content, what):
    refused(f"letor.txt must be a LETOR file, got {what}", write(content))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_files(write, pack):
    text = np.random.default_rng(0).integers(1, 9, 4000).astype(str)
    packed = pack("".join(f"1 qid:1 1:0.{digit}\n" for digit in text).encode())
    for damaged in (packed[:-1], packed[: len(packed) // 2], packed[:20], packed + b"more"):
        refused("must be a readable LETOR file: ", write(damaged))
    for place in (len(packed) // 2, len(packed) - 6):
        flipped = bytearray(packed)
        flipped[place] ^= 1
        path = write(bytes(flipped))
        for read in (read_letor, lambda path: list(iterate_letor(path))):
            with pytest.raises(InvalidInput, match=r"must be a readable LETOR file: [^\n]*\.$"):
                read(path)


def test_a_comment_may_hold_anything_but_a_lone_carriage_return(write):
    text = "1 qid:1 1:1 # \v\f\0 \u00a0 \u2028 \ufeff :\r\n# \u0085\r\r\n0 qid:1 1:2 # end\r"
    assert read_letor(write(text)).features.tolist() == [[1], [2]]


def test_paths_that_lead_nowhere(tmp_path):
    refused("absent.txt must be a readable LETOR file: No such file", tmp_path / "absent.txt")
    refused("must be a readable LETOR file: Is a directory", tmp_path)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ("2\n2\n", "sizes that sum to the 3.* documents of .*letor.txt, got 4"),
        ("1\n1\n", "sizes that sum to the [23].* documents of .*letor.txt, got 2"),
        ("3\n\n0\n", "sizes.query, line 3: a group size must be an integer of at least 1, got '0'"),
        ("-3\n", "line 1: a group size must be an integer of at least 1, got '-3'"),
        ("1.5\n1.5", "line 1: a group size must be an integer of at least 1, got '1.5'"),
        ("1 2\n", "line 1: a group size must be an integer of at least 1, got '1 2'"),
        ("999999999999999\n" * 8, "sizes that sum to the 3 documents of .*, got 7999999999999992"),
        ("1" * 5000, "line 1: a group size must be an integer of at least 1, got '1111.*'"),
        ("", "must have at least one group size"),
    ],
)
def test_group_files(write, sizes, sentence):
    path, groups = write("1 1:1\n0 1:2\n2 1:3\n"), write(sizes, "sizes.query")
    with pytest.raises(InvalidInput, match=sentence):
        read_letor(path, groups=groups)
    for block_bytes in (1, 13, 1000):
        with pytest.raises(InvalidInput, match=sentence):
            list(iterate_letor(path, groups=groups, block_bytes=block_bytes))


def test_group_files_and_qids_exclude_each_other(write, tmp_path):
    path, groups = write("1 1:1\n0 qid:1 1:2\n"), write("2\n", "sizes")
    refused("line 2: a document must have no qid:ID when the group file", path, groups=groups)
    refused("line 1: a document must have qid:ID", path)
    with pytest.raises(InvalidInput, match="absent must be a readable group file: No such file"):
        read_letor(path, groups=tmp_path / "absent")


def test_tables_that_fit_nowhere(write):
    with pytest.raises(InvalidInput, match="must fit into memory as a table of 2 documents"):
        read_letor(write(GOOD), n_features=2**60)
