"""What the commands share: consoles, errors as sentences, progress, options, JSON."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

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
from rich.text import Text

from keyhole.errors import CannotWrite, InvalidInput, KeyholeError, check_choice
from keyhole.files import plain

OUT = Console()
ERR = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print results as JSON on standard output.")]


def _in_options(sentence: str, options: Mapping[str, str]) -> str:
    """Return a sentence that calls parameters what the command line calls them.

    Examples
    --------
    >>> _in_options("`eps` of SmoothDCG must be positive.", {"eps": "--epsilon"})
    '--epsilon must be positive.'
    >>> _in_options("missing='drop' leaves them out.", {"missing": "--missing"})
    '--missing drop leaves them out.'
    """
    for name, option in options.items():
        sentence = re.sub(rf"`{name}`( of [A-Z]\w*)?", option, sentence)
        sentence = re.sub(rf"\b{name}='(\w+)'", rf"{option} \1", sentence)
    return sentence


def _fail(sentence: str) -> NoReturn:
    say(f" {sentence}", "Error:", "bold red", ERR)
    raise typer.Exit(2)


def say(text: str, first: str = "", style: str = "", console: Console = OUT) -> None:
    """Print a sentence as it is, on one line; what comes first may have a style."""
    console.print(Text.assemble((first, style), text), soft_wrap=True)


def escape(text: str) -> str:
    """Return text that rich prints as it is within a table."""
    return text.replace("[", r"\[")


@contextmanager
def sentences(
    interrupted: str = "Interrupted; nothing was written.",
    options: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[None]:
    """Turn what a user can cause into one sentence and an exit code.

    ``options`` says by which option a parameter is given that errors may name.
    """
    try:
        yield
    except CannotWrite as error:
        say(f" {error}", "Error:", "bold red", ERR)
        raise typer.Exit(3) from None
    except KeyholeError as error:
        _fail(_in_options(str(error), options))
    except KeyboardInterrupt:
        say(interrupted, console=ERR)
        raise typer.Exit(130) from None


@contextmanager
def progress_bar(
    title: str, total: int, quiet: bool, unit: str = "rounds"
) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error while rounds are played, or other units of work."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=ERR, disable=quiet) as bar:
        task = bar.add_task(f"{title} (starting)", total=total)

        def advance(n_rounds: int) -> None:
            bar.update(task, advance=n_rounds, description=title)

        yield advance


def parse_options(
    settings: list[str], owners: tuple[str, ...] = ("ranker", "world", "measure")
) -> dict[str, dict[str, Any]]:
    """Return the options of ``--set ranker.n_blocks=200`` by what they belong to."""
    parsed: dict[str, dict[str, Any]] = {owner: {} for owner in owners}
    for setting in settings:
        path, equals, text = setting.partition("=")
        owner, dot, name = path.partition(".")
        if not (equals and dot and name):
            raise InvalidInput(
                f"--set must look like {' or '.join(f'{o}.NAME=VALUE' for o in owners)}, got "
                f"{setting!r}."
            )
        check_choice(owner, f"--set {setting!r}: what to set", parsed)
        try:
            parsed[owner][name] = json.loads(text)
        except json.JSONDecodeError:
            parsed[owner][name] = text
    return parsed


def to_json(record: Any) -> str:
    """Return results as JSON text."""
    return json.dumps(plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
