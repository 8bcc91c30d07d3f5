"""Logs of bandit feedback: what is refused, and what files keep."""

import bz2
import gzip
import lzma
import sys
from datetime import date
from itertools import cycle
from typing import Any

import numpy as np
import polars as pl
import pytest

from keyhole.base.errors import InvalidInput, LibraryMissing
from keyhole.data.bandit.files import (
    log_of_sheet,
    read_bandit_csv,
    read_bandit_parquet,
    write_bandit_csv,
    write_bandit_parquet,
)
from keyhole.data.bandit.formats import (
    is_open_bandit,
    read_bandit,
    read_open_bandit,
    to_open_bandit_pipeline,
    write_open_bandit,
)
from keyhole.data.bandit.log import BanditLog, check_rewards_differ
from keyhole.data.bandit.tables import open_csv, read_sheet
from keyhole.data.bandit.vowpal_wabbit import write_vowpal_wabbit
from keyhole.experiment.inputs import data_folder

COLUMNS = ("contexts", "actions", "rewards", "propensities", "positions")
HEADER = "action,position,propensity,reward,x_age,x_new"


def make(**changes):
    given = {
        "contexts": [[0.1, 1.0], [1 / 3, 0.0], [-2.5, 0.0]],
        "actions": [2, 0, 1],
        "rewards": [0.0, 1.0, 0.0],
        "propensities": [0.2, 1 / 3, 1.0],
    }
    return BanditLog.of(**{**given, **changes})


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"propensities": [0.2, 0.0, 1.0]}, "Row 1 of a BanditLog: a propensity must be above 0"),
        ({"propensities": [0.2, 0.3, 1.1]}, "Row 2 of a BanditLog: a propensity must be above 0"),
        ({"propensities": [0.2, np.nan, 1.0]}, "Row 1 of a BanditLog: a propensity is missing."),
        ({"rewards": [0.0, np.nan, 1.0]}, "Row 1 of a BanditLog: a reward must be a finite number"),
        ({"n_actions": 2}, "an action must be between 0 and n_actions-1=1, got 2."),
        ({"actions": [2, -1, 1]}, "an action must be between 0 and n_actions-1=2, got -1."),
        (
            {"actions": [2, 0.5, 1]},
            "actions of a BanditLog must be whole numbers, got 0.5 in row 1",
        ),
        ({"actions": [2, 0]}, "must have a row for each of the 2 actions, got 3."),
        ({"rewards": [0.0, 1.0]}, "rewards of a BanditLog must have a row for each of the 3"),
        ({"contexts": [0.1, 0.2, 0.3]}, "contexts of a BanditLog must have 2 dimensions, got 1."),
        (
            {"contexts": [[0.1], [np.inf], [0.3]]},
            "a number of a context must be a finite number, got inf.",
        ),
        ({"positions": [0, -1, 0]}, "a position must not be negative, got -1."),
        ({"action_names": ["a", "a", "b"]}, "action_names of a BanditLog must be 3 different"),
        (
            {"feature_names": ["a"]},
            "feature_names of a BanditLog must be 2 different names, got 1.",
        ),
        ({"rewards": ["no", "yes", "no"]}, "rewards of a BanditLog must be numbers"),
    ],
)
def test_what_no_log_can_be_is_refused(changes, sentence):
    with pytest.raises(InvalidInput) as caught:
        make(**changes)
    assert sentence in str(caught.value)


def test_an_empty_log_and_a_single_class():
    with pytest.raises(InvalidInput, match="at least one row"):
        BanditLog.of(np.zeros((0, 1)), [], [], [])
    with pytest.raises(InvalidInput, match="must differ to train, got 0 in all 3 rows"):
        check_rewards_differ(make(rewards=[0, 0, 0]), "to train")


def test_a_log_is_read_only_and_its_own():
    contexts = np.zeros((3, 1))
    log = make(contexts=contexts)
    contexts[0, 0] = 5.0
    assert log.contexts[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        log.rewards[0] = 1.0


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("names", [None, ("tea", "milk, cold", "7")])
def test_files_keep_every_bit(tmp_path, ending, names):
    log = make(positions=[0, 2, 1], action_names=names, feature_names=["age", "x_y"])
    path = tmp_path / f"log.{ending}"
    (write_bandit_parquet if ending == "parquet" else write_bandit_csv)(log, path)
    again = read_bandit(path, action_names=names)
    assert same(log, again)
    assert again.feature_names == log.feature_names
    assert again.action_names == names


@pytest.mark.parametrize("text", ["{}\n", "\ufeff{}\r\n", "{}\n\n"])
def test_quick_and_careful_reading_agree(tmp_path, text):
    rows = "1,0,0.1,1e-3,.5,-7\n\n0, 2 ,0.30000000000000004,1,2.5e10,3\n"
    path = tmp_path / "log.csv"
    path.write_text(text.format(HEADER) + rows, encoding="utf-8", newline="")
    careful = log_of_sheet(read_sheet(open_csv(path)))
    assert same(read_bandit_csv(path), careful)
    assert careful.propensities.tolist() == [0.1, 0.30000000000000004]


def test_positions_may_be_left_out(tmp_path):
    (tmp_path / "log.csv").write_text("reward,propensity,action\n1,0.5,1\n0,0.5,0\n")
    log = read_bandit_csv(tmp_path / "log.csv")
    assert (log.positions == 0).all()
    assert log.contexts.shape == (2, 0)
    assert read_bandit_csv(tmp_path / "log.csv", n_actions=5).n_actions == 5


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("0,0,0,1,1,1", "line 3: a propensity must be above 0 and at most 1, got 0."),
        ("0,0,,1,1,1", "line 3: a propensity is missing."),
        ("0,0,0.5,,1,1", "line 3: a reward is missing."),
        ("0,0,0.5,nan,1,1", "line 3: a reward must be a finite number, got nan."),
        ("0,0,0.5,click,1,1", "line 3, column 'reward': a number is needed, got 'click'."),
        ("0,0,0.5,1,,1", "line 3, column 'x_age': a number is missing."),
        ("0,0.5,0.5,1,1,1", "line 3, column 'position': a whole number is needed, got '0.5'."),
        ("0,0,0.5,1,1", "line 3: a row must have 6 cells, as the header has, got 5."),
        ("9,0,0.5,1,1,1", "line 3: an action must be between 0 and n_actions-1=2, got 9."),
        ("-1,0,0.5,1,1,1", "line 3: an action must be between 0 and n_actions-1=2, got -1."),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, row, sentence):
    path = tmp_path / "log.csv"
    path.write_text(f"{HEADER}\n1,0,0.5,0,1,1\n{row}\n")
    with pytest.raises(InvalidInput) as caught:
        read_bandit_csv(path, n_actions=3)
    assert f"{path}, {sentence}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must start with a header"),
        (HEADER, "must have at least one row below its header"),
        ("action,reward\n1,1\n", "must have a column 'propensity', got action, reward."),
        ("action,propensity,reward,when\n1,1,1,1\n", "or x_NAME, got 'when'."),
        ("action,propensity,reward,action\n1,1,1,1\n", "names each column once"),
    ],
)
def test_files_that_are_no_logs(tmp_path, text, sentence):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_bandit_csv(tmp_path / "log.csv")
    assert sentence in str(caught.value)


def test_actions_may_be_names():
    rows: dict[str, Any] = {
        "contexts": np.zeros((3, 0)),
        "rewards": [1, 0, 0],
        "propensities": [0.5, 0.5, 0.5],
    }
    log = BanditLog.of(actions=["tea", "milk", "tea"], **rows)
    assert (log.action_names, log.actions.tolist()) == (("milk", "tea"), [1, 0, 1])
    shown = np.array(["tea", "milk", "tea"], dtype=object)  # as a column of a frame is
    log = BanditLog.of(actions=shown, action_names=["tea", "cocoa", "milk"], **rows)
    assert (log.n_actions, log.actions.tolist()) == (3, [0, 2, 0])
    actions: Any
    for actions, options, sentence in (
        (
            ["tea", "milk", "tea"],
            {"action_names": ["tea"]},
            "Row 1 of a BanditLog: an action must be one of tea, got 'milk'.",
        ),
        (
            ["tea", "", "tea"],
            {"action_names": ["tea"]},
            "Row 1 of a BanditLog: an action is missing.",
        ),
        (
            ["tea", "milk", "tea"],
            {"n_actions": 3},
            "A BanditLog must name 3 actions, got 2; give `action_names`.",
        ),
        (
            [1, "tea", 2],
            {},
            "actions of a BanditLog must be all numbers or all names, got 1 and 'tea'.",
        ),
        ([1, {}, 2], {}, "actions of a BanditLog must be numbers, got {} in row 1."),
    ):
        with pytest.raises(InvalidInput) as caught:
            BanditLog.of(actions=actions, **rows, **options)
        assert str(caught.value) == sentence
    with pytest.raises(InvalidInput, match="rewards of a BanditLog must be numbers, got 'yes' in"):
        BanditLog.of(actions=[0, 1, 1], **{**rows, "rewards": [1, "yes", 0]})


def test_names_that_are_not_known(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("action,propensity,reward\ntea,0.5,1\ncocoa,0.5,0\n")
    assert read_bandit_csv(path).action_names == ("cocoa", "tea")
    with pytest.raises(InvalidInput, match=r"line 3: an action must be one of tea, milk, got 'coc"):
        read_bandit_csv(path, action_names=["tea", "milk"])
    with pytest.raises(InvalidInput, match=r"log\.csv: .*must name 3 actions, got 2; give"):
        read_bandit_csv(path, n_actions=3)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInput, match=r"must be a readable CSV file: No such file"):
        read_bandit(tmp_path / "none.csv")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"action" * 99)[:20])
    with pytest.raises(InvalidInput, match="must be a readable CSV file"):
        read_bandit(tmp_path / "cut.csv.gz")
    (tmp_path / "log.parquet").write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match="must be a readable Parquet file"):
        read_bandit_parquet(tmp_path / "log.parquet")


def test_rows_of_parquet_files_are_named(tmp_path):
    path = tmp_path / "log.parquet"
    good = {"action": [0, 1], "propensity": [0.5, 0.5], "reward": [1.0, 0.0], "x_a": [1, 2]}
    for change, sentence in (
        ({"propensity": [0.5, np.nan]}, "row 1: a propensity is missing."),
        ({"reward": [None, 1]}, "row 0: a reward is missing."),
        ({"reward": [1.0, 2.0], "action": [0, 7]}, "row 1: an action must be between 0 and"),
        ({"action": [0.0, 1.5]}, "row 1, column 'action': a whole number is needed, got '1.5'."),
        ({"action": ["tea", None]}, "row 1: an action is missing."),
        ({"x_a": [1.0, None]}, "row 1, column 'x_a': a number is missing."),
        ({"x_a": ["1", "one"]}, "row 1, column 'x_a': a number is needed, got 'one'."),
        ({"x_a": [date(2026, 1, 1)] * 2}, "row 0, column 'x_a': a number is needed, got '2026-"),
    ):
        pl.DataFrame({**good, **change}).write_parquet(path)
        with pytest.raises(InvalidInput) as caught:
            read_bandit_parquet(path, n_actions=2)
        assert f"{path}, {sentence}" in str(caught.value)
    pl.DataFrame({name: [] for name in good}).write_parquet(path)
    with pytest.raises(InvalidInput, match="must have at least one row"):
        read_bandit_parquet(path)
    pl.DataFrame({**good, "x_a": ["1e3", "-2"]}).write_parquet(path)
    assert read_bandit_parquet(path).contexts.tolist() == [[1000.0], [-2.0]]


def test_whatever_is_wrong_with_a_parquet_file_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    write_bandit_parquet(make(), path)
    content = path.read_bytes()
    for broken in (b"", content[:-9], content[: len(content) // 2]):
        path.write_bytes(broken)
        with pytest.raises(InvalidInput, match=r"^\S* must be a readable Parquet file: .*\.$"):
            read_bandit_parquet(path)

    def panics(_):
        raise pl.exceptions.PanicException("range end index\nstack")

    monkeypatch.setattr(pl, "scan_parquet", panics)
    with pytest.raises(InvalidInput, match=r"readable Parquet file: range end index\.$"):
        read_bandit_parquet(path)
    with pytest.raises(InvalidInput, match="readable Parquet file: No such file or directory"):
        read_bandit_parquet(tmp_path / "none.parquet")


def cell_texts(numbers):
    return [f"{x!r}" for x in numbers.tolist()] + [f"{x:.25f}" for x in numbers.tolist()]


def test_the_quick_reader_reads_every_bit_and_is_the_one_that_reads(tmp_path, monkeypatch):
    numbers = np.random.default_rng(0)
    values = numbers.integers(0, 2**63, 3000).view(np.float64)
    cells = cell_texts(values[np.isfinite(values) & (np.abs(values) < 1e100)])
    rows = [f'"{name}, hot",0.5,1,{cell}' for name, cell in zip(cycle("ab"), cells, strict=False)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["action,propensity,reward,x_a", *rows]) + "\n")
    careful = log_of_sheet(read_sheet(open_csv(path)))

    def refuse(_):
        raise AssertionError

    monkeypatch.setattr("keyhole.data.bandit.tables.read_sheet", refuse)
    quick = read_bandit(path)
    assert same(quick, careful)
    assert quick.action_names == careful.action_names == ("a, hot", "b, hot")
    assert quick.contexts[:, 0].tolist() == [float(cell) for cell in cells]
    (tmp_path / "obd.csv").write_text(OPEN_BANDIT)
    assert read_bandit(tmp_path / "obd.csv").contexts.shape == (3, 3)


@pytest.mark.parametrize(
    "rows",
    [
        "1,0.5,1,1\n\n0,0.5,1,2\n",  # a blank line
        "1, 0.5 ,1,1\n0,0.5,1,1_0\n",  # numbers that Python reads and polars does not
        "a\rb,0.5,1,1\n",  # a line end for Python alone
        "1.0,0.5,1,1\n0,0.5,1,2",
        "7,0.5,1,nan\n",
        "x,0.5,1\n",
        '"x\ny",0.5,1,0\nx,0.5,1,\n',
        "\udcff,0.5,1,1\n",
    ],
)
def test_the_quick_reader_leaves_what_is_unusual_to_the_careful_one(tmp_path, rows, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_text("action,propensity,reward,x_a\n" + rows, errors="surrogateescape", newline="")

    def outcome():
        try:
            log = read_bandit(path)
        except InvalidInput as error:
            return str(error)
        return [log.action_names, *(getattr(log, name).tolist() for name in COLUMNS)]

    first = outcome()
    monkeypatch.setitem(sys.modules, "polars", None)
    assert first == outcome()


def test_without_polars_only_parquet_is_missed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    write_bandit_csv(make(), tmp_path / "log.csv")
    assert same(read_bandit(tmp_path / "log.csv"), make())
    sentence = r"^Parquet files need polars: pip install -e '\.\[logs\]' in a checkout of Keyhole"
    with pytest.raises(LibraryMissing, match=sentence):
        write_bandit_parquet(make(), tmp_path / "log.parquet")
    with pytest.raises(LibraryMissing, match=sentence):
        read_bandit(tmp_path / "log.parquet")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_logs_may_be_compressed_in_any_way_that_other_files_may(tmp_path, pack):
    write_bandit_csv(make(), tmp_path / "log.csv")
    (tmp_path / "packed.csv").write_bytes(pack((tmp_path / "log.csv").read_bytes()))
    assert same(read_bandit(tmp_path / "packed.csv"), make())


OPEN_BANDIT = """timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,\
user-item_affinity_0,user-item_affinity_1,user-item_affinity_2
t1,1,1,0,0.5,b,0.25,0.0,1.0,0.0
t2,0,3,1,0.25,a,0.5,2.0,0.0,0.0
t3,1,2,0,0.25,c,0.5,0.0,0.0,3.0
"""


def test_open_bandit_files(tmp_path):
    path = tmp_path / "bts.csv"
    path.write_text(OPEN_BANDIT)
    log = read_bandit(path)
    assert log.n_actions == 3  # an affinity for each item
    assert log.feature_names == ("user_feature_0=b", "user_feature_0=c", "user_feature_1")
    assert np.array_equal(log.contexts, [[1, 0, 0.25], [0, 0, 0.5], [0, 1, 0.5]])
    assert log.positions.tolist() == [0, 2, 1]
    more = read_open_bandit(path, affinities=True)
    assert more.contexts.shape == (3, 6)
    names = ["user_feature_0=z", "user_feature_0=a"]
    assert np.array_equal(
        read_open_bandit(path, feature_names=names).contexts, [[0, 0], [0, 1], [0, 0]]
    )
    assert np.array_equal(read_bandit(path, feature_names=names).contexts, [[0, 0], [0, 1], [0, 0]])
    (tmp_path / "items.csv").write_text("item_id,item_feature_0\n0,1\n")
    with pytest.raises(
        InvalidInput, match=r"line 2: an action must be between 0 and n_actions-1=0"
    ):
        read_open_bandit(path, items=tmp_path / "items.csv")
    path.write_text(OPEN_BANDIT.replace("t2,0,3", "t2,0,0"))
    with pytest.raises(InvalidInput, match="line 3: a position counts from 1, got 0"):
        read_open_bandit(path)


def test_other_libraries_forms(tmp_path):
    log = make(positions=[0, 2, 1], feature_names=["age", "a b:c"])
    path = write_open_bandit(log, tmp_path, policy="bts", campaign="men")
    assert path == tmp_path / "bts" / "men" / "men.csv"
    assert same(log, read_open_bandit(path))
    assert len((path.parent / "item_context.csv").read_text().splitlines()) == 1 + log.n_actions
    feedback = to_open_bandit_pipeline(log)
    assert feedback["n_rounds"] == 3
    assert np.array_equal(feedback["pscore"], log.propensities)
    write_vowpal_wabbit(log, tmp_path / "log.vw")
    assert (tmp_path / "log.vw").read_text().splitlines() == [
        "3:0.0:0.2 | age:0.1 a_b_c:1.0",
        "1:-1.0:0.3333333333333333 'position=2 | age:0.3333333333333333",
        "2:0.0:1.0 'position=1 | age:-2.5",
    ]


def test_the_open_bandit_sample():
    folder = data_folder() / "obd_small"
    if not folder.is_dir():
        pytest.skip(f"The Open Bandit sample is not in {data_folder()}")
    clicks = {"random": (38, 46, 46), "bts": (42, 69, 46)}
    for policy, counts in clicks.items():
        for campaign, n_items, count in zip(
            ("all", "men", "women"), (80, 34, 46), counts, strict=True
        ):
            log = read_bandit(folder / f"{policy}_{campaign}.csv.gz")
            assert (len(log), log.n_actions, log.rewards.sum()) == (10_000, n_items, count)
            assert log.is_uniform == (policy == "random")
            assert set(log.positions.tolist()) == {0, 1, 2}


def test_a_file_is_an_open_bandit_file_by_its_columns_alone(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("item_id,position,click,propensity_score\n0,1,1,0.5\n")
    assert is_open_bandit(open_csv(path))
    path.write_text("item_id,position,click\n0,1,1\n")
    assert not is_open_bandit(open_csv(path))


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_columns_of_frames_are_those_of_arrays_and_name_the_features(frames):
    library = pytest.importorskip(frames)
    table = library.DataFrame({"age": [31.0, 40.0, 25.0], "mac": [0, 1, 1]})
    columns: dict[str, Any] = {
        "actions": ["tea", "milk", "tea"], "rewards": [0, 1, 1], "propensities": [0.5, 0.25, 0.5],
        "positions": [0, 2, 1], "times": ["2026-01-03", "2026-01-01", "2026-01-02"],
        "groups": ["a", "b", "a"],
    }  # fmt: skip
    log = BanditLog.of(table, **{name: library.Series(column) for name, column in columns.items()})
    plain = BanditLog.of(np.array(table), feature_names=["age", "mac"], **columns)
    for name, value in vars(plain).items():
        found = getattr(log, name)
        assert np.array_equal(found, value) if name != "n_actions" else found == value, name
    named = BanditLog.of(table, [0, 1, 0], [0, 1, 1], [0.5] * 3, feature_names=["a", "b"])
    assert named.feature_names == ("a", "b")
    assert BanditLog.of(np.array(table), [0, 1, 0], [0, 1, 1], [0.5] * 3).feature_names is None


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_a_frame_where_a_column_belongs_is_named_and_not_printed(frames):
    library = pytest.importorskip(frames)
    table = library.DataFrame({"age": ["31", "x", "25"], "mac": ["0", "1", "1"]})
    good: dict[str, Any] = {
        "contexts": np.zeros((3, 1)), "actions": [0, 1, 0], "rewards": [0, 1, 1],
        "propensities": [0.5] * 3,
    }  # fmt: skip
    for name in ("actions", "rewards", "propensities", "positions", "times", "groups"):
        sentence = f"^{name} of a BanditLog must have 1 dimensions, got 2.$"
        with pytest.raises(InvalidInput, match=sentence):
            BanditLog.of(**{**good, name: table})
    sentence = "^contexts of a BanditLog must be numbers, got 'x' in row 1.$"
    with pytest.raises(InvalidInput, match=sentence):
        BanditLog.of(**{**good, "contexts": table})


def test_numbered_columns_of_a_frame_are_no_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    assert BanditLog.of(table, [0, 1], [0, 1], [0.5] * 2).feature_names is None
