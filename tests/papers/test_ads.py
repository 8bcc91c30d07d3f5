"""Papers on ad policies, as groups of points and as a table."""

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.base.errors import KeyholeError
from keyhole.cli.app import app
from keyhole.experiment.inputs import data_folder
from keyhole.lab.figures.groups import grouped, table_of
from keyhole.lab.kinds import KINDS
from keyhole.lab.results import Curve
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study


def test_sets_that_are_not_there_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "nothing"))
    study = find_study("thesis-table5.1", quick=True)
    result = reproduce(study, tmp_path / "out")
    assert result.holds
    assert set(result.curves) == {"digits: clicks, %"}
    assert [verdict.holds for verdict in result.verdicts].count(None) == 5
    assert table_of(study, result.curves, "main")[0] == ["", "clicks, %"]


@pytest.mark.skipif(not (data_folder() / "uci_multiclass").is_dir(), reason="no UCI data sets")
def test_the_table_is_printed(tmp_path):
    ran = CliRunner().invoke(
        app, ["reproduce", "thesis-table5.1", "--quick", "--out", str(tmp_path)]
    )
    assert ran.exit_code == 0, ran.stdout
    for name in ("digits", "optdigits", "letter", "pendigits", "libras"):
        assert f"│ {name} " in ran.stdout


def test_points_of_a_group_that_was_not_played_are_missing():
    study = find_study("thesis-fig5.1")
    values = {
        "digits: ranker": Curve("", np.zeros(1, np.int64), np.array([[0.5], [0.7]])),
        "letter: linear classifier": Curve("", np.zeros(1, np.int64), np.array([[0.4]])),
    }
    groups, curves = grouped(study.in_panel("all"), values)
    assert groups == ("digits", "letter")
    assert [curve.label for curve in curves] == ["ranker", "linear classifier"]
    assert np.array_equal(curves[0].values, [[0.5, np.nan], [0.7, np.nan]], equal_nan=True)
    assert table_of(study, values, "all") == [
        ["", "ranker", "linear classifier"],
        ["digits", "0.6 ± 0.1", ""],
        ["letter", "", "0.4"],
    ]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"metric": "clicks"}, "metric of here"),
        ({"policy": "rankers"}, "policy of here"),
        ({"dta": "digits"}, "A field of here"),
        ({"data": "digit"}, "data of a class set"),
        ({"data": "digits", "metric": "true"}, "data of a campaign"),
        ({"runs": 0}, "runs"),
    ],
)
def test_bad_descriptions_are_refused(fields, word):
    with pytest.raises(KeyholeError, match=word):
        KINDS["ads"].build(KINDS["ads"].read(fields, "here"))
