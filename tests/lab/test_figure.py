"""What figures and tables draw of the numbers they are given."""

import numpy as np
import pytest

from keyhole.cli.reproduce import _grouped_table
from keyhole.lab.figures.curves import Panel, save_figure
from keyhole.lab.results import Axes, Curve


def test_bands_are_two_standard_errors(tmp_path, monkeypatch):
    from matplotlib.axes import Axes as Plot

    bands = []
    monkeypatch.setattr(Plot, "fill_between", lambda _, *args, **__: bands.append(args))
    values = np.array([[9.0, 1.0, 5.0], [9.0, 3.0, 5.0], [9.0, 5.0, 5.0]])
    curve = Curve("a", np.array([1, 10, 100]), values)
    panel = Panel("", [curve], first_x=10)
    save_figure(
        tmp_path, "figure", "title", [panel], Axes("round", "regret", "round", "regret"), "DCG"
    )
    error = 2.0 / np.sqrt(3.0)
    x, low, high = bands[0]
    assert x.tolist() == [10, 100]
    assert low == pytest.approx([3.0 - 2.0 * error, 5.0])
    assert high == pytest.approx([3.0 + 2.0 * error, 5.0])
    assert {path.name for path in tmp_path.iterdir()} == {"figure.png", "figure.svg"}


def test_a_table_has_a_line_for_every_row_but_its_heading():
    table = _grouped_table("title", [["policy", "a", "b"], ["x", "1", "2"], ["y", "3", "4"]])
    assert [column.header for column in table.columns] == ["policy", "a", "b"]
    assert [list(column.cells) for column in table.columns] == [["x", "y"], ["1", "3"], ["2", "4"]]
    assert [column.justify for column in table.columns] == ["left", "right", "right"]
