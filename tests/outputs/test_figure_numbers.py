"""What figures and studies show: points, bands and texts, from the tables beside them."""

import csv
import json
from typing import Any

import numpy as np
import pytest

from keyhole.data.bandit.formats import read_bandit
from keyhole.offline.evaluation import evaluate
from tests.lab.running import run
from tests.outputs.commands import CLAIMS, STUDY
from tests.outputs.drawn import kept_figures, shown_by
from tests.outputs.inputs import write_lists, write_log, write_people

pytestmark = pytest.mark.interpreted


def drawn_by(*arguments, code=0):
    """Return what a command tells, and what its one figure shows."""
    with kept_figures() as figures:
        told = json.loads(run(*arguments, "--json", code=code).stdout)
    (figure,) = figures
    return told, shown_by(figure)


def curves_in(path):
    """Return rounds, means and standard errors of the curves of a table, in its order."""
    found: dict[str, list[Any]] = {}
    for row in csv.DictReader(path.read_text().splitlines()):
        columns = list(row.values())
        error = float(columns[3]) if columns[3] else 0.0
        found.setdefault(columns[0], []).append((int(columns[1]), float(columns[2]), error))
    return {name: np.array(points).T for name, points in found.items()}


def check_curves(panel, curves, begins, *, bands=True, also=()):
    """Compare points with a table from some round on, and bands with two errors around them."""
    shown = {name: points[:, points[0] >= begins] for name, points in curves.items()}
    x = np.concatenate([points[0] for points in shown.values()] + [line[0] for line in also])
    y = np.concatenate([points[1] for points in shown.values()] + [line[1] for line in also])
    np.testing.assert_allclose(panel["x"][: len(x)], x, rtol=1e-12)
    np.testing.assert_allclose(panel["y"][: len(y)], y, rtol=1e-9)
    if bands:
        ends = {round(m + s * 2 * e, 9) for t in shown.values() for _, m, e in t.T for s in (1, -1)}
        assert {round(value, 9) for value in panel["spread"]} == ends
    return len(x)


def check_begins(caption, begins, what="round"):
    assert caption.endswith(f"; drawn from {what} {begins} on")


def test_the_figure_of_a_game(tmp_path):
    write_people(tmp_path / "people.csv")
    told, shown = drawn_by(
        "play", "--ranker", "rtopk", "--world", tmp_path / "people.csv", "--grades", 4,
        "--top", 2, "--rounds", 150, "--runs", 3, "--seed", 3, "--against", "random", "--out",
        tmp_path / "out",
    )  # fmt: skip
    (panel,), (title, caption) = shown["panels"], shown["texts"]
    assert title == "DCG, 4 items, people.csv"
    begins = 3  # the first fiftieth of the rounds would hide the rest
    check_curves(panel, curves_in(tmp_path / "out" / "curves.csv"), begins)
    lines = caption.splitlines()
    assert "bands: two standard errors over the runs" in lines[0]
    check_begins(lines[0], begins)
    for line, each in zip(lines[1:], (told, *told["against"]), strict=True):
        assert line.endswith(f" would now show: {', '.join(each['learnt_ranking'])}")
    called = [label.split(", ") for label in panel["legend"]]
    assert [seen for _, seen in called] == ["top 2", "top 2"]
    assert [line.partition(" would ")[0] for line in lines[1:]] == [name for name, _ in called]


def test_the_figure_of_learning(tmp_path):
    write_lists(tmp_path / "train.txt", 4)
    write_lists(tmp_path / "test.txt", 5)
    told, shown = drawn_by(
        "learn", tmp_path / "train.txt", "--test", tmp_path / "test.txt", "--rounds", 60, "--runs",
        2, "--measure", "DCG@2", "--measure", "NDCGLoss", "--out", tmp_path / "out",
    )  # fmt: skip
    (panel,), (title, caption) = shown["panels"], shown["texts"]
    assert title == "DCG@2, lists of train.txt"
    check_curves(panel, curves_in(tmp_path / "out" / "curves.csv"), 2)
    check_begins(caption.splitlines()[0], 2, "list")
    for line, each in zip(caption.splitlines()[1:], (told, *told["against"]), strict=True):
        scores = ", ".join(f"{name} {score:.4f}" for name, score in each["test"].items())
        assert line.endswith(f" on the lists held out: {scores}")


def test_the_figure_of_a_comparison(tmp_path):
    told, shown = drawn_by(
        "compare", "--rankers", "epsilon-greedy,random,thompson", "--items", 4, "--rounds", 50,
        "--top", 2, "--runs", 3, "--seed", 3, "--measure", "Precision@2", "--out", tmp_path,
    )  # fmt: skip
    left, right = shown["panels"]
    title, caption = shown["texts"]
    assert title == "Precision@2, 4 items, flips, top 2"
    n_points = check_curves(left, curves_in(tmp_path / "curves.csv"), 0)
    assert n_points == len(left["x"])
    x, y, texts = [], [], []
    for place, row in enumerate(told["rankers"]):
        low, high = row["worse_by_interval"]
        x += [low, high, row["worse_by"]]
        y += [place] * 3
        best = row["standing"] == "best"
        texts.append("best" if best else f"+{row['worse_by']:.4f}\n{row['standing']}")
    np.testing.assert_allclose(right["x"][: len(x)], x, atol=1e-12)
    assert right["y"][: len(y)] == y
    assert right["texts"] == texts
    assert "; 3 runs, on the same users" in caption
    assert f"{told['confidence']:.0%} intervals for all {told['n_pairs']} pairs at once" in caption


def test_a_study_shows_its_curves_and_judges_them(tmp_path, monkeypatch):
    """Of three runs, against a bound of the theory; every number of a verdict is of the table."""
    folder = tmp_path / "papers" / "small"
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(STUDY)
    (folder / "expected.toml").write_text(CLAIMS)
    monkeypatch.setattr("keyhole.lab.study.papers_folder", lambda: tmp_path / "papers")
    told, shown = drawn_by("reproduce", "small", "--out", tmp_path / "out")
    curves = curves_in(tmp_path / "out" / "curves.csv")
    plays = {}
    for label, ranker in (("greedy", "epsilon-greedy"), ("chance", "random")):
        alone = json.loads(
            run("play", "--ranker", ranker, "--world", "gaussian", "--items", 4, "--rounds", 40,
                "--runs", 3, "--seed", 5, "--measure", "SumLoss", "--set", "world.n_relevant=2",
                "--set", "world.sd=0.2", "--json").stdout
        )  # fmt: skip
        plays[label] = alone
        assert curves[label][0].tolist() == [t for t, _ in alone["curve"]]
        np.testing.assert_allclose(curves[label][1], [y for _, y in alone["curve"]], rtol=1e-12)
        np.testing.assert_allclose(curves[label][2], alone["curve_error"], rtol=1e-12)
    table = (tmp_path / "out" / "curves.csv").read_text().splitlines()
    assert {row["runs"] for row in csv.DictReader(table)} == {"3"}
    # Theorem 19 for SumLoss of four items, two of them shown: 3 R^(2/3) (D A q)^(1/3) T^(2/3).
    x = curves["greedy"][0]
    bound = 3 * 16.0 ** (2 / 3) * (16.0 * 4.0 * 2) ** (1 / 3) * x ** (2 / 3) / x
    check_curves(shown["panels"][0], curves, 0, also=[(x, bound)])
    found = {name: (points[1][29], points[2][29]) for name, points in curves.items()}
    (low, low_error), (high, high_error) = found["greedy"], found["chance"]
    holds = high - low > 1.5 * np.hypot(low_error, high_error)
    order, band = told["verdicts"]
    assert order["holds"] == holds
    assert order["evidence"] == (
        f"at 30, rising: greedy {low:.4g} ± {low_error:.2g}, chance {high:.4g} ± {high_error:.2g} "
        f"(each by 1.5 standard errors)"
    )
    last, error = curves["greedy"][1][-1], curves["greedy"][2][-1]
    assert band["holds"] == (0.1 <= last <= 0.9)
    assert band["evidence"] == f"{last:.4g} ± {error:.2g} at 40, band 0.1 to 0.9"
    assert told["holds"] == (order["holds"] and band["holds"])


def estimates_drawn(lines, decided_by, rows, places):
    """Return what is drawn of estimates: each, its line down, and marks of bounds that are near."""
    x, y = [], []
    for name, height in zip(rows, places, strict=True):
        value, bounds = lines[name]["value"], lines[name]["bounds"]
        x.append(value)
        y.append(height)
        if bounds[decided_by] is not None:
            x += [bounds[decided_by], value]
            y += [height, height]
        gaps = [value - bound for bound in bounds.values() if bound is not None]
        nearest = min((gap for gap in gaps if gap > 0), default=0.0)
        for bound in bounds.values():
            if bound is not None and not value - bound > 3.0 * nearest > 0.0:
                x.append(bound)
                y.append(height)
    return x, y


@pytest.mark.parametrize(("bound", "confidence"), [("student-t", 0.9), ("betting", 0.95)])
def test_the_figure_of_an_evaluation(bound, confidence, tmp_path):
    write_log(tmp_path / "log.csv")
    given = ["--policy", "uniform", "--bound", bound, "--confidence", confidence, "--seed", 2]
    told, shown = drawn_by("evaluate", tmp_path / "log.csv", *given, "--out", tmp_path, code=1)
    both, gap = shown["panels"]
    names = list(told["difference"])
    expected = [
        estimates_drawn(told[role]["estimates"], bound, names, [n + shift for n in range(5)])
        for role, shift in (("policy", -0.125), ("baseline", 0.125))
    ]
    for panel, drawn in (
        (both, [np.concatenate([each[part] for each in expected]) for part in (0, 1)]),
        (gap, estimates_drawn(told["difference"], bound, names, range(5))),
    ):
        n = len(drawn[0])
        np.testing.assert_allclose(panel["x"][:n], drawn[0], atol=1e-12)
        np.testing.assert_allclose(panel["y"][:n], drawn[1], atol=1e-12)
    # What is drawn after that is the mark of zero.
    assert gap["x"][n:] == [0.0, 0.0]
    title, caption = shown["texts"]
    assert title == "uniform against logged: keep"
    assert f"hollow: one-sided {confidence:.0%} lower bounds, 120 rows" in caption
    check_session(tmp_path / "log.csv", told, bound, confidence)


def check_session(path, told, bound, confidence):
    """Compare what a session prints and plots with what the command tells."""
    judged = evaluate(read_bandit(path), "uniform", "logged", confidence, bound=bound, seed=2)

    def number(value):
        return "none" if value is None else f"{value:.5f}"

    def between(line):
        low, high = line["intervals"][bound]
        return f"{number(line['value'])} ({number(low)} to {number(high)})"

    said = judged._described()
    assert said.title == "keep: uniform against logged on 120 rows"
    rows = dict(said.rows)
    decisive = {
        role: told[role]["estimates"]["importance-weighted"] for role in ("policy", "baseline")
    }
    assert rows["uniform"] == between(decisive["policy"])
    assert rows["logged"] == between(decisive["baseline"])
    assert rows["difference"] == between(told["difference"]["importance-weighted"])
    assert rows["at least"] == f"{number(told['lower_bound'])} ({bound}, {confidence:.3g})"
    of_policy = dict(judged.policy._described().rows)
    for name, line in told["policy"]["estimates"].items():
        assert of_policy[name].startswith(number(line["value"]))
        assert of_policy[name].endswith(f" ± {line['standard_error']:.2g}")
    diagnostics = told["policy"]["diagnostics"]
    assert of_policy["effective rows"] == f"{diagnostics['effective_rows']:,.0f} of 120"
    line = judged.policy.lines["importance-weighted"]._described()
    assert line.title == f"importance-weighted {number(decisive['policy']['value'])}"
    for name, text in line.rows:
        low, high = decisive["policy"]["intervals"][name]
        least = decisive["policy"]["bounds"][name]
        assert text == f"at least {number(least)}; {number(low)} to {number(high)}"
    axes = judged.plot()
    drawn = estimates_drawn(told["difference"], bound, list(told["difference"]), range(5))
    x = np.concatenate([np.asarray(each.get_xdata(), float) for each in axes.lines])
    y = np.concatenate([np.asarray(each.get_ydata(), float) for each in axes.lines])
    np.testing.assert_allclose(x[: len(drawn[0])], drawn[0], atol=1e-12)
    np.testing.assert_allclose(y[: len(drawn[1])], drawn[1], atol=1e-12)
    assert f"marks: one-sided {confidence:.0%} lower bounds" in axes.get_xlabel()
