"""One browser and one dashboard for all tests of a worker."""

import shutil
from contextlib import contextmanager

import pytest

from bench.showroom import Crowd, Showroom, configure
from keyhole.service.engine import Engine
from keyhole.service.store.memory import MemoryStore
from tests.browser.summaries import ITEMS, MARKUP

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = 15_000


@pytest.fixture(scope="session")
def showroom():
    """A dashboard with a ranker that has learnt a little, and one that has not begun."""
    store = MemoryStore()
    engine = Engine(store)
    configure(engine, "attractions", items=list(ITEMS), k=2, simulation=True, seed=3)
    likes = {name: 0.9 - 0.1 * place for place, name in enumerate(ITEMS)}
    Crowd({**likes, MARKUP: 0.95}).play(engine, "attractions", 60)
    configure(engine, "fresh", items=list(ITEMS), k=2, seed=3)
    with Showroom(store, heartbeat_seconds=1.0) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser():
    """Chromium, if the machine has it.

    While it is open an event loop runs in this thread, which other modules must not meet.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("There is no chromium on this machine: `.ci/run` installs it.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, showroom):
    """Return a way to open a page, which fails on any complaint of the browser and any stranger."""

    @contextmanager
    def opened(path, *, expects_trouble=False, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        trouble: list[str] = []
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda said: trouble.extend([said.text] * (said.type == "error")))
        page.goto(showroom.url + path)
        yield page
        context.close()
        assert [url for url in asked if not url.startswith(showroom.url)] == []
        assert expects_trouble or trouble == []

    return opened
