"""Follow a page of the documentation word for word: its files, its commands and its Python.

    python bench/site/pages.py docs/tutorials/*.md

Every fenced block of a page is a step, in the order of the page:

- a block after ``Save this as `NAME`:`` is written to that file;
- ``python`` with ``>>>`` is a doctest; all of a page share their names;
- ``sh`` is run by a shell, and must succeed;
- ``text`` or ``json`` is what the commands before it have printed; ``...`` stands for anything.

A block in another language is a mistake: nothing on a page is there for show. Nothing but the
standard library is imported here, so that the same file follows pages in any environment.
"""

import contextlib
import doctest
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(
    r"(?:^Save this as `(?P<file>[\w.-]+)`:\n+)?"
    r"^```(?P<language>[\w{}-]+)[^\n]*\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_DIRECTIVE = "{"
"""Blocks whose language begins so, such as toctrees, are no steps but part of the page."""
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

Shell = Callable[[str], str]
"""Runs the lines of a block and returns what they print, or raises :class:`StepFailed`."""


class StepFailed(Exception):
    """A block of a page does not do what the page says."""


@dataclass(frozen=True)
class Step:
    """A block of a page: what it is, where it begins, and the file that it is to be saved as."""

    language: str
    text: str
    line: int
    file: str = ""

    @property
    def kind(self) -> str:
        """What is done with it: ``file``, ``python``, ``sh`` or ``output``."""
        if self.file:
            return "file"
        if self.language == "python" and ">>>" in self.text:
            return "python"
        kinds = {"sh": "sh", "text": "output", "json": "output"}
        if self.language not in kinds:
            raise StepFailed(f"line {self.line}: a block in {self.language!r} is no step")
        return kinds[self.language]


def blocks_of(page: str) -> Iterator["str | Step"]:
    """Give the text of a page and its steps, in their order."""
    end = 0
    for found in _BLOCK.finditer(page):
        if not found["language"].startswith(_DIRECTIVE):
            yield page[end : found.start()]
            line = page.count("\n", 0, found.start("language")) + 1
            yield Step(found["language"], found["text"], line, found["file"] or "")
            end = found.end()
    yield page[end:]


def steps_of(page: str) -> list[Step]:
    """Return the steps of a page."""
    return [block for block in blocks_of(page) if isinstance(block, Step)]


def follow(page: str, shell: Shell) -> Iterator[tuple[Step, str]]:
    """Do what a page says in the present folder; give each step and what came of it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    told = ""
    for step in steps_of(page):
        if step.kind == "file":
            Path(step.file).write_text(step.text, encoding="utf-8")
            came = ""
        elif step.kind == "python":
            came = _python(step, names)
        elif step.kind == "sh":
            came = told = shell(step.text)
        else:
            came = ""
            _compare(step, told)
        yield step, came


def _python(step: Step, names: dict[str, Any]) -> str:
    """Run the examples of a block; return what they are found to print."""
    test = doctest.DocTestParser().get_doctest(step.text, names, "page", None, step.line)
    runner, report = doctest.DocTestRunner(optionflags=_FLAGS), io.StringIO()
    failed = runner.run(test, out=report.write, clear_globs=False).failed
    names.update(test.globs)
    if failed:
        raise StepFailed(f"line {step.line}: {report.getvalue()}")
    return "".join(example.want for example in test.examples)


def _compare(step: Step, told: str) -> None:
    if step.language == "json":
        if keys_of(json.loads(told)) != keys_of(json.loads(step.text)):
            raise StepFailed(f"line {step.line}: other names than {told}")
    elif not doctest.OutputChecker().check_output(step.text, told, _FLAGS):
        raise StepFailed(f"line {step.line}: it printed\n{told}\nand the page says\n{step.text}")


def keys_of(value: Any) -> Any:
    """Return the names in a reply, at every depth: what is in them differs from run to run."""
    if isinstance(value, dict):
        return {name: keys_of(inner) for name, inner in value.items()}
    return [keys_of(inner) for inner in value[:1]] if isinstance(value, list) else None


def real_shell(text: str) -> str:
    """Run a block by bash, in which ``keyhole`` must be a command."""
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise StepFailed(f"exit code {ran.returncode} of\n{text}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def main(pages: list[str]) -> int:
    """Follow pages, each in a folder of its own; return 1 if one of them does not work."""
    n_failed = 0
    for name in pages:
        text = Path(name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                done = list(follow(text, real_shell))
                print(f"PASS  {name}: {len(done)} blocks")
            except StepFailed as failure:
                n_failed += 1
                print(f"FAIL  {name}: {failure}")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
