"""Numbers are read to the bit, however they are written and wherever the text is cut."""

import re
import struct
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import example, given, settings, strategies as st
from sklearn.datasets import load_svmlight_file

from keyhole.base.errors import InvalidInput
from keyhole.data.letor import parse as letor_parse
from keyhole.data.letor.decimal import nearest
from keyhole.data.letor.reader import iterate_letor, read_letor

SETTINGS = settings(deadline=None, derandomize=True, max_examples=200)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
DIGITS = st.text("0123456789", min_size=1, max_size=25)
SIGN = st.sampled_from(["", "-", "+"])
EXPONENT = st.one_of(
    st.just(""),
    st.builds(
        "{}{}{}".format,
        st.sampled_from("eE"),
        SIGN,
        st.one_of(
            st.integers(0, 30).map(str),
            st.integers(0, 285).map(str),
            st.integers(0, 40).map("{:04}".format),
        ),
    ),
)
WRITTEN = st.one_of(
    st.builds("{}{}{}".format, SIGN, DIGITS, EXPONENT),
    st.builds("{}{}.{}{}".format, SIGN, DIGITS, DIGITS, EXPONENT),
    st.builds("{}{}.{}".format, SIGN, DIGITS, EXPONENT),
    st.builds("{}.{}{}".format, SIGN, DIGITS, EXPONENT),
    FINITE.map(repr),
    st.builds("{:.{}f}".format, st.floats(-1e15, 1e15), st.integers(0, 30)),
    st.builds("{:.{}e}".format, FINITE, st.integers(0, 30)),
    st.floats(-1e-307, 1e-307).map(repr),  # subnormal ones among them
    st.integers(-(10**25), 10**25).map(str),
    st.floats(0, 1).map("{:.6f}".format),
    # Half way between two doubles, and a digit either side of it.
    st.builds(
        lambda m, q, d: f"{(2 * m + 1) * 5**q + d}e-{q}",
        st.integers(2**52, 2**53 - 1),
        st.integers(0, 9),
        st.integers(-1, 1),
    ),
)


def bits(values):
    return [struct.pack("<d", value) for value in values]


@SETTINGS
@given(st.lists(WRITTEN.filter(lambda text: abs(float(text)) < 1e308), min_size=1, max_size=30))
@example(["0", "-0", "+0", "-0.0e5", "0e999", "-0e-999", "00000000000000000000000000"])
@example(["5e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "1e-400", "-1e-400"])
@example(["9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740994"])
@example(["1e22", "1e23", "123456789012345678e-22", "8.5e22", "8.5e23", "1e-22", "1e-23"])
@example(["0.1000000000000000055511151231257827", "999999999999999999", "9999999999999999999"])
@example(["1.", ".5", "-.5e1", "0.000000000000000000000001234567890123456789", "1e0000000000001"])
def test_numbers_are_those_of_float(tmp_path_factory, written):
    pairs = " ".join(f"{index}:{text}" for index, text in enumerate(written, 1))
    path = tmp_path_factory.mktemp("letor") / "numbers"
    path.write_text(f"1 qid:1 {pairs}\n0 qid:1 {pairs}#")
    for row in read_letor(path, n_threads=1).features:
        assert bits(row) == bits(float(text) for text in written)


@SETTINGS
@given(st.lists(WRITTEN.map(lambda t: t.lstrip("-+")), min_size=1, max_size=10))
def test_labels_are_those_of_float(tmp_path_factory, written):
    written = [text for text in written if float(text) < 1e308] or ["1"]
    path = tmp_path_factory.mktemp("letor") / "labels"
    path.write_text("".join(f"{text} qid:1 1:1\n" for text in written))
    read = read_letor(path, n_threads=1, missing_relevant="keep")
    assert bits(read.relevance) == bits(float(text) for text in written)


@settings(SETTINGS, max_examples=1000)
@given(st.integers(0, 10**18 - 1), st.integers(-100, 100))
def test_the_nearest_double(mantissa, exponent):
    value = nearest(mantissa, exponent)
    assert np.isnan(value) or value == float(f"{mantissa}e{exponent}")


@settings(SETTINGS, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["7", "007", "+7", "-7", "8", "0", "-0", "00"]),
            st.dictionaries(st.integers(1, 20), WRITTEN.filter(lambda t: abs(float(t)) < 1e308)),
        ),
        min_size=1,
        max_size=6,
        unique_by=lambda document: int(document[0]),
    )
)
def test_files_are_read_as_scikit_learn_reads_them(tmp_path_factory, documents):
    path = tmp_path_factory.mktemp("letor") / "both"
    lines = [
        f"1 qid:{identity} " + " ".join(f"{i}:{features[i]}" for i in sorted(features))
        for identity, features in documents
    ]
    path.write_text("\n".join(lines))
    matrix, _, queries = load_svmlight_file(str(path), query_id=True, n_features=20)
    read = read_letor(path, n_threads=1, n_features=20)
    # A sparse matrix that becomes a dense one loses the sign of 0.
    assert bits(read.features.ravel() + 0.0) == bits(matrix.toarray().ravel())
    assert [int(identity) for identity in read.query_ids] == queries.tolist()


NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def strictly_read(text):
    """Read a text by the rules of docs/data.md; None if it breaks one of them."""
    documents = []
    for line in text.split("\n"):
        line = line.rstrip("\r")
        tokens = re.findall(r"[^ \t]+", line.split("#")[0])
        if "\r" in line:
            return None
        if not tokens:
            continue
        if len(tokens) == 1 or not NUMBER.fullmatch(tokens[0]) or float(tokens[0]) < 0:
            return None
        identity = re.fullmatch(r"qid:([^:\s\0]+)", tokens[1])
        pairs = [re.fullmatch(r"([0-9]+):(.+)", token) for token in tokens[2:]]
        if not identity or not all(pair and NUMBER.fullmatch(pair[2]) for pair in pairs):
            return None
        indices = [int(pair[1]) for pair in pairs if pair]
        if indices != sorted(set(indices)) or max(indices, default=0) > 999:
            return None
        values = [float(pair[2]) for pair in pairs if pair]
        name = int(identity[1]) if re.fullmatch("[+-]?[0-9]+", identity[1]) else identity[1]
        documents.append((float(tokens[0]), name, dict(zip(indices, values, strict=True))))
    starts = [i for i, d in enumerate(documents) if not i or documents[i - 1][1] != d[1]]
    known = len({documents[i][1] for i in starts}) == len(starts)
    return documents if known and any(features for *_, features in documents) else None


SEPARATOR = st.sampled_from(
    [*[" "] * 60, "\t", "  ", "\r", "\v", "\0", "\u00a0", "\u3000", "", ":", "#"]
)
LINE = st.builds(
    lambda tokens, separators, end: (
        "".join(t + s for t, s in zip(tokens, separators, strict=False)) + end
    ),
    st.tuples(
        st.sampled_from([*["1", "0", "2.5", "+1"] * 4, "-1", ""]),
        st.sampled_from(["qid:7", "qid:7", "qid:007", "qid:7.0", "qid:8", "qid:x:y", "1:2"]),
        st.sampled_from(["0:1", "1:0.5", "2:123.456789", "3:-1", "3:-0.1e+2", "1:"]),
        st.sampled_from(["4:0.1234567", "5:1.", "6:.5e1", "7:12345678.12345678", "8:9", "9:1e"]),
        st.sampled_from(["11:0.000000", "12:-0.123456", "13:1e-7", "", "#x", "14"]),
    ),
    st.lists(SEPARATOR, min_size=5, max_size=5),
    st.sampled_from(["\n", "\n", "\n", "\n", "\r\n", "\r\r\n", "\r", ""]),
)


@settings(SETTINGS, max_examples=600)
@given(st.lists(LINE, min_size=1, max_size=3).map("".join))
def test_nothing_is_swallowed(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("letor") / "any"
    path.write_bytes(text.encode())
    expected = strictly_read(text)
    try:
        read = read_letor(path, n_threads=1, missing_relevant="keep", first_index=0)
    except InvalidInput:
        assert expected is None
        return
    assert expected is not None
    assert bits(read.relevance) == bits(label for label, *_ in expected)
    wide = [[features.get(i, 0.0) for i in range(read.n_features)] for *_, features in expected]
    assert bits(read.features.ravel()) == bits(np.ravel(wide))
    names = np.repeat(read.query_ids, np.diff(read.starts)).tolist()
    for name, (_, value, _) in zip(names, expected, strict=True):
        assert value == (int(name) if isinstance(value, int) else name)


LISTS = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.dictionaries(st.integers(1, 9), WRITTEN.filter(lambda t: abs(float(t)) < 1e308)),
            st.sampled_from(["\n", "\r\n", " # c\n", "\n\n", "\n#\n"]),
        ),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=6,
)


@SETTINGS
@given(LISTS, st.integers(1, 200), st.integers(1, 4), st.integers(1, 300), st.booleans())
def test_cuts_make_no_difference(
    tmp_path_factory, lists, chunk_bytes, n_threads, block_bytes, ended
):
    text, expected = "", []
    for query, documents in enumerate(lists):
        for label, features, end in documents:
            pairs = "".join(f" {i}:{features[i]}" for i in sorted(features))
            text += f"{label} qid:{query}{pairs}{end}"
            expected += [float(features.get(i, 0)) for i in range(1, 10)]
    path = tmp_path_factory.mktemp("letor") / "cut"
    path.write_bytes((text if ended else text.rstrip("\r\n")).encode())
    options: dict[str, Any] = {"n_features": 9, "missing_relevant": "keep", "n_threads": n_threads}
    with patch.object(letor_parse, "CHUNK_BYTES", chunk_bytes):
        read = read_letor(path, **options)
        parts = list(iterate_letor(path, block_bytes=block_bytes, **options))
    assert bits(read.features.ravel()) == bits(expected)
    assert np.diff(read.starts).tolist() == [len(documents) for documents in lists]
    assert b"".join(part.features.tobytes() for part in parts) == read.features.tobytes()
    assert [i for part in parts for i in part.query_ids] == list(read.query_ids)
    assert all(part.starts[-1] == len(part.relevance) for part in parts)
