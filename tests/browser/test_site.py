"""The documentation, built as it is published and read in a real browser from files.

There is no server: a page that asks for anything that is not a file beside it fails.
"""

import importlib.util
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import keyhole

ROOT = Path(__file__).parents[2]
PAGES = (
    "index", "start/service", "start/data-science", "tutorials/first-game", "tutorials/own-ranker",
    "concepts/propensity", "papers/index", "papers/winners", "reference/rankers", "command-line",
    "changelog", "numbers",
)  # fmt: skip
PHONE = {"viewport": {"width": 390, "height": 844}}
WIDTHS = """['html', '.main', '.content', 'article'].map(
    part => document.querySelector(part).scrollWidth)"""
"""Of the page and of what could scroll within it; code and tables have boxes of their own."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as ``make docs`` does; a warning is an error."""
    if importlib.util.find_spec("sphinx") is None or importlib.util.find_spec("furo") is None:
        pytest.skip("Sphinx and furo are not installed: `pip install '.[docs]'`.")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    ran = subprocess.run(
        [*command, "-d", folder / "read", ROOT / "docs", folder / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / "html"


class Page(HTMLParser):
    """What a page links to, what it needs, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.needs, self.ids = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for name in ("src", "data", "poster"):
            self.needs += [given[name]] if given.get(name) else []
        if tag == "link" and given.get("rel") in {"stylesheet", "icon", "preload"}:
            self.needs.append(given["href"])


def dead_links(folder):
    """Return each link of a built site that leads nowhere, as (page, link)."""
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in page.links + page.needs:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = not anchor or target not in pages or anchor in pages[target].ids
            if not target.is_file() or not known:
                dead.append((path.name, link))
    return dead


def test_no_link_is_dead(site):
    assert len(list(site.rglob("*.html"))) > 60
    assert dead_links(site) == []


def test_a_dead_link_would_be_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">1</a><a href="b.html#gone">2</a>')
    (tmp_path / "b.html").write_text('<p id="there"><img src="c.png"><a href="https://x.org">3</a>')
    assert sorted(dead_links(tmp_path)) == [("a.html", "b.html#gone"), ("b.html", "c.png")]


def test_nothing_is_on_another_host(site):
    for path in site.rglob("*.html"):
        assert [need for need in Page(path).needs if urlsplit(need).netloc] == [], path.name
    for path in [*site.rglob("*.css"), *site.rglob("*.js")]:
        loads = re.findall(
            r"(?:@import|url\(|import\()\s*[\"']?(https?:[^\"')]+)", path.read_text()
        )
        assert loads == [], path.name


def test_every_public_name_is_in_the_reference(site):
    told = (site / "reference" / "keyhole.html").read_text(encoding="utf-8")
    names = [name for name in keyhole.__all__ if callable(getattr(keyhole, name))]
    words = set(re.findall(r"\w+", re.sub(r"<[^>]+>", " ", told)))
    assert [name for name in names if name not in words] == []


@pytest.fixture
def read(browser, site):
    """Return a way to open a page with the network cut, which fails on whatever fails to load."""
    context = browser.new_context(**PHONE, offline=True)
    page = context.new_page()
    trouble: list[str] = []
    page.on("requestfailed", lambda request: trouble.append(request.url))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.extend([said.text] * (said.type == "error")))
    page.on("request", lambda asked: trouble.extend(
        [asked.url] * (not asked.url.startswith(("file:", "data:")))))  # fmt: skip

    def opened(name):
        page.goto((site / f"{name}.html").as_uri().replace("%3F", "?"))
        return page

    yield opened
    context.close()
    assert trouble == []


def test_pages_open_without_a_network_and_fit_a_phone(read):
    for name in PAGES:
        page = read(name)
        widths = page.evaluate(WIDTHS)
        assert max(widths) <= PHONE["viewport"]["width"], (name, widths)
        assert page.evaluate("[...document.images].filter(i => !i.naturalWidth).length") == 0, name


def test_search_works_from_files(read, site):
    page = read("index")
    page.goto((site / "search.html").as_uri() + "?q=propensity")
    page.locator("#search-results li a").first.wait_for(timeout=15_000)
    found = page.locator("#search-results li a").all_inner_texts()
    assert "Propensity" in found


def test_what_the_site_is_built_with_is_an_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {need.split(">")[0] for need in extras["docs"]} == {
        "sphinx", "furo", "myst-parser",
    }  # fmt: skip
