"""What figures draw: places, ends of errors and of axes, by plain sums of what they are given."""

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from keyhole.lab.figures.drawings import CurveDrawing, EstimatesDrawing
from keyhole.lab.figures.estimates import Estimated, Estimates, draw_estimates
from keyhole.lab.figures.layout import make_figure
from keyhole.lab.figures.panels import (
    REGRET,
    Panel,
    Points,
    draw_panel,
    errors_are_bars,
    in_words,
    looks_in,
    score_axes,
)
from keyhole.lab.figures.plots import plot
from keyhole.lab.figures.shares import make_shares
from keyhole.lab.figures.styles import looks_of, source_name

# --------------------------------------------------------------------------- estimates


def drawn(*estimates, bounds=("one", "two", "three"), zero=False):
    """Return axes on which estimates are drawn, and the bounds that are out of view."""
    ax = Figure().add_subplot()
    return ax, draw_estimates(ax, estimates, bounds, zero=zero)


def of(label, value, low, **bounds):
    return Estimates(label, {"row": Estimated(value, low, bounds)})


def ends_of(*shown):
    """Return the ends of an axis that shows some numbers: 7 % of their range to either side."""
    margin = 0.07 * (max(shown) - min(shown)) or 1.0
    return min(shown) - margin, max(shown) + margin


@pytest.mark.parametrize(
    ("low", "bounds", "shown", "hidden"),
    [
        (7.0, {"one": 7.0, "two": 5.0}, [8.0, 7.0, 5.0], []),  # three times as far: still in view
        (7.0, {"one": 7.0, "two": 4.9}, [8.0, 7.0], ["two"]),
        (7.0, {"one": 7.0, "two": -1e6, "three": 6.0}, [8.0, 7.0, 6.0], ["two"]),
        (7.0, {"two": -1e6, "one": -1e5}, [8.0], ["one", "two"]),  # in the order of all bounds
        (None, {"one": 6.0, "two": 2.0}, [8.0, 6.0, 2.0], []),
        (None, {"one": 6.0, "two": 1.9}, [8.0, 6.0], ["two"]),
        (7.0, {"one": -math.inf, "two": math.nan, "three": 7.5}, [8.0, 7.5], ["one", "two"]),
        (
            8.0,
            {"one": 8.0, "two": 7.0, "three": 5.0},
            [8.0, 8.0, 7.0, 5.0],
            [],
        ),  # a gap of 0 is none
        (8.0, {"one": 8.0, "two": 7.0, "three": 4.9}, [8.0, 8.0, 7.0], ["three"]),
        (None, {"one": 9.0, "two": 10.0}, [8.0, 9.0, 10.0], []),  # above: never far below
        (None, {}, [8.0], []),
    ],
)
def test_bounds_far_below_are_left_out_and_the_axis_ends_by_the_others(low, bounds, shown, hidden):
    for zero in (False, True):
        ax, out_of_view = drawn(of("a", 8.0, low, **bounds), zero=zero)
        assert out_of_view == hidden
        assert ax.get_xlim() == pytest.approx(ends_of(*shown, *([0.0] if zero else [])))
        marks = [line for line in ax.get_lines() if line.get_fillstyle() == "none"]
        places = [line.get_xdata()[0] for line in marks if len(line.get_xdata())]
        assert sorted(places) == sorted(shown[1:])
        named = [line.get_label() for line in marks if not len(line.get_xdata())]
        assert named == [each for each in ("one", "two", "three") if each in bounds and
                         each not in hidden]  # fmt: skip


def test_every_estimate_has_its_place_its_value_and_the_line_to_what_decides():
    rows = {"x": Estimated(2.0, 1.5, {"one": 1.5}), "y": Estimated(3.0, None, {})}
    ax, _ = drawn(Estimates("a", rows), of("b", 4.0, 3.0, one=3.0), of("c", 5.0, None))
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["x", "y", "row"]
    points = [
        (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.get_lines()
        if len(line.get_xdata()) == 1 and line.get_fillstyle() != "none"
    ]  # fmt: skip
    step = 0.5 / 3
    assert points == [
        (2.0, pytest.approx(-step)), (3.0, pytest.approx(1 - step)), (4.0, 2.0),
        (5.0, pytest.approx(2 + step)),
    ]  # fmt: skip
    lines = [list(line.get_xdata()) for line in ax.get_lines() if len(line.get_xdata()) == 2]
    assert lines == [[1.5, 2.0], [3.0, 4.0]]
    assert ax.get_ylim() == (2.5, -0.5)
    labels = [line.get_label() for line in ax.get_lines() if not line.get_label().startswith("_")]
    assert labels == ["a", "b", "c", "one"]  # a row of the legend for each, the bounds at the end


def test_evaluations_that_are_compared_have_the_caption_of_the_first():
    def drawing(label, caption):
        return EstimatesDrawing(of(label, 2.0, 1.0, one=1.0), ("one",), caption)

    class Result:
        def __init__(self, label, caption):
            self.own, self.caption = label, caption

        def drawing(self, label=None):
            return drawing(label or self.own, self.caption)

    ax = plot(Result("a", "first"), Result("a", "second"), ax=Figure().add_subplot())
    assert ax.get_xlabel() == "reward per row\nfirst"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["a", "a, 2", "one"]


# --------------------------------------------------------------------------- panels


def points(label, x, mean, error=None, ranker=""):
    errors = np.full(len(mean), np.nan) if error is None else np.array(error, float)
    return Points(label, np.array(x), (np.array(mean, float), errors), ranker)


def begins_at(panel):
    """Return the first round drawn: 2 % of them, or 1/2 % where x is logarithmic."""
    if panel.first_x > 1:
        return panel.first_x
    if panel.groups or all(len(curve.x) <= 8 for curve in panel.curves):
        return 0.0
    return (0.005 if panel.log_x else 0.02) * max(curve.x[-1] for curve in panel.curves)


def limits_of(panel, from_zero):
    """Return the ends of y: all means, two standard errors of what has settled, 5 % beside."""
    shown = []
    for curve in panel.curves:
        for x, mean, error in zip(curve.x, *curve.mean, strict=True):
            if x < begins_at(panel):
                continue
            is_settled = bool(panel.groups) or panel.log_x or x >= 0.1 * curve.x[-1]
            spread = 2.0 * error if is_settled and not math.isnan(error) else 0.0
            low = mean - spread
            if panel.log_y:
                low = max(low, 0.4 * mean)
            elif from_zero:
                low = max(low, mean)
            shown += [low, mean + spread]
    for line in panel.lines:
        at = zip(line.x, line.mean[0], strict=True)
        shown += [height for x, height in at if x >= begins_at(panel)]
    if panel.log_y:
        low = min(each for each in shown if each > 0.0)
        high = max(shown)
        factor = max((high / low) ** 0.05, 1.05)
        return low / factor, high * factor
    low, high = min(shown), max(shown)
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return (0.0 if from_zero and low >= 0.0 else low - margin), high + margin


LATE = list(range(1, 101))


def falling(label, seed, n=100):
    numbers = np.random.default_rng(seed)
    mean = (1.0 + seed) / np.sqrt(np.arange(1, n + 1)) + 0.1 * numbers.normal(size=n)
    return points(label, LATE[:n], mean, numbers.uniform(0.0, 0.3, n))


PANELS: dict[str, dict[str, Any]] = {
    "curves": {}, "log x": {"log_x": True}, "from 30": {"first_x": 30},
    "log y": {"log_y": True}, "both logarithmic": {"log_x": True, "log_y": True},
    "a line above": {"lines": [points("l", LATE, np.linspace(9, 5, 100))]},
    "a line below": {"lines": [points("l", LATE, np.linspace(-1, -3, 100))]},
}  # fmt: skip


@pytest.mark.parametrize("from_zero", [True, False])
@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("above", [0.0, 5.0])
def test_axes_end_by_all_that_is_drawn_of_settled_curves(name, from_zero, above):
    curves = [falling("a", 1), falling("b", 2), falling("c", 3, 60)]
    curves = [each._replace(mean=(np.abs(each.mean[0]) + above, each.mean[1])) for each in curves]
    panel = Panel("", curves, **PANELS[name])
    assert panel.begins == begins_at(panel)
    assert panel.limits(from_zero) == pytest.approx(limits_of(panel, from_zero))
    ax = Figure().add_subplot()
    axes = REGRET if from_zero else score_axes(is_loss=False)
    dashes = {line.label: "-" for line in panel.lines}
    draw_panel(ax, panel, axes, "DCG", looks_in([panel]), dashes, bars=False)
    assert ax.get_ylim() == pytest.approx(limits_of(panel, axes.from_zero))
    for line, curve in zip(ax.get_lines(), [*curves, *panel.lines], strict=True):
        late = curve.x >= begins_at(panel)
        assert np.array_equal(line.get_xdata(), curve.x[late])
        assert np.array_equal(line.get_ydata(), curve.mean[0][late])


def test_axes_of_groups_and_of_what_is_flat_or_below_0():
    few = points("a", [0, 1, 2], [1.0, 5.0, 3.0], [0.1, math.nan, 1.5])
    for given in (
        Panel("", [few], groups=("x", "y", "z")),
        Panel("", [points("a", [1, 2], [2.0, 2.0])]),
        Panel("", [points("a", [1, 2], [0.0, 0.0])]),
        Panel("", [points("a", [1, 2], [-1.0, 2.0], [3.0, 3.0])]),
    ):
        for from_zero in (True, False):
            assert given.limits(from_zero) == pytest.approx(limits_of(given, from_zero))


def marked_at(x, log_x, number, n_curves):
    """Return the points with marks: those nearest to six places, moved from curve to curve."""
    if len(x) <= 12:
        return list(range(len(x)))
    scale = [math.log(each) if log_x else float(each) for each in x]
    places = [
        scale[0] + (place + (number + 0.5) / n_curves) / 6 * (scale[-1] - scale[0])
        for place in range(6)
    ]
    return sorted(
        {min(range(len(x)), key=lambda i: (abs(scale[i] - place), i)) for place in places}
    )


@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("log_x", [False, True])
def test_bars_are_two_standard_errors_at_the_marks(log_x, log_y):
    curves = [falling("a", 1), falling("b", 2)]
    curves = [each._replace(mean=(np.abs(each.mean[0]) + 0.2, each.mean[1])) for each in curves]
    panel = Panel("", curves, log_x=log_x, log_y=log_y)
    ax = Figure().add_subplot()
    draw_panel(ax, panel, REGRET, "", looks_in([panel]), {}, bars=True)
    stems = list(ax.containers)
    assert len(stems) == 2
    for number, (curve, stem) in enumerate(zip(curves, stems, strict=True)):
        late = curve.x >= begins_at(panel)
        x, mean, error = curve.x[late], curve.mean[0][late], curve.mean[1][late]
        marks = marked_at(x.tolist(), log_x, number, 2)
        (bars,) = stem[2]
        for place, segment in zip(marks, bars.get_segments(), strict=True):
            below = 2.0 * error[place]
            if log_y:
                below = min(below, 0.6 * mean[place])
            assert segment == pytest.approx(
                np.array(
                    [[x[place], mean[place] - below], [x[place], mean[place] + 2 * error[place]]]
                )
            )


def test_groups_have_points_side_by_side_with_two_standard_errors():
    curves = [
        points("a", [0, 1], [1.0, 2.0], [0.25, math.nan]),
        points("b", [0, 1], [3.0, math.nan], [0.5, 0.1]),
        points("c", [0, 1], [2.0, 2.5], [0.1, 0.2]),
    ]
    panel = Panel("", curves, groups=("one", "a name of some length"))
    ax = Figure().add_subplot()
    draw_panel(ax, panel, REGRET, "", looks_in([panel]), {}, bars=True)
    expected = [
        [(0.0 - 0.7 / 3, 1.0, 0.5), (1.0 - 0.7 / 3, 2.0, 0.0)],
        [(0.0, 3.0, 1.0)],
        [(0.0 + 0.7 / 3, 2.0, 0.2), (1.0 + 0.7 / 3, 2.5, 0.4)],
    ]
    for container, places in zip(ax.containers, expected, strict=True):
        for segment, (x, mean, spread) in zip(container[2][0].get_segments(), places, strict=True):
            assert segment == pytest.approx(np.array([[x, mean - spread], [x, mean + spread]]))
        line = container[0]
        assert line.get_ydata().tolist() == [mean for _, mean, _ in places]
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == ["one", "a name of\nsome length"]
    assert ax.get_xlim() == (-0.5, 1.5)


@pytest.mark.parametrize(
    ("x", "names"),
    [
        ([1000, 5000, 20_000], ["1k", "5k", "20k"]),
        ([500, 1000, 1500], ["500", "1,000", "1,500"]),
        ([2, 3, 4, 5, 6, 7, 8, 9], ["2", "3", "4", "5", "6", "7", "8", "9"]),
    ],
)
def test_few_points_are_named_themselves(x, names):
    panel = Panel("", [points("a", x, [1.0] * len(x))])
    ax = Figure().add_subplot()
    draw_panel(ax, panel, REGRET, "", looks_in([panel]), {}, bars=False)
    assert [text.get_text() for text in ax.get_xticklabels()] == names
    assert list(ax.get_xticks()) == x


def test_many_points_fill_the_width():
    for log_x, ends in ((False, (0, 100)), (True, (1, 100))):
        panel = Panel("", [falling("a", 1)], log_x=log_x)
        ax = Figure().add_subplot()
        draw_panel(ax, panel, REGRET, "", looks_in([panel]), {}, bars=False)
        assert ax.get_xlim() == ends


@pytest.mark.parametrize(
    ("x", "places"),
    [
        (range(100, 1001, 50), [100, 1000]),  # powers of ten, if there are two
        (range(20, 501, 20), [20, 50, 100, 200, 500]),  # and else plain numbers
    ],
)
def test_logarithms_are_named_from_the_first_point_to_the_last(x, places):
    panel = Panel("", [points("a", list(x), [1.0] * len(x))], log_x=True)
    ax = Figure().add_subplot()
    draw_panel(ax, panel, REGRET, "", looks_in([panel]), {}, bars=False)
    low, high = ax.get_xlim()
    assert (low, high) == (x[0], x[-1])
    assert [place for place in ax.get_xticks() if low <= place <= high] == places


def test_regret_and_losses_are_drawn_from_0_and_gains_are_not():
    panel = Panel("", [points("a", [1, 2, 3], [0.5, 0.55, 0.6])])
    for axes, low in ((REGRET, 0.0), (score_axes(True), 0.0), (score_axes(False), 0.495)):
        ax = Figure().add_subplot()
        draw_panel(ax, panel, axes, "", looks_in([panel]), {}, bars=False)
        assert ax.get_ylim() == pytest.approx((low, 0.605))


def test_axes_are_plain_unless_they_are_asked_to_be_logarithmic():
    many = points("a", LATE, [1.0 + each for each in range(100)])

    class Result:
        def drawing(self, _label=None):
            return CurveDrawing({REGRET: many}, "DCG")

    asks: list[dict[str, Any]] = [{}, {"log_x": True}, {"log_y": True}]
    for asked in (*asks, {"log_x": True, "log_y": True}):
        ax = plot(Result(), ax=Figure().add_subplot(), **asked)
        scales = [{True: "log", False: "linear"}[asked.get(name, False)] for name in
                  ("log_x", "log_y")]  # fmt: skip
        assert [ax.get_xscale(), ax.get_yscale()] == scales


def legends_of(figure):
    inside = [plot.get_legend() for plot in figure.axes if plot.get_legend()]
    return [[text.get_text() for text in each.get_texts()] for each in (*inside, *figure.legends)]


def test_a_legend_is_left_out_where_the_title_names_the_only_curve(tmp_path):
    one, other = points("one", [1, 2], [1.0, 2.0]), points("other", [1, 2], [1.0, 2.0])
    for title, curves, legend in (
        ("what one earns", [one], []),
        ("what is earned", [one], [["one"]]),
        ("one and other", [one, other], [["one", "other"]]),
    ):
        figure = make_figure(tmp_path, title, [Panel("", curves)], REGRET, "DCG")
        assert legends_of(figure) == legend


def test_captions_say_what_errors_are_and_where_curves_begin():
    bare = points("a", LATE, [1.0] * 100)
    several = [falling(name, 1) for name in "abcd"]
    cases = {
        "lower is better; drawn from round 2 on": [Panel("", [bare])],
        "lower is better": [Panel("", [points("a", [1, 2], [1.0, 1.0])])],
        "lower is better; bands: two standard errors over the runs; drawn from round 2 on": [
            Panel("", several[:3])
        ],
        "lower is better; bars: two standard errors over the runs; drawn from round 2 on": [
            Panel("", several)
        ],
        "lower is better; drawn from round 2 or 40 on": [
            Panel("", [bare], first_x=40), Panel("", [bare]),
        ],
    }  # fmt: skip
    for said, panels in cases.items():
        assert in_words(panels, REGRET) == said
        assert errors_are_bars(panels) == ("bars" in said)
    assert in_words([Panel("", [bare], first_x=3)], score_axes(is_loss=False)) == (
        "higher is better; drawn from round 3 on"
    )


def test_panels_compared_have_the_ends_of_all_of_them(tmp_path):
    low, high = falling("a", 1), falling("a", 5)
    panels = [Panel("one", [low]), Panel("two", [high]), Panel("three", [high], scale="own")]
    figure = make_figure(tmp_path, "title", panels, REGRET, "DCG")
    ends = [limits_of(panel, REGRET.from_zero) for panel in panels]
    shared = min(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])
    assert figure.axes[0].get_ylim() == pytest.approx(shared)
    assert figure.axes[1].get_ylim() == pytest.approx(shared)
    assert figure.axes[2].get_ylim() == pytest.approx(ends[2])


def test_curves_of_several_kinds_show_what_all_of_them_have():
    score = score_axes(is_loss=True)
    both = CurveDrawing({REGRET: falling("r", 1), score: falling("s", 2)}, "DCG")
    one = CurveDrawing({score: falling("t", 3)}, "DCG")

    class Result:
        def __init__(self, drawing):
            self._drawing = drawing

        def drawing(self, _label=None):
            return self._drawing

    for results, expected in (((both, one), score), ((both,), REGRET)):
        ax = plot(*map(Result, results), ax=Figure().add_subplot())
        for line, each in zip(ax.get_lines(), results, strict=True):
            curve = each.curves[expected]
            assert np.array_equal(line.get_ydata(), curve.mean[0][curve.x >= 2])
        assert ax.get_ylabel() == f"{expected.y} (DCG)"
    ax = plot(Result(both), Result(both._replace(measure="AP")), ax=Figure().add_subplot())
    assert ax.get_ylabel() == REGRET.y


def test_names_of_files_lose_their_middle_beyond_forty_letters():
    letters = "abcdefghij" * 5
    assert source_name(letters[:40]) == letters[:40]
    assert source_name(letters[:41]) == f"{letters[:20]}\N{HORIZONTAL ELLIPSIS}{letters[22:41]}"


# --------------------------------------------------------------------------- shares


def test_shares_are_means_and_errors_over_those_of_the_unit(tmp_path):
    unit = points("rtopk", [0, 1], [2.0, 8.128], [0.3, 0.4])
    other = points("keystone", [0, 1], [1.0, 10.16], [0.1, math.nan])
    panel = Panel("title", [unit, other], groups=("u", "v"))
    figure = make_shares(tmp_path, "title", [panel], "rtopk", REGRET)
    (ax,) = figure.axes
    (container,) = ax.containers
    assert container[0].get_xdata().tolist() == [0.5, 1.25]
    segments = container[2][0].get_segments()
    assert segments[0] == pytest.approx(np.array([[0.5 - 0.1, 0], [0.5 + 0.1, 0]]))
    assert segments[1] == pytest.approx(np.array([[1.25, 1], [1.25, 1]]))
    assert container[0].get_color() == looks_of([("keystone", "")])["keystone"].colour
    assert [text.get_text() for text in ax.texts] == ["2", "8.13"]
    assert [line.get_xdata()[0] for line in ax.get_lines()][:2] == [0.0, 1.0]
    assert ax.get_xlabel() == "average regret up to t, as a share of that of rtopk"
    far = Panel("title", [unit, points("keystone", [0, 1], [-9.0, 40.0])], groups=("u", "v"))
    (wide,) = make_shares(tmp_path, "title", [far], "rtopk", REGRET).axes
    for each in (ax, wide):
        low, high = each.get_xlim()
        shown = [t for t in (-4, -2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2, 4) if low <= t <= high]
        assert list(each.get_xticks()) == shown
    assert wide.get_xticks()[0] == -4
    caption = figure.texts[-1].get_text().replace("\n", " ")
    assert caption == (
        "lower is better; bars: two standard errors over the runs; all on the same users; at the "
        "right: average regret up to t of rtopk; the scale is logarithmic beyond 0.5"
    )
