"""Reading people by items from CSV files."""

import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput, UnknownName
from keyhole.data.ratings import read_ratings


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
    assert np.array_equal(read_ratings(path, grades=2).values, [[0, 0, 1, 1]])
    assert np.array_equal(read_ratings(path, grades=4).values, [[0, 1, 2, 3]])


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
    ("text", "mended", "sentence"),
    [
        ("a,b\n1,2,3\n", "a,b\n1,2\n", "line 2: a row must have 2 cells, as many as line 1, got 3"),
        ("a,b\n1\n", "a,b\n1,2\n", "line 2: a row must have 2 cells"),
        ("a,b\n1,x\n", "a,b\n1,4\n", "line 2, column 'b': a rating must be a number, got 'x'"),
        ("a,b\n1,inf\n", "a,b\n1,2\n", "line 2, column 'b': a rating must be a number, got 'inf'"),
        (
            "a,b\n1,1e999\n",
            "a,b\n1,1e1\n",
            "line 2, column 'b': a rating must be a number, got '1e999'",
        ),
        ("a,b\n1,1_0\n", "a,b\n1,10\n", "line 2, column 'b': a rating must be a number, got '1_0'"),
        ("a,b\n1,\u0664\n", "a,b\n1,4\n", "line 2, column 'b': a rating must be a number"),
        ("a,b\n1,NA\n", "a,b\n1,0\n", "line 2, column 'b': a rating is missing; missing='drop'"),
        ("a,a\n1,2\n", "a,A\n1,2\n", "line 1: items must have different names, got 'a' 2 times"),
        (
            "a,b, a \n1,2,3\n",
            "a,b, c \n1,2,3\n",
            "line 1: items must have different names, got 'a' 2 times",
        ),
        (
            "a,,c\n1,2,3\n",
            "a,b,c\n1,2,3\n",
            "line 1: every item must have a name, got none for item 1 of 0 to 2",
        ),
        (
            "a,b,\n1,2,\n",
            "a,b,c\n1,2,3\n",
            "line 1: every item must have a name, got none for item 2 of 0 to 2",
        ),
        (
            'a,"b\n1,2\n',
            'a,"b"\n1,2\n',
            "line 2: cells must be readable as CSV: unexpected end of data",
        ),
        ("a|b\n1|2\n", "a;b\n1;2\n", "a rating must be a number, got '1|2'; `delimiter` says what"),
        ('a,b\n"1,5",2\n', 'a,b\n"1.5",2\n', "got '1,5'; decimal=',' reads decimal commas"),
        ("a,b\nx,2\n", "a,b\n7,2\n", "got 'x'; ids='a' leaves the column out"),
        ("a,b\n1,nan\n", "a,b\n1,0\n", "line 2, column 'b': a rating is missing"),
        ("a,b\n1,-2\n", "a,b\n1,2\n", "column 'b': a rating is negative"),
        ("a,b\n", "a,b\n1,2\n", "must have at least one complete row"),
        ("", "a\n1\n", "must start with a header"),
    ],
)
def test_bad_files_name_line_and_column(write, text, mended, sentence):
    """The same file with what is wrong put right is read."""
    with pytest.raises(InvalidInput, match=sentence):
        read_ratings(write(text))
    assert len(read_ratings(write(mended)).values) == 1


def test_unreadable_files(tmp_path):
    with pytest.raises(InvalidInput, match="must be a readable CSV file: No such file"):
        read_ratings(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\x00")
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
    assert read_ratings(write("a,b\n1,2\n"), grades=2, missing="drop").values.tolist() == [[0, 1]]


VALUES = [[1.0, 2.5], [0.0, 4.0], [3.0, 3.0]]
PLAIN = "tea,coffee\n1,2.5\n0,4\n3,3\n"


def same(table, names=("tea", "coffee"), values=VALUES, has_index=False):
    assert table.item_names == names
    assert np.array_equal(table.values, values)
    assert table.has_index == has_index


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text.replace("tea", '"tea"'),
        lambda text: "\n" + text.replace(",", " ,  ") + "\n\n",
    ],
)
def test_separators_line_ends_and_marks(tmp_path, change):
    path = tmp_path / "ratings.csv"
    path.write_bytes(change(PLAIN).encode())
    same(read_ratings(path))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files(tmp_path, pack):
    path = tmp_path / "ratings.csv"
    path.write_bytes(pack(PLAIN.encode()))
    same(read_ratings(path))
    path.write_bytes(pack(PLAIN.encode())[:-3])
    with pytest.raises(InvalidInput, match="must be a readable CSV file: Compressed file ended"):
        read_ratings(path)


def test_formats_that_are_no_text(tmp_path):
    path = tmp_path / "ratings.csv"
    np.savez(tmp_path / "a.npz", np.arange(3))
    path.write_bytes((tmp_path / "a.npz").read_bytes())
    with pytest.raises(
        InvalidInput, match=r"must be a CSV file, got a ZIP archive, as \.zip, \.npz"
    ):
        read_ratings(path)
    path.write_bytes("tea,caf\u00e9\n1,2\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match="readable CSV file: line 1 is not UTF-8 text"):
        read_ratings(path)
    path.write_bytes("tea,coffee\n1,2\n".encode("utf-16"))
    with pytest.raises(InvalidInput, match="must be a CSV file, got UTF-16 text"):
        read_ratings(path)


def test_two_separators(write):
    path = write("tea, black;coffee\n1;2.5\n0;4\n3;3\n")  # only ; gives all rows two cells
    same(read_ratings(path), names=("tea, black", "coffee"))
    path = write("a;b,c\n1;2,3\n2;5,3\n")
    with pytest.raises(InvalidInput, match="got what may be a comma or a semicolon: `delimiter`"):
        read_ratings(path)
    path = write("1,5;2,0\n1,0;3,5\n")
    table = read_ratings(path, delimiter=";", decimal=",", header=False)
    same(table, names=("0", "1"), values=[[1.5, 2.0], [1.0, 3.5]])
    same(read_ratings(path, header=False), names=("0", "1"), values=[[1.5, 2.0], [1.0, 3.5]])
    same(read_ratings(write(PLAIN.replace(",", "|")), delimiter="|"))


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(write, separator):
    path = write(PLAIN.replace(",", separator).replace(".", ","))
    same(read_ratings(path, decimal=","))
    same(read_ratings(path))
    with pytest.raises(InvalidInput, match="got '2,5'; decimal=',' reads decimal commas"):
        read_ratings(path, decimal=".")
    with pytest.raises(InvalidInput, match=r"a rating must be a number, got '2\.5'"):
        read_ratings(write(PLAIN), decimal=",")


def test_decimal_marks_in_doubt(write):
    with pytest.raises(InvalidInput, match=r"one decimal mark, got '2,5' and '1\.5': `decimal`"):
        read_ratings(write("a;b\n1;2,5\n1.5;2\n"))
    path = write("a;b\n1;2,500\n3;1,000\n")
    with pytest.raises(InvalidInput, match=r"got '2,500', which may be thousands .*: `decimal`"):
        read_ratings(path)
    assert read_ratings(path, decimal=",").values.tolist() == [[1.0, 2.5], [3.0, 1.0]]
    for certain in ("0,125", "2,50", "1234,567"):
        assert read_ratings(write(f"a;b\n1;{certain}\n3;1,000\n")).values[0, 1] == float(
            certain.replace(",", ".")
        )


def test_a_name_with_a_comma_in_a_file_of_decimal_commas(write):
    path = write("tea, black;coffee\n1,5;2\n0,5;4\n")
    same(read_ratings(path), names=("tea, black", "coffee"), values=[[1.5, 2], [0.5, 4]])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_column_of_ids_is_left_out_when_it_is_named(write, place):
    rows = [line.split(",") for line in PLAIN.splitlines()]
    for row, cell in zip(rows, ("customer id", 7, 7, 9), strict=True):
        row.insert(place, str(cell))
    path = write("\n".join(";".join(row) for row in rows))
    same(read_ratings(path, ids="customer id"), has_index=True)
    with pytest.raises(InvalidInput, match=r"'customer id',? must be ratings .* ids='customer id'"):
        read_ratings(path)
    assert "customer id" in read_ratings(path, index=False).item_names
    if place:
        same(read_ratings(path, columns=["tea", "coffee"]))
    with pytest.raises(UnknownName, match=r"`ids` of .* Did you mean 'customer id'"):
        read_ratings(path, ids="customer_id")


def test_ids_that_cannot_be_left_out(write, tmp_path):
    path = write(PLAIN)
    with pytest.raises(InvalidInput, match="At most one of `ids` and `index`"):
        read_ratings(path, ids="tea", index=False)
    with pytest.raises(InvalidInput, match="`ids` needs a header"):
        read_ratings(path, ids="0", header=False)
    with pytest.raises(InvalidInput, match="must be one column, got 'a', the name of several"):
        read_ratings(write("a,a,b\n1,2,3\n"), ids="a")
    with pytest.raises(InvalidInput, match="at least one item"):
        read_ratings(write("a\n1\n"), ids="a")
    np.savez(tmp_path / "a.npz", np.ones((2, 2)))
    with pytest.raises(InvalidInput, match="`ids` needs a CSV file"):
        read_ratings(tmp_path / "a.npz", ids="a")


@pytest.mark.parametrize("first", ["1,2", "4.5,NA", "alice,3", "id,1", ",7", "tea,7"])
def test_a_first_row_with_numbers_is_for_the_user_to_judge(write, first):
    path = write(f"{first}\n2,3\n5,5\n")
    with pytest.raises(InvalidInput, match=r"line 1: the first row must be a header .* `header`"):
        read_ratings(path)
    names = tuple(first.split(","))
    if "" not in names:
        table = read_ratings(path, header=True, index=False)
        same(table, names=names, values=[[2, 3], [5, 5]])


def test_a_file_without_a_header_loses_nobody(write):
    table = read_ratings(write(PLAIN.split("\n", 1)[1]), header=False)
    same(table, names=("0", "1"))
    table = read_ratings(write("ann,1,2.5\nbob,0,4\ncem,3,3\n"), header=False)
    same(table, names=("0", "1"), has_index=True)


def with_index(name, people):
    header, *rows = PLAIN.splitlines()
    lines = [f"{name},{header}"] + [f"{p},{row}" for p, row in zip(people, rows, strict=True)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "people"),
    [
        ("", [0, 1, 2]),
        ("", [7, 3, 9]),
        ("Unnamed: 0", [0, 1, 2]),
        ("User", ["User 1", "User 2", "User 3"]),
        ("anything", ["ann", "bob", "cem"]),
    ],
)
def test_a_column_that_names_the_people_is_no_item(write, name, people):
    path = write(with_index(name, people))
    same(read_ratings(path), has_index=True)
    same(read_ratings(path, index=True), has_index=True)


@pytest.mark.parametrize(
    ("name", "people"),
    [
        ("id", [71, 30, 99]),
        ("User", [71, 30, 99]),
        ("customer_id", [5, 5, 5]),
        ("milk", [0, 1, 2]),
        ("milk", [1, 2, 3]),
    ],
)
def test_a_column_that_may_name_the_people_is_for_the_user_to_judge(write, name, people):
    path = write(with_index(name, people))
    with pytest.raises(
        InvalidInput, match=f"first column, '{name}', must be ratings .* ids='{name}'"
    ):
        read_ratings(path)
    same(read_ratings(path, index=True), has_index=True)
    values = [[p, *row] for p, row in zip(people, VALUES, strict=True)]
    same(read_ratings(path, index=False), names=(name, "tea", "coffee"), values=values)


def test_first_columns_that_are_ratings(write):
    for people in ([1, 2, 4], [2, 3, 4], [0, 1, 1], [3, 2, 1]):
        assert not read_ratings(write(with_index("milk", people))).has_index
    with pytest.raises(InvalidInput, match="column 'sex': a rating must be a number, got 'f'"):
        read_ratings(write(with_index("sex", ["f", "m", "f"])))
    with pytest.raises(InvalidInput, match="column 'milk': a rating must be a number, got 'x'"):
        read_ratings(write(with_index("milk", ["1", "x", "3"])))
    same(read_ratings(write("id\n1\n2\n3\n")), names=("id",), values=[[1], [2], [3]])


@pytest.mark.parametrize(
    "mark", ["", " ", "NA", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None"]
)
def test_marks_of_missing_ratings(write, mark):
    table = read_ratings(write(f"tea,coffee\n1,2.5\n{mark},5\n0,4\n3,3\n"), missing="drop")
    same(table)
    assert table.n_dropped == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("delimiter", ";;"), ("delimiter", '"'), ("delimiter", 3), ("header", "no"), ("index", "id")],
)
def test_bad_options(write, option, value):
    with pytest.raises(InvalidInput, match=f"`{option}` must be "):
        read_ratings(write(PLAIN), **{option: value})


def test_real_files():
    data = Path(os.environ.get("KEYHOLE_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (data / "travel_ratings").is_dir():
        pytest.skip(f"{data} is not there: set KEYHOLE_DATA to the folder with travel_ratings")
    google = read_ratings(data / "travel_ratings" / "google_reviews.csv.gz", missing="drop")
    assert (google.values.shape, google.n_dropped, google.has_index) == ((5454, 24), 2, False)
    trip = read_ratings(data / "travel_ratings" / "tripadvisor.csv.gz")
    assert (trip.values.shape, trip.item_names[0], trip.has_index) == (
        (980, 10),
        "art_gallery",
        False,
    )
