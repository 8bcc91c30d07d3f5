"""Traces and evaluations drawn from Python."""

import importlib.util
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import keyhole
from keyhole.base.errors import InvalidInput, LibraryMissing
from keyhole.data import BanditLog
from keyhole.lab.figures.styles import RANKERS_SHOWN
from keyhole.offline import evaluate
from tests.lab.rendering import faults


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def traces():
    world = keyhole.Flips(6)
    return [
        keyhole.play(keyhole.ranker(name, n_items=6), world, rounds=400, runs=3, seed=1)
        for name in ("rtopk", "keystone")
    ]


@pytest.fixture(scope="module")
def evaluations():
    numbers = np.random.default_rng(0)
    actions = numbers.integers(2, size=1000)
    clicks = numbers.random(1000) < np.where(actions == 1, 0.4, 0.1)
    log = BanditLog.of(np.zeros((1000, 0)), actions, clicks, np.full(1000, 0.5))
    return [evaluate(log, "best-fixed"), evaluate(log, "uniform")]


def names_in(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_trace_draws_its_regret(traces):
    ax = traces[0].plot()
    (line,) = ax.get_lines()
    rounds, mean, error = traces[0].curve()
    late = rounds >= 8  # the first fiftieth of the rounds is left out
    assert line.get_xdata().tolist() == rounds[late].tolist()
    assert line.get_ydata() == pytest.approx(mean[late])
    assert line.get_color() == RANKERS_SHOWN["rtopk"].look.colour
    assert names_in(ax) == ["RTop-1F"]
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx((mean + 2.0 * error)[late].max())
    said = ax.get_xlabel()
    assert "lower is better" in said
    assert "bands: two standard errors over the runs" in said
    assert "drawn from round 8 on" in said
    assert ax.get_ylabel().startswith("average regret up to t")


def test_new_axes_are_pyplots_and_given_ones_are_used(traces):
    ax = traces[0].plot()
    assert pyplot.get_fignums() == [ax.figure.number]
    assert pyplot.gca() is ax
    own = Figure().add_subplot()
    assert traces[0].plot(ax=own, label="mine", log_x=True, log_y=True) is own
    assert keyhole.plot(*traces, ax=own) is own
    assert len(pyplot.get_fignums()) == 1


def test_options_are_those_of_the_figure(traces):
    ax = keyhole.plot(*traces, labels=["one", "other"], log_x=True, log_y=True)
    assert names_in(ax) == ["one", "other"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    colours = [line.get_color() for line in ax.get_lines()]
    assert colours == [RANKERS_SHOWN[name].look.colour for name in ("rtopk", "keystone")]


def test_labels_are_shown_as_they_are_given(traces, evaluations):
    for given in (["rtopk", "ftpl, top(1)"], ["same", "same"], ["_one", "1"]):
        assert names_in(keyhole.plot(*traces, labels=given)) == given
        names = names_in(keyhole.plot(*evaluations[:2], labels=given))
        assert names[: len(given)] == given
    own = traces[0].plot(label="rtopk")
    assert names_in(traces[1].plot(ax=own, label="ftpl")) == ["rtopk", "ftpl"]


def test_traces_of_one_ranker_are_told_apart(traces):
    ax = keyhole.plot(traces[0], traces[0])
    assert names_in(ax) == ["RTop-1F", "RTop-1F, 2"]
    one, other = (line.get_color() for line in ax.get_lines())
    assert one != other


def test_the_score_is_drawn_where_regret_is_not_known(traces):
    unknown = replace(traces[0], best=np.full_like(traces[0].best, np.nan))
    ax = keyhole.plot(traces[1], unknown)
    assert ax.get_ylabel().startswith("average score up to t")
    assert "higher is better" in ax.get_xlabel()
    loss = replace(unknown, is_loss=True)
    ax = loss.plot()
    assert ax.get_ylabel().startswith("average loss up to t")
    assert "lower is better" in ax.get_xlabel()


def test_an_evaluation_draws_its_difference(evaluations):
    ax = evaluations[0].plot()
    estimates = evaluations[0].difference
    assert [text.get_text() for text in ax.get_yticklabels()] == list(estimates)
    filled = [line for line in ax.get_lines() if line.get_label().startswith("best-fixed minus")]
    decisive = next(iter(estimates.values())).estimate.value
    assert filled[0].get_xdata().tolist() == [decisive]
    ends = [line.get_xdata()[0] for line in ax.get_lines() if len(line.get_xdata()) == 2]
    assert evaluations[0].lower_bound in ends
    assert "betting bound, which decides" in ax.get_xlabel()
    assert names_in(ax)[0] == "best-fixed minus logged"


def test_evaluations_are_compared_in_one_figure(evaluations):
    ax = keyhole.plot(*evaluations, labels=["the best", "any"])
    assert names_in(ax)[:2] == ["the best", "any"]
    one, other = (
        next(line for line in ax.get_lines() if line.get_label() == label)
        for label in ("the best", "any")
    )
    assert one.get_ydata()[0] < other.get_ydata()[0]
    assert "clopper-pearson" not in names_in(ax)  # it does not bound differences


def test_texts_of_plots_can_be_read(traces, evaluations):
    drawn = [traces[0].plot(), keyhole.plot(*traces, log_x=True), evaluations[0].plot()]
    for ax in drawn:
        assert [fault for fault in faults(ax.figure) if fault != "there is no title"] == []


def test_what_cannot_be_drawn_is_said(traces, evaluations, monkeypatch):
    with pytest.raises(InvalidInput, match="at least one trace or evaluation, got none"):
        keyhole.plot()
    with pytest.raises(InvalidInput, match="each of the 2 results, got 1"):
        keyhole.plot(*traces, labels=["one"])
    with pytest.raises(InvalidInput, match="traces or evaluations, got both"):
        keyhole.plot(traces[0], evaluations[0])
    with pytest.raises(InvalidInput, match="traces or evaluations, got a int"):
        keyhole.plot(3)  # type: ignore[arg-type]
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    with pytest.raises(LibraryMissing, match="Figures need matplotlib"):
        traces[0].plot()


def test_matplotlib_is_not_imported_before_it_is_needed():
    code = "import sys, keyhole; keyhole.plot, keyhole.Trace; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
