"""Sentences that a user sees, drawn at random: does each read well without what surrounds it?

    python -m bench.site.sentences --seed 1 --count 30
    python -m bench.site.sentences --only dashboard --count 1000

A sentence comes from the help of a command, a page of ``docs/``, the README, the description of the
HTTP interface or a template of the dashboard. Code, tables and headings are left out.
"""

import argparse
import html
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from keyhole.cli.app import app
from keyhole.service.api.openapi import document

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "src/keyhole/service/dashboard/templates"
FEWEST_WORDS = 4
"""Shorter texts are labels: they have no place of their own to be read in."""
_END = re.compile(r"(?<=[.!?])[\"')*`]*\s+(?=[\"'(*`\[]*[A-Z\d`*])")
_NO_END = re.compile(r"\b(?:e\.g|i\.e|vs|Fig|Thm|cf|al)\.$")
_BLOCKS = (
    r"(?ms)^(```|~~~).*?^\1$",
    r"(?ms)<!--.*?-->",
    r"(?m)^(\||#| {4,}|:|\[.*\]: |\([\w-]+\)=).*$",
)
_TEMPLATE = (r"(?s){#.*?#}", r"</?(?:code|strong|em|a|span)\b[^>]*>")


def split(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph that have words enough."""
    pieces: list[str] = []
    for piece in _END.split(" ".join(text.split())):
        pieces.append(piece)
        if not _NO_END.search(piece):
            sentence = " ".join(pieces)
            pieces = []
            if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= FEWEST_WORDS:
                yield sentence


def of_help() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the help of all commands, with the command."""
    waiting: list[tuple[str, Any]] = [("keyhole", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        told = [command.help, *(getattr(option, "help", None) for option in command.params)]
        for text in told:
            prose = re.sub(r"(?m)^ *keyhole .*$", "", text or "")
            for paragraph in prose.split("\n\n"):
                yield from ((f"{name} --help", each) for each in split(paragraph))
        below = getattr(command, "commands", None) or {}
        waiting += [(f"{name} {each}", below[each]) for each in below]


def of_pages() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the pages, with the file."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md"]
    for page in sorted(pages):
        text = page.read_text(encoding="utf-8")
        for left_out in _BLOCKS:
            text = re.sub(left_out, "", text)
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
            told = re.sub(r"^\s*(?:[-*]|\d+\.|>) ", "", paragraph)
            told = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", told).replace("**", "")
            yield from ((str(page.relative_to(ROOT)), each) for each in split(told))


def of_interface() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the OpenAPI document, with where in it they are."""
    waiting: list[tuple[str, Any]] = [("/openapi.json#", json.loads(document()))]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(f"{place}/{i}", each) for i, each in enumerate(value)]
        elif isinstance(value, dict):
            waiting += [(f"{place}/{name}", each) for name, each in value.items()]
        elif isinstance(value, str) and place.endswith(("/description", "/summary")):
            yield from ((place, each) for each in split(value))


def of_dashboard() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the templates, and of the titles in them, with the file."""
    for template in sorted(TEMPLATES.glob("*.html")):
        text = template.read_text(encoding="utf-8")
        titles = re.findall(r' (?:title|aria-label)="([^"]*)"', text)
        for left_out in _TEMPLATE:
            text = re.sub(left_out, "", text)
        for piece in re.split(r"(?s)<[^>]*>|{%.*?%}", "<>".join([*titles, text])):
            told = html.unescape(re.sub(r"{{.*?}}", "…", piece))
            yield from ((template.name, each) for each in split(told))


SOURCES = {"help": of_help, "docs": of_pages, "openapi": of_interface, "dashboard": of_dashboard}


def main() -> int:
    """Print sentences, the place of each after it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--only", choices=SOURCES, help="one of the sources")
    given = parser.parse_args()
    sources = [SOURCES[given.only]] if given.only else list(SOURCES.values())
    places: dict[str, str] = {}
    for source in sources:
        for place, sentence in source():
            places.setdefault(sentence, place)
    drawn = random.Random(given.seed).sample(list(places), min(given.count, len(places)))
    for number, sentence in enumerate(drawn, 1):
        sys.stdout.write(f"{number:3}. {sentence}  ({places[sentence]})\n")
    sys.stdout.write(f"{len(drawn)} of {len(places)} sentences\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
