"""Pages with commands and files between their examples are followed word for word."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.site.notebooks import NOTEBOOKS, notebook_of
from bench.site.pages import StepFailed, follow, steps_of
from keyhole.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "service.md": "needs a server: tests/client/test_docs_service.py",
    "own-ranker.md": "is followed without a compiler, below",
}
FOLLOWED = [
    page
    for folder in ("start", "tutorials", "concepts")
    for page in sorted((DOCS / folder).glob("*.md"))
    if page.name not in ELSEWHERE
]


def in_this_process(text):
    """Run the lines of a block, each of which is a command of Keyhole, without a shell."""
    told = ""
    for line in text.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line)
        assert program == "keyhole", (
            f"{line} is a command of the machine, which a page cannot rely on"
        )
        ran = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
        if ran.exit_code:
            raise StepFailed(f"exit code {ran.exit_code} of {line}: {ran.output}{ran.stderr}")
        told += ran.stdout
    return told


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    assert len(list(follow(text, in_this_process))) == len(steps_of(text))


def test_a_ranker_of_your_own_works_as_the_page_says(tmp_path):
    """Interpreted, to the same bits: to compile a ranker that nobody has met takes longer."""
    command = tmp_path / "keyhole"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W ignore -m keyhole "$@"\n')
    command.chmod(0o755)
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            ROOT / "bench/site/pages.py",
            DOCS / "tutorials/own-ranker.md",
        ],
        env={
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "NUMBA_DISABLE_JIT": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


PAGE = """
Save this as `numbers.txt`:

```text
1 2
```

```python
>>> from pathlib import Path
>>> total = sum(int(word) for word in Path("numbers.txt").read_text().split())
>>> total
3

```

```{toctree}
other
```

```sh
keyhole --version
```

```text
...
```
"""


def test_every_block_is_a_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = list(follow(PAGE, lambda text: text))
    assert [step.kind for step, _ in done] == ["file", "python", "sh", "output"]
    assert done[2][1] == "keyhole --version\n"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("\n3\n", "\n4\n", "Expected"),
        ("```text\n...", "```text\nsomething else", "the page says"),
        ("```sh", "```ruby", "'ruby' is no step"),
        ("```text\n...", '```json\n{"a": 1}', "other names"),
    ],
)
def test_what_is_not_as_the_page_says_is_found(right, wrong, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert right in PAGE
    with pytest.raises(StepFailed, match=said):
        list(follow(PAGE.replace(right, wrong), lambda _text: '{"b": 1}'))


def test_notebooks_are_what_the_tutorials_make():
    """`python -m bench.site.notebooks` writes them."""
    made = {page.stem: notebook_of(page.read_text()) for page in (DOCS / "tutorials").glob("*.md")}
    kept = {path.stem: path.read_text() for path in NOTEBOOKS.glob("*.ipynb")}
    assert kept == made


def test_a_notebook_has_files_commands_examples_and_their_outputs():
    cells = json.loads(notebook_of("# Title\n" + PAGE + "\nsee [this](other.md)\n"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code[0] == "%%writefile numbers.txt\n1 2"
    assert code[1].endswith("\ntotal")
    assert code[2] == "%%bash\nkeyhole --version"
    value, printed = (cell["outputs"][0] for cell in cells if cell.get("outputs"))
    assert (value["output_type"], value["data"]["text/plain"]) == ("execute_result", ["3"])
    assert (printed["output_type"], printed["text"]) == ("stream", ["...\n"])
    assert "[this](other.ipynb)" in cells[-1]["source"][-1]
