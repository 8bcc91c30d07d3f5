"""What figures and tables draw of the numbers they are given."""

import io

import numpy as np
import pytest
from rich.console import Console

from keyhole.cli import terminal
from keyhole.cli.terminal import OUT, progress_bar, show_table
from keyhole.lab.figures.layout import save_figure
from keyhole.lab.figures.panels import Panel
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
    with OUT.capture() as printed:
        show_table("title", ["policy", "a>", "long>"], [["x", "1", "2"], ["y", "3", "4"]])
    lines = [line.strip() for line in printed.get().splitlines()]
    assert [line.replace("│", " ").split() for line in lines if "│" in line] == [
        ["x", "1", "2"], ["y", "3", "4"]
    ]  # fmt: skip
    assert lines[0] == "title"
    assert lines[2] == "┃ policy ┃ a ┃ long ┃"
    assert lines[4] == "│ x      │ 1 │    2 │"


def test_a_table_that_is_too_wide_has_a_line_for_every_cell(monkeypatch):
    monkeypatch.setattr(OUT, "width", 16)
    with OUT.capture() as printed:
        show_table("title", ["policy", "a>", "long>"], [["x", "1", "2"], ["y", "3", "4"]])
    assert printed.get().splitlines() == [
        "title", "x", "  a: 1", "  long: 2", "y", "  a: 3", "  long: 4"
    ]  # fmt: skip


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_progress_is_shown_on_a_terminal_unless_nobody_wants_it(is_terminal, quiet, monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "ERR", Console(file=shown, force_terminal=is_terminal, width=90))
    with progress_bar("keystone", 30, quiet=quiet) as advance:
        advance(20)
    assert ("20/30" in shown.getvalue()) == (is_terminal and not quiet)


def test_a_figure_has_the_same_bytes_whenever_it_is_drawn(tmp_path):
    curve = Curve("a", np.array([1, 10, 100]), np.array([[9.0, 1.0, 5.0], [9.0, 3.0, 5.0]]))
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        axes = Axes("round", "regret", "round", "regret")
        save_figure(tmp_path / name, "figure", "title", [Panel("", [curve])], axes, "DCG")
    for ending in ("png", "svg"):
        one, other = (tmp_path / name / f"figure.{ending}" for name in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()
