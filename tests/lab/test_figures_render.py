"""Every figure of every study and command, drawn: no text is cut, none is over another."""

import sys
import zlib

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.cli.app import app
from keyhole.contracts.rows import Look
from keyhole.lab.figures.layout import make_figure
from keyhole.lab.figures.panels import REGRET, Panel, Points
from keyhole.lab.figures.studies import make_study_figure
from keyhole.lab.figures.styles import looks_of
from keyhole.lab.results import Curve
from keyhole.lab.study import find_study, list_studies
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker
from keyhole.rankers.lists.base import ContextualRanker
from tests.lab.rendering import faults

STUDIES = sorted(list_studies())


def made_up(label, spec):
    """Return a curve of the shape that playing would give it; nothing is played."""
    level = 0.2 + zlib.crc32(label.encode()) % 100 / 125
    points = getattr(spec, "points", ())
    if isinstance(points, tuple) and points:
        x = np.array(points)
    elif hasattr(spec, "policy"):
        x = np.zeros(1, np.int64)
    else:
        rounds = getattr(spec, "game", spec).rounds
        x = np.unique(np.geomspace(1, rounds, 60).astype(np.int64))
    falling = level * (np.maximum(x, 1) / max(int(x[0]), 1)) ** -0.4
    return Curve(label, x, falling * np.array([[0.95], [1.0], [1.05]]))


def results_of(study):
    curves = {curve.label: made_up(curve.label, curve.spec) for curve in study.curves}
    if study.is_grouped:
        curves = {
            label: Curve(label, curve.x[-1:], curve.values[:, -1:])
            for label, curve in curves.items()
        }
    lines = {}
    for line in study.lines:
        beside = [curves[curve.label] for curve in study.in_panel(line.panel)]
        if beside:
            x = max(beside, key=lambda curve: int(curve.x[-1])).x
            lines[line.label] = Curve(line.label, x, np.full((1, len(x)), 3.0))
    return curves, lines


@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
@pytest.mark.parametrize("key", STUDIES)
def test_every_figure_of_a_study_can_be_read(key, quick, tmp_path):
    study = find_study(key, quick=quick)
    figure = make_study_figure(tmp_path, study, *results_of(study))
    assert faults(figure) == []


@pytest.fixture
def drawn(monkeypatch):
    """The figures that commands save; nothing is written, which takes most of the time.

    No command may open a window, for which pyplot would be needed.
    """
    figures = []

    def keep(figure, buffer, **_):
        if figure not in figures:
            figures.append(figure)
        buffer.write(b"a figure")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", keep)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    return figures


LONG = "a folder with a long name/of several levels/which somebody chose"
ITEMS = ["A long name of an item", "Bee", "Cat", "Dog", "An even longer name of an item", "Fox"]


@pytest.fixture
def people(tmp_path):
    folder = tmp_path / LONG
    folder.mkdir(parents=True)
    path = folder / "ratings_of_animals_by_visitors_of_the_zoo_2025_export_final.csv"
    ratings = np.random.default_rng(0).integers(1, 6, size=(40, len(ITEMS)))
    rows = [",".join(map(str, row)) for row in ratings]
    path.write_text("\n".join([",".join(ITEMS), *rows]) + "\n")
    return path


@pytest.fixture
def log(tmp_path):
    """A log in which few rows agree with the best action, so that its bounds are wide."""
    numbers = np.random.default_rng(1)
    actions = numbers.integers(5, size=400)
    rewards = numbers.random(400) < np.where(actions == 2, 0.3, 0.05)
    path = tmp_path / "log.csv"
    rows = [f"{a},{int(r)},0.2,1.0" for a, r in zip(actions, rewards, strict=True)]
    path.write_text("\n".join(["action,reward,propensity,x_0", *rows]) + "\n")
    return path


COMMANDS = {
    "play": ["play", "--world", "{people}", "--threshold", "4", "--rounds", "60", "--runs", "2"],
    "compare": ["compare", "--rankers", "keystone,rtopk,random", "--items", "6", "--rounds", "60",
                "--runs", "3", "--against", "ftpl"],
    "evaluate": ["evaluate", "{log}", "--policy", "best-fixed", "--baseline", "logged"],
    "atlas": ["atlas", "--items", "2-3", "--grades", "2", "3", "--measures", "NDCG", "DCG@2"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_figure_of_a_command_can_be_read(command, drawn, people, log, tmp_path):
    given = [each.format(people=people, log=log) for each in COMMANDS[command]]
    result = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "out")])
    assert result.exit_code in (0, 1), result.output
    assert len(drawn) == 1
    assert faults(drawn[0]) == []


def curve(label, n_points=50):
    x = np.unique(np.geomspace(1, 10_000, n_points).astype(np.int64))
    return Points(label, x, (1.0 / np.sqrt(x), 0.01 / np.sqrt(x)))


def figure_of(folder, *, title="A title", labels=("keystone",), panels=1, name="panel", **options):
    drawn = [
        Panel(f"{name} {n}" if panels > 1 else "", [curve(label) for label in labels], **options)
        for n in range(panels)
    ]
    return make_figure(folder, title, drawn, REGRET, "DCG")


@pytest.mark.parametrize("n_panels", [1, 2, 4, 7])
@pytest.mark.parametrize("n_curves", [1, 9])
def test_any_number_of_panels_and_curves_can_be_read(n_panels, n_curves, tmp_path):
    labels = [f"a setting of some length, {n}" for n in range(n_curves)]
    long = {
        "title": 60 * "word ",
        "name": "a panel of which there is so much to say that no line holds it all, number",
    }
    figure = figure_of(tmp_path, labels=labels, panels=n_panels, **long)
    assert faults(figure) == []
    width, height = figure.get_size_inches()
    assert 0.6 < width / height < 3.2


def test_faults_are_found(tmp_path):
    assert faults(figure_of(tmp_path)) == []
    cut = figure_of(tmp_path)
    cut.text(0.5, 0.5, 200 * "x", ha="center")
    assert any("outside the canvas" in fault for fault in faults(cut))
    crowded = figure_of(tmp_path)
    crowded.axes[0].set_xticks(range(0, 10_000, 250))  # forty of them
    assert any(
        fault.startswith("one over the other: '2,000' and '2,250'") for fault in faults(crowded)
    )
    near = figure_of(tmp_path)
    near.axes[0].set_xticks([2000, 2700], ["2,000", "2,700"])
    assert faults(near) == ["too near: '2,000' and '2,700'"]
    assert any("there is no title" in fault for fault in faults(figure_of(tmp_path, title="")))
    for path in ("out/of/ratings.csv", r"out\ratings", "/ratings"):
        assert any("has a path" in f for f in faults(figure_of(tmp_path, title=f"DCG, {path}")))
    assert not any("path" in fault for fault in faults(figure_of(tmp_path, title="from 1/2 on")))
    hidden = figure_of(tmp_path)
    hidden.legend(["over the title"], loc="upper center", borderaxespad=0.0)
    assert any("'A title' and" in f or "and 'A title'" in f for f in faults(hidden))
    repeated = figure_of(tmp_path, panels=2)
    repeated.axes[1].set_title("panel 0")
    assert faults(repeated) == ["twice: 'panel 0'"]
    repeated.axes[1].set_title("")
    assert faults(repeated) == ["empty title of panel 1"]


def test_every_ranker_has_a_name_and_a_look_of_its_own():
    assert all({"label", "look"} <= set(vars(cls)) for cls in RANKERS.values())
    for kind in (FixedListRanker, ContextualRanker):
        looks = [row.look for row in RANKERS.values() if issubclass(row, kind) and row.look]
        assert len({look.colour for look in looks}) == len(looks)
        assert len({(look.dash, look.mark) for look in looks}) == len(looks)


def test_a_ranker_looks_alike_in_every_figure_and_a_label_in_every_panel():
    one = looks_of([("keystone", ""), ("rtopk, top(1)", ""), ("mine.py:Best, top(1)", "")])
    other = looks_of(
        [("K = 10", "rtopk"), ("K = 20", "rtopk"), ("mine.py:Best", ""), ("Keystone", "keystone")]
    )
    assert one["keystone"] == other["Keystone"]
    assert one["rtopk, top(1)"] == other["K = 10"]
    assert one["mine.py:Best, top(1)"] == other["mine.py:Best"]
    assert len({look.colour for look in other.values()}) == len(other)
    assert len({(look.dash, look.mark) for look in other.values()}) == len(other)
    own = looks_of((f"mine.py:Ranker{n}", "") for n in range(7))
    assert len({look.colour for look in own.values()}) == len(own)


def settings_in(study):
    """Return the labels of curves by what they look like, over all panels."""
    looks = looks_of((curve.name, curve.spec.ranker) for curve in study.curves)
    labels: dict[Look, list[str]] = {}
    for label, look in looks.items():
        labels.setdefault(look, []).append(label)
    return labels


@pytest.mark.parametrize("key", STUDIES)
def test_no_two_labels_of_a_study_look_the_same(key):
    assert [found for found in settings_in(find_study(key)).values() if len(found) > 1] == []


def test_panels_of_one_measure_share_their_heights(tmp_path):
    high, low = ([Curve("a", np.array([10, 100]), np.array([[y, y]]))] for y in (9.0, 0.5))
    panels = [Panel("one", high), Panel("two", low), Panel("three", low, scale="own")]
    plots = make_figure(tmp_path, "title", panels, REGRET, "DCG").axes[:3]
    assert plots[0].get_ylim() == plots[1].get_ylim()
    assert plots[2].get_ylim()[1] < 1.0
    assert [bool(plot.get_ylabel()) for plot in plots] == [True, False, True]


def test_many_curves_have_bars_and_few_have_bands(tmp_path):
    few, many = (figure_of(tmp_path, labels=[f"setting {n}" for n in range(n)]) for n in (3, 4))
    shaded, barred = ([len(plot.collections) for plot in f.axes] for f in (few, many))
    assert "bands: two standard errors" in few.texts[-1].get_text()
    assert "bars: two standard errors" in many.texts[-1].get_text()
    assert (shaded, barred) == ([3], [4])


def test_groups_have_the_names_of_the_study(tmp_path):
    study = find_study("thesis-fig5.2")
    plot = make_study_figure(tmp_path, study, *results_of(study)).axes[0]
    names = [label.get_text().replace("\n", " ") for label in plot.get_xticklabels()]
    assert names == ["ranker", *study.names.values()]


def points(x, mean, error):
    return Points("a", np.array(x), (np.array(mean, float), np.array(error, float)))


def test_all_that_is_drawn_is_in_view():
    falling = points(range(12), range(9, -3, -1), 12 * [0.5])
    low, high = Panel("", [falling], groups=12 * ["set"]).limits(from_zero=False)
    assert low < -3.0
    assert high > 10.0
    early = points([*range(1, 10), 100], [*9 * [50.0], 1.0], 10 * [0.0])
    assert Panel("", [early]).limits(from_zero=True)[0] == 0.0
    assert Panel("", [early]).limits(from_zero=True)[1] > 50.0
    assert Panel("", [early], first_x=50).limits(from_zero=True)[1] < 2.0
    both = points([1, 2], [-1.0, 2.0], [3.0, 3.0])
    assert Panel("", [both]).limits(from_zero=True)[0] < -1.0
    assert Panel("", [both], log_y=True).limits(from_zero=True)[0] > 0.5


def test_a_curve_that_is_nowhere_above_0_has_a_logarithmic_panel(tmp_path):
    panel = Panel("", [points([1, 2], [0.0, 0.0], [0.0, 0.0])], log_x=True, log_y=True)
    assert faults(make_figure(tmp_path, "title", [panel], REGRET, "DCG")) == []
