"""The record of measured numbers, as a page."""

import datetime
import os
import platform
import subprocess
import textwrap
from typing import Any

import keyhole
from bench.numbers_quoted import ROOT

_HEAD = """# Numbers

Every number that these pages quote, measured again by `make numbers`: from an empty cache of
compiled code, in one go, each row in a process of its own. A number agrees if it is the measured
one, rounded as the page rounds it; words such as "half" stand for the range given. This page is
what the command wrote.

"""


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model n")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def circumstances(stamp: str) -> dict[str, Any]:
    """Return what was measured, when and where."""
    changed = _git("status", "--porcelain", "--", "src", "papers", "bench")
    return {
        "version": keyhole.__version__,
        "commit": _git("rev-parse", "--short=12", "HEAD") + (", changed" if changed else ""),
        "code": stamp,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }


_LONGEST_TEXT = 90
"""Letters of a quotation that its row shows; its file has the rest."""


def _cell(text: str) -> str:
    short = textwrap.shorten(text, _LONGEST_TEXT, placeholder=" ...")
    return short.replace("|", "\\|")


def as_markdown(outcomes: list[Any], elsewhere: list[dict[str, Any]], where: dict[str, Any]) -> str:
    """Return the record as a page: a section for each row, then what other commands measure."""
    compared = [each for outcome in outcomes for each in outcome.compared]
    n_wrong = sum(each.agrees is False for each in compared)
    n_open = sum(each.agrees is None for each in compared)
    seconds = sum(outcome.seconds for outcome in outcomes)
    lines = ["| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in where.items()]
    lines += [
        f"| quoted numbers | {len(compared)} |",
        f"| that disagree | {n_wrong} |",
        f"| not measured | {n_open} |",
        f"| minutes in all | {seconds / 60:.1f} |",
        "",
    ]
    for outcome in outcomes:
        lines += [f"## {outcome.name}", ""]
        lines += [f"Not measured: {_cell(outcome.error)[:300]}.", ""] if outcome.error else []
        lines += [f"{outcome.seconds:.0f} s.", "", "| where | text | quoted | measured | |"]
        lines += ["|---|---|---|---|---|"]
        for each in outcome.compared:
            measured = "" if each.measured is None else f"{each.measured:.6g}"
            word = {True: "agrees", False: "**disagrees**", None: "not measured"}[each.agrees]
            text = _cell(each.text)
            lines.append(f"| {each.file} | {text} | {each.quoted} | {measured} | {word} |")
        lines.append("")
    lines += ["## Measured by other commands", "", "| where | text | command |", "|---|---|---|"]
    lines += [f"| {e['file']} | {_cell(e['text'])} | {e['command']} |" for e in elsewhere]
    return _HEAD + "\n".join(lines) + "\n"
