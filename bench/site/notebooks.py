"""The tutorials as notebooks, for people who live in Jupyter.

    python -m bench.site.notebooks          # writes docs/notebooks

A notebook has the text of its tutorial, its examples as cells without prompts, its commands as
cells for the shell, and the outputs that stand on the page, which the tests hold it to. The same
pages make the same bytes.
"""

import ast
import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.site.pages import Step, blocks_of
from keyhole.base.files import write_atomically

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = DOCS / "notebooks"
_SIBLING = re.compile(r"\]\(([\w-]+)\.md\)")


def notebook_of(page: str) -> str:
    """Return a tutorial as a notebook."""
    cells: list[dict[str, Any]] = []
    for block in blocks_of(page):
        if isinstance(block, str):
            text = _SIBLING.sub(r"](\1.ipynb)", block).strip()
            cells += [_cell("markdown", text)] if text else []
        elif block.kind == "output":
            cells[-1]["outputs"] = [_printed(block.text)]
        else:
            cells += _cells_of(block)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _cells_of(step: Step) -> Iterator[dict[str, Any]]:
    """Give the cells of a block: of an example, one up to each output that the page shows."""
    if step.kind == "file":
        yield _cell("code", f"%%writefile {step.file}\n{step.text}".strip())
    elif step.kind == "sh":
        yield _cell("code", f"%%bash\n{step.text}".strip())
    else:
        source = ""
        for example in doctest.DocTestParser().get_examples(step.text):
            source += example.source
            if example.want:
                cell = _cell("code", source.strip())
                cell["outputs"] = [_output(example)]
                yield cell
                source = ""
        if source:
            yield _cell("code", source.strip())


def _cell(kind: str, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell


def _output(example: doctest.Example) -> dict[str, Any]:
    """Return what an example gives: a value if it ends with an expression, or what it prints."""
    last = ast.parse(example.source).body[-1]
    prints = isinstance(last, ast.Expr) and "print(" in ast.unparse(last)
    if not isinstance(last, ast.Expr) or prints:
        return _printed(example.want)
    return {
        "output_type": "execute_result",
        "execution_count": None,
        "metadata": {},
        "data": {"text/plain": example.want.rstrip("\n").splitlines(keepends=True)},
    }


def _printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def main() -> int:
    """Write a notebook for each tutorial."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        text = notebook_of(page.read_text(encoding="utf-8"))
        write_atomically(NOTEBOOKS / f"{page.stem}.ipynb", text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
