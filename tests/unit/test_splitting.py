"""Logs in two parts: by time, by rows and by chance, with everything that belongs to them."""

import numpy as np
import pytest

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.files import write_bandit_csv, write_bandit_parquet
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog


def some_log(n_rows=40, **changes):
    numbers = np.random.default_rng(0)
    given = {
        "contexts": np.arange(2.0 * n_rows).reshape(n_rows, 2),
        "actions": numbers.integers(3, size=n_rows),
        "rewards": numbers.integers(2, size=n_rows),
        "propensities": np.full(n_rows, 1 / 3),
        "positions": np.arange(n_rows) % 2,
        "times": numbers.permutation(n_rows) // 4,
        "groups": [f"visitor {row % 7}" for row in range(n_rows)],
        "action_names": ["a", "b", "c"],
        "feature_names": ["age", "height"],
    }
    return BanditLog.of(**{**given, **changes})


def same(one, other):
    for name in ("contexts", "actions", "rewards", "propensities", "positions", "times", "groups"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.action_names, one.feature_names) == (other.action_names, other.feature_names)
    assert one.n_actions == other.n_actions


@pytest.mark.parametrize("by", ["time", "rows", "random"])
def test_both_parts_are_logs_with_all_that_belongs_to_them(by):
    log = some_log()
    first, second = log.split(0.6, by=by)
    which = np.isin(log.contexts[:, 0], first.contexts[:, 0])
    assert which.sum() == len(first)
    assert len(first) + len(second) == len(log)
    same(first, log.rows(which))
    same(second, log.rows(~which))


def test_by_time_the_first_part_is_what_came_first():
    log = some_log()
    for share in np.linspace(0.05, 0.95, 19):
        first, second = log.split(share)
        assert first.times.max() < second.times.min()  # no moment is in both
        assert abs(len(first) / len(log) - share) <= 0.05 + 1e-12  # 4 rows of 40 in a moment
    first, second = log.split(at=6)
    assert (first.times < 6).all()
    assert (second.times >= 6).all()


def test_moments_are_written_as_iso_8601_or_as_numbers():
    written = ["2026-03-02", "2026-03-01T12:00", "2026-03-01 12:00:00+02:00", "2026-03-01T11:00Z"]
    log = some_log(4, times=written)
    hours = (log.times - log.times.min()) / 3600
    assert hours.tolist() == [14, 2, 0, 1]
    first, second = log.split(at="2026-03-01 11:30")
    assert (len(first), len(second)) == (2, 2)
    with pytest.raises(
        InvalidInput, match=r"Row 1 of a BanditLog: a time must be a number or like"
    ):
        some_log(2, times=["2026-03-02", "yesterday"])
    with pytest.raises(InvalidInput, match="a time must be a finite number, got nan"):
        some_log(2, times=[1.0, np.nan])
    with pytest.raises(InvalidInput, match="times of a BanditLog must have a row for each"):
        some_log(3, times=[1.0, 2.0])


def test_by_chance_whole_groups_stay_together_and_the_seed_decides():
    log = some_log(700)
    first, second = log.split(0.5, by="random", seed=1)
    assert not set(first.groups) & set(second.groups)
    assert len(first.groups) + len(second.groups) == len(log)
    plain = some_log(700, groups=None)
    halves = [plain.split(0.5, by="random", seed=seed)[0].contexts[:, 0] for seed in (1, 1, 2)]
    assert np.array_equal(halves[0], halves[1])
    assert not np.array_equal(halves[0], halves[2])
    assert len(halves[0]) == 350
    # Dealt by chance: the share of the first half of the rows is hypergeometric.
    n_early = int((halves[0] < 700).sum())
    assert abs(n_early - 175) < 4 * np.sqrt(350 / 8)  # four standard deviations


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"share": 0.0}, "`share` of a split must be a number above 0"),
        ({"share": 1.5}, "at most 1"),
        ({"by": "tiem"}, "Did you mean 'time'?"),
        ({"by": "random", "at": 3}, "`at` of a split is for splits by time or by rows"),
        ({"at": "noon"}, "`at` of a split: a time must be a number or like"),
        ({"at": -1}, "must leave rows in both parts, got 0 and 40 of 40"),
        ({"by": "rows", "at": 40}, "must leave rows in both parts, got 40 and 0 of 40"),
        ({"by": "rows", "at": 1.5}, "`at` of a split by rows must be an integer"),
        ({"by": "random", "seed": -1}, "seed"),
    ],
)
def test_what_is_no_split(options, sentence):
    with pytest.raises(Exception, match=sentence.replace("?", r"\?")):
        some_log().split(**options)


def test_logs_that_cannot_be_split():
    with pytest.raises(InvalidInput, match="must have times to be split by time, got none"):
        some_log(times=None).split()
    assert len(some_log(times=None).split(0.5, by="rows")[0]) == 20
    with pytest.raises(InvalidInput, match="both parts, got 0 and 40"):
        some_log(times=np.zeros(40)).split()
    with pytest.raises(InvalidInput, match="both parts"):
        some_log(groups=["one"] * 40).split(by="random")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_times_and_groups_are_in_files_too(tmp_path, ending):
    log, path = some_log(), tmp_path / f"log.{ending}"
    (write_bandit_parquet if ending == "parquet" else write_bandit_csv)(log, path)
    same(read_bandit(path), log)


def test_times_of_a_file_are_read_or_its_line_is_named(tmp_path):
    path = tmp_path / "log.csv"
    text = "action,propensity,reward,time\n0,0.5,1,2026-03-02\n1,0.5,0,{}\n"
    path.write_text(text.format("2026-03-01 10:00:00"))
    times = read_bandit(path).times
    assert times is not None
    assert times.tolist() == [1772409600.0, 1772359200.0]
    path.write_text(text.format("later"))
    with pytest.raises(InvalidInput, match=r"line 3, column 'time': a time must be a number or"):
        read_bandit(path)
