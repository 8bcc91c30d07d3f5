"""Every number of the dashboard's pages, put together a second time from the log."""

import re

import pytest

from keyhole.service.dashboard.index_page import index_page
from keyhole.service.dashboard.ranker_page import ranker_page
from keyhole.service.summary import summary
from tests.service.games import GAMES, log_of
from tests.service.page_references import index_row_of, ranker_page_of
from tests.service.played import NAME, numbers_in
from tests.service.summary_references import summary_of
from tests.service.test_numbers import alike

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module", params=GAMES, ids=str)
def told(request):
    """What a summary says, and what it must say."""
    crowd, history = log_of(request.param)
    wanted = {**summary_of(history), "simulation": history.config.simulation}
    return summary(crowd.engine.ranker(NAME)), wanted, history.config


def near(drawn, wanted):
    """Hold the points of a line to a reference, to what a rounding can change."""
    told, numbers = ([float(x) for x in re.split("[, ]", each)] for each in (drawn, wanted))
    assert told == pytest.approx(numbers, abs=0.11)


def test_every_number_of_the_page_of_a_ranker(told):
    said, wanted, config = told
    page, reference = ranker_page(said), ranker_page_of(wanted, config.measure)
    for chart, drawn in reference["charts"].items():
        for name, points in drawn.pop("points").items():
            near(page["charts"][chart]["points"][name], points)
    assert set(page["charts"]) == set(reference["charts"])
    for item in (*reference["rows"]["items"], *reference["rows"]["counts"]):
        for bar in [name for name in item if name.startswith("bar")]:
            item[bar] = round(item[bar], 2)
    says = reference["texts"].pop("ranking_says")
    assert page["texts"]["ranking_says"].startswith(says)
    alike(page, reference)
    regret = [x for x in wanted["series"]["regret"] or [] if x is not None]
    assert bool(page["texts"]["regret_says"]) == (bool(regret) and regret[-1] < 0.0)
    if wanted["apprentice"] is not None:
        decided = page["texts"]["apprentice_says"].startswith("The apprentice is better")
        assert decided == wanted["apprentice"]["better"]


def test_every_number_of_the_list_of_rankers(told):
    said, wanted, _ = told
    page, reference = index_page([said, said], ""), index_row_of(wanted)
    assert page["texts"]["live"] == "2 rankers"
    for row in page["rows"]["rankers"]:
        near(row["sparkline"], reference["sparkline"])
        alike(row, {name: text for name, text in reference.items() if name != "sparkline"})


def test_no_number_of_a_summary_is_without_a_reference(told):
    """What a later change adds to the summary of a fixed list is held to a reference as well."""
    said, wanted, _ = told
    known = {path for path, _ in numbers_in(wanted)} | {"is_loss", "code.seconds"}
    assert {path for path, _ in numbers_in(said)} - known == set()
