"""What is kept of a study is enough for its page: means, errors, verdicts."""

import json

import numpy as np
import pytest

from bench.site.papers import curve_of, index_of, kept_of, page_of
from keyhole.lab.results import Curve, curves_csv
from keyhole.lab.study import find_study

STUDY = find_study("top1-fig2")
LABELS = [curve.label for curve in STUDY.curves]


@pytest.fixture
def played(tmp_path):
    """A reproduction of two curves of 300 points, one claim of which fails."""
    numbers, rounds = np.random.default_rng(1), np.arange(1, 301)
    curves = [Curve(label, rounds, numbers.random((4, 300))) for label in LABELS]
    axes = STUDY.kind.axes("DCG")
    (tmp_path / "curves.csv").write_bytes(curves_csv(curves, axes))
    verdicts = [
        {"claim": "one | two", "holds": True, "evidence": "1 of 2"},
        {"claim": "three", "holds": False, "evidence": "4"},
        {"claim": "five", "holds": None, "evidence": "no data"},
    ]
    record = {"version": "1.2", "verdicts": verdicts, "missing": {}, "holds": False}
    (tmp_path / "verdicts.json").write_text(json.dumps(record))
    return tmp_path, curves


def test_curves_are_kept_at_few_points_with_their_errors(played):
    folder, curves = played
    kept = kept_of(folder)
    for label, curve in zip(LABELS, curves, strict=True):
        again = curve_of(label, kept["curves"][label])
        assert len(again.x) == 60
        assert (again.x[0], again.x[-1]) == (1, 300)
        assert kept["curves"][label]["runs"] == 4
        for x in again.x:
            assert again.at(x) == pytest.approx(curve.at(x), rel=1e-4)


def test_a_curve_of_one_run_has_no_error():
    kept = {"runs": 1, "x": [1, 2], "mean": [0.5, 0.25], "standard_error": [None, None]}
    again = curve_of("alone", kept)
    assert again.values.tolist() == [[0.5, 0.25]]


def test_a_page_says_what_holds_and_with_which_numbers(played):
    folder, curves = played
    kept = kept_of(folder)
    page = page_of(STUDY, {label: curve_of(label, kept["curves"][label]) for label in LABELS}, kept)
    assert page.startswith(f"# {STUDY.title}\n")
    assert f"![{STUDY.title}](top1-fig2.svg)" in page
    assert "1 of 3 claims hold, 1 fail, 1 were skipped" in page
    for row in (r"| holds | one \| two | 1 of 2 |", "| fails | three | 4 |", "| skipped | five |"):
        assert row in page
    assert f"| {LABELS[0]} | 4 | 300 | {curves[0].at().mean:.4g} ± " in page
    assert "## Run it\n" not in page
    assert "    keyhole reproduce top1-fig2\n" in page


def test_the_list_has_a_row_and_a_place_for_each(played):
    listed = index_of({"top1-fig2": STUDY}, {"top1-fig2": kept_of(played[0])})
    assert f"| [{STUDY.title}](top1-fig2.md) | {STUDY.paper} | 1 of 3 claims hold" in listed
    assert listed.endswith("```{toctree}\n:hidden:\n\ntop1-fig2\n```\n")
