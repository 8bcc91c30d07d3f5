"""The dashboard in a real browser: it is live, keeps to itself, and serves everybody."""

import pytest

from keyhole.service.commands import FeedbackRequest, GiveFeedback, Rank, RankRequest
from keyhole.service.dashboard import views
from tests.browser.summaries import MARKUP, summary

PHONE = {"viewport": {"width": 390, "height": 844}}
LIVE = "#live[data-state=live]"
RANKER = "/rankers/attractions"


def play_a_round(showroom, ranker="attractions"):
    shown = showroom.submit(Rank(ranker, RankRequest()))
    request = FeedbackRequest(relevance=[1.0] * shown.k)
    showroom.submit(GiveFeedback(ranker, shown.event_id, request))
    return shown.event_id


def an_impression(showroom):
    return f"{RANKER}/events/{play_a_round(showroom)}"


def wait_for_text(page, selector, text):
    page.locator(selector, has_text=text).first.wait_for(state="attached")


def rounds_of(page):
    return int(page.locator(".fact .number").first.inner_text().replace(",", ""))


def test_the_page_follows_the_ranker_live(visit, showroom):
    with visit(RANKER) as page:
        page.locator(LIVE).wait_for()
        wait_for_text(page, "#announcer", "Round")
        assert page.locator(".chart canvas").count() == 3
        before = rounds_of(page)
        play_a_round(showroom)
        wait_for_text(page, ".fact .number", f"{before + 1:,}")
        wait_for_text(page, "[data-text=live]", f"Round {before + 1:,}")
        assert page.locator(".chart canvas").count() == 3


def test_a_page_of_a_fresh_ranker_fills_as_it_begins(visit, showroom):
    with visit("/rankers/fresh") as page:
        page.locator(LIVE).wait_for()
        page.get_by_text("No lists yet").wait_for()
        for _ in range(3):
            play_a_round(showroom, "fresh")
        page.locator(".ranking tbody tr").first.wait_for()
        page.locator("[data-chart=score] canvas").wait_for()
        assert page.get_by_text("No lists yet").is_hidden()
        assert page.locator(".items tbody tr").count() == 7


def test_a_lost_connection_is_told_and_mended(visit, showroom):
    with visit(RANKER, expects_trouble=True) as page:
        page.locator(LIVE).wait_for()
        showroom.close()
        wait_for_text(page, "#connection", "Connection lost")
        showroom.open()
        page.locator(LIVE).wait_for()
        before = rounds_of(page)
        play_a_round(showroom)
        wait_for_text(page, ".fact .number", f"{before + 1:,}")


def test_names_with_markup_stay_text(visit, showroom):
    event = an_impression(showroom)
    for path in (RANKER, f"{RANKER}/events", event, f"{RANKER}/evaluate"):
        with visit(path) as page:
            if path == RANKER:
                page.locator(LIVE).wait_for()
                before = rounds_of(page)
                play_a_round(showroom)
                wait_for_text(page, ".fact .number", f"{before + 1:,}")
                assert page.locator(".items").get_by_text(MARKUP, exact=True).count() == 1
            assert page.locator("main img, main b").count() == 0
            assert page.title() != "owned"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit, showroom, monkeypatch, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    verdict = {"reason": "Two grades look the same.", "advice": ["Use DCG."]}
    rich = summary(verdict=verdict)
    event = an_impression(showroom)
    for told in ("summary_of", "brief"):
        monkeypatch.setattr(views, told, lambda live: {**rich, "name": live.name})
    paths = (RANKER, "/", f"{RANKER}/events", event, f"{RANKER}/evaluate", "/nowhere")
    for path in paths if scheme == "light" else paths[:1]:
        with visit(path, color_scheme=scheme, expects_trouble=path == "/nowhere") as page:
            if path.endswith("/evaluate"):
                page.locator("form.form button").click()
                page.locator(".whisker").wait_for()
            found = axe.run(page)
            assert found.violations_count == 0, (path, found.generate_report())


def test_the_keyboard_reaches_everything(visit, showroom):
    for path in (RANKER, f"{RANKER}/evaluate"):
        with visit(path) as page:
            # Of a group of radio buttons, the one that is chosen is reached.
            wanted = page.evaluate(
                "[...document.querySelectorAll("
                "'a, button, select, input, textarea, summary, [tabindex]')]"
                ".filter((part) => part.tabIndex >= 0 && part.checkVisibility())"
                ".filter((part) => part.type !== 'radio' || part.checked).length"
            )
            reached = set()
            for step in range(wanted):
                page.keyboard.press("Tab")
                place, outline, name = page.evaluate(
                    "[[...document.querySelectorAll('*')].indexOf(document.activeElement),"
                    " getComputedStyle(document.activeElement).outlineStyle,"
                    " document.activeElement.className]"
                )
                assert outline != "none"
                assert (name == "skip") == (step == 0)
                reached.add(place)
            assert len(reached) == wanted
            page.keyboard.press("Tab")


def test_the_content_can_be_skipped_to(visit, showroom):
    with visit(RANKER) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def test_a_phone_needs_no_scrolling_sideways(visit, showroom, monkeypatch):
    event = an_impression(showroom)
    for told in ("summary_of", "brief"):
        monkeypatch.setattr(views, told, lambda _: summary(name="long-name-" * 6))
    for path in ("/", RANKER, f"{RANKER}/events", event, f"{RANKER}/evaluate", "/nowhere"):
        with visit(path, expects_trouble=path == "/nowhere", **PHONE) as page:
            too_wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert too_wide <= 0, path


def test_everything_is_there_without_scripts(visit, showroom):
    with visit(RANKER, java_script_enabled=False) as page:
        assert rounds_of(page) > 50
        assert "Not live: reload" in page.locator(".status").inner_text()
        assert page.locator(".items tbody tr").count() == 7
        assert page.locator(".chart polyline").count() == 4
        assert page.locator("details table tbody tr").count() > 5


def test_colours_follow_the_reader(visit, showroom):
    grounds = set()
    for scheme in ("light", "dark"):
        with visit(RANKER, color_scheme=scheme, reduced_motion="reduce") as page:
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert (
                page.evaluate(
                    "getComputedStyle(document.querySelector('.bar-mean')).transitionDuration"
                )
                == "0s"
            )
    assert len(grounds) == 2
