"""Common code of commands: consoles, tables, progress bars, ``--set``, JSON."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from keyhole.base.errors import InvalidInput, check_choice, shown
from keyhole.base.files import check_folder, plain
from keyhole.cli.standard_streams import can_hold

OUT = Console()
ERR = Console(stderr=True)
_RIGHT = ">"
_WIDEST = 10_000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

Json = Annotated[bool, typer.Option("--json", help="Print results as JSON on standard output.")]


def say(text: str, first: str = "", style: str = "", console: Console = OUT) -> None:
    """Print a sentence unwrapped and without markup; ``first`` may have a style."""
    console.print(Text.assemble((first, style), text), soft_wrap=True)


def escape(text: str) -> str:
    """Escape rich markup in a text."""
    return text.replace("[", r"\[")


def short_name(name: str, longest: int = 40) -> str:
    """Shorten a file name in the middle if it is too long for a title."""
    if len(name) <= longest:
        return name
    return f"{name[: longest // 2]}…{name[1 - longest // 2 :]}"


def show_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, boxed: bool = True
) -> None:
    """Print a table, or one cell per line if the terminal is too narrow.

    Columns whose heading ends in ``>`` are right-aligned. The title and cells may have rich
    markup, so user input must be escaped.
    """
    look: dict[str, Any] = {} if boxed else {"box": None, "padding": (0, 0, 0, 1)}
    table = Table(title=title, title_justify="left", **look)
    for heading in headings:
        table.add_column(
            heading.removesuffix(_RIGHT),
            justify="right" if heading.endswith(_RIGHT) else "left",
            vertical="top" if boxed else "bottom",
        )
    for row in rows:
        table.add_row(*row)
    unbounded = OUT.options.update(max_width=_WIDEST)
    if OUT.measure(table, options=unbounded).maximum <= OUT.width:
        OUT.print(table)
        return
    OUT.print(title, soft_wrap=True, highlight=False)
    for first, *rest in rows:
        OUT.print(first, soft_wrap=True, highlight=False)
        for heading, cell in zip(headings[1:], rest, strict=True):
            name = " ".join(heading.removesuffix(_RIGHT).split())
            OUT.print(f"  {name}: {cell}", soft_wrap=True, highlight=False)


def shown_number(value: float | None, error: float | None = None) -> str:
    """Return a number of a table, with its standard error if that is known."""
    if value is None:
        return "not known"
    return f"{value:.4f}" if error is None else f"{value:.4f}\u00a0±\u00a0{error:.4f}"


def lower_is_better(is_loss: bool) -> str:
    """Return the suffix of a loss's name."""
    return "; lower is better" if is_loss else ""


@contextmanager
def output_folder(path: Path | None) -> Iterator[Path | None]:
    """Provide a writable folder, or raise before the work starts.

    A new folder is removed if the work fails and leaves it empty.
    """
    if path is None:
        yield None
        return
    made = [each for each in (path, *path.parents) if not os.path.exists(each)]
    folder = check_folder(path)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # not empty
            for each in made:
                each.rmdir()
        raise


@contextmanager
def progress_bar(
    title: str, total: int, quiet: bool, unit: str = "rounds"
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR, disable=quiet or not ERR.is_terminal) as bar:
        task = bar.add_task(f"{title} (starting)", total=total)

        def advance(n_rounds: int) -> None:
            bar.update(task, advance=n_rounds, description=title)

        yield advance


def parse_options(
    settings: list[str], owners: tuple[str, ...] = ("ranker", "world", "measure")
) -> dict[str, dict[str, Any]]:
    """Parse options such as ``--set ranker.n_blocks=200`` by owner."""
    parsed: dict[str, dict[str, Any]] = {owner: {} for owner in owners}
    for setting in settings:
        path, equals, text = setting.partition("=")
        owner, dot, name = path.partition(".")
        if not (equals and dot and name):
            raise InvalidInput(
                f"--set must look like {' or '.join(f'{o}.NAME=VALUE' for o in owners)}, got "
                f"{shown(setting)}."
            )
        check_choice(owner, f"--set {shown(setting)}: what to set", parsed)
        if name in parsed[owner]:
            raise InvalidInput(f"--set must give {owner}.{name[:100]} once, got it twice.")
        parsed[owner][name] = _value(text, setting)
    return parsed


def _value(text: str, setting: str) -> Any:
    """Parse JSON, or return the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return float(text) if _NUMBER.fullmatch(text) else text  # .5 is no JSON
    except (ValueError, RecursionError) as error:  # thousands of digits, thousands of brackets
        raise InvalidInput(
            f"--set must give a value that can be read, got {shown(setting)}: {error}."
        ) from None


def to_json(record: Any) -> str:
    """Return results as JSON text in valid UTF-8."""
    text = _json_text(record)
    # File names may have undecodable bytes, which JSON can escape.
    return text if can_hold(text, "utf-8") else _json_text(record, only_ascii=True)


def print_json(record: Any) -> None:
    """Print results as JSON in the encoding of standard output."""
    text = to_json(record)
    sys.stdout.write(text if can_hold(text) else _json_text(record, only_ascii=True))


def _json_text(record: Any, *, only_ascii: bool = False) -> str:
    return json.dumps(plain(record), indent=2, ensure_ascii=only_ascii, allow_nan=False) + "\n"
