"""Reading people by items from CSV files."""

import gzip

import numpy as np
import pytest

from keyhole.data import read_ratings
from keyhole.errors import InvalidInput, UnknownName


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="ratings.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def test_ratings_are_relevance_by_default(write):
    table = read_ratings(write("tea, coffee\n1,2.5\n0,4\n"))
    assert table.item_names == ("tea", "coffee")
    assert np.array_equal(table.values, [[1.0, 2.5], [0.0, 4.0]])


def test_gzip_quotes_byte_order_mark_and_blank_lines(tmp_path):
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress('\ufeff"a, b",c\n1,2\n\n3,4\n'.encode()))
    table = read_ratings(path)
    assert table.item_names == ("a, b", "c")
    assert np.array_equal(table.values, [[1, 2], [3, 4]])


def test_threshold_is_at_least(write):
    path = write("a,b,c\n-1,3,4\n2.9,5,3\n")
    assert np.array_equal(read_ratings(path, threshold=3).values, [[0, 1, 1], [0, 1, 1]])


def test_grades_cut_the_span_evenly(write):
    path = write("a,b,c,d\n-10,-0.1,0.1,10\n")
    assert np.array_equal(read_ratings(path, grades=1).values, [[0, 0, 1, 1]])
    assert np.array_equal(read_ratings(path, grades=3).values, [[0, 1, 2, 3]])


def test_choices_are_the_highest_rated(write):
    path = write("a,b,c\n1,3,3\n5,0,1\n")
    assert np.array_equal(read_ratings(path, n_chosen=1).values, [[0, 1, 0], [1, 0, 0]])
    assert np.array_equal(read_ratings(path, n_chosen=2).values, [[0, 1, 1], [1, 0, 1]])


def test_missing_ratings_are_an_error_unless_dropped(write):
    path = write("a,b\n1,2\n3,\n5,6\n")
    with pytest.raises(InvalidInput, match=r"line 3, column 'b': a rating is missing"):
        read_ratings(path)
    table = read_ratings(path, missing="drop")
    assert np.array_equal(table.values, [[1, 2], [5, 6]])
    assert table.n_dropped == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2,3\n", "line 2: a row must have 2 ratings"),
        ("a,b\n1\n", "line 2: a row must have 2 ratings"),
        ("a,b\n1,x\n", "line 2, column 'b': a rating must be a number, got 'x'"),
        ("a,b\n1,inf\n", "line 2, column 'b': a rating must be a finite number"),
        ("a,b\n1,nan\n", "line 2, column 'b': a rating is missing"),
        ("a,b\n1,-2\n", "column 'b': a rating is negative"),
        ("a,b\n", "must have at least one complete row"),
        ("", "must start with a header"),
    ],
)
def test_bad_files_name_line_and_column(write, text, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        read_ratings(write(text))


def test_unreadable_files(tmp_path):
    with pytest.raises(InvalidInput, match="must be a readable CSV file: No such file"):
        read_ratings(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="must be a readable CSV file"):
        read_ratings(tmp_path / "binary.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-6])
    with pytest.raises(InvalidInput, match="must be a readable CSV file"):
        read_ratings(tmp_path / "cut.csv.gz")


def test_options_exclude_each_other(write):
    path = write("a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="At most one of"):
        read_ratings(path, threshold=1, grades=2)
    with pytest.raises(UnknownName, match="missing"):
        read_ratings(path, missing="maybe")
    with pytest.raises(InvalidInput, match="one value only"):
        read_ratings(write("a,b\n2,2\n"), grades=2)
