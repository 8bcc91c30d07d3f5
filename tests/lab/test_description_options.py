"""Options of a command out of the fields of a description."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from keyhole.base.described import described
from keyhole.base.errors import check_integer
from keyhole.cli.description_options import but, command

pytestmark = pytest.mark.interpreted


@dataclass(frozen=True)
class Game:
    world: str = described(help="Where users come from.")
    rounds: int = described(10, "Rounds to play.")
    max_grade: float = described(1.0, "The top grade.", option="--max-grade/--grade")
    against: tuple[str, ...] = described((), "Also these.", metavar="NAME")
    files: tuple[Path, ...] | None = described(None, "Files to read.")
    same_users: bool = described(False, "All meet the same.")
    top: str | None = described(None, "How many are seen.", type=int | None)
    options: dict[str, Any] = described({})
    seed: int = described(3, "Everything random follows from it.")

    def __post_init__(self):
        check_integer(self.rounds, "`rounds`", at_least=1)


@dataclass
class Drawn:
    out: str | None = described(None, "A folder.")


GOT: list[Any] = []


@command(called={"k": "--top"})
def play(
    *,
    word: Annotated[str, typer.Argument(help="A word.", metavar="WORD")],
    game: Annotated[Game, but(rounds=described(20, "Lists to show."), seed=None)],
    same_users: Annotated[bool, "Said otherwise."] = True,
    drawn: Drawn,
    quietly: Annotated[bool | None, "Say nothing."] = None,
    chosen: Annotated[str, typer.Option("--by", help="Who chose.")] = "me",
    dressed: Annotated[str, "What it is called.", "--as", "--like", "WORDS"] = "x",
) -> None:
    """Play a game."""
    GOT.append((word, game, same_users, drawn, quietly, chosen, dressed))
    for name in ("k", "chosen", "word", "dressed"):
        check_integer(1 if word != name else "x", f"`{name}` of Game", at_least=1)


@command("Stopped.")
def halt() -> None:
    raise SystemExit(1) if GOT else KeyboardInterrupt


def run(*words, code=0, of=play):
    app = typer.Typer()
    app.command()(of)
    found = CliRunner().invoke(app, words, env={"COLUMNS": "100"})
    assert found.exit_code == code, found.output
    return found


def test_defaults_are_those_of_the_fields_but_for_what_is_changed():
    GOT.clear()
    run("hi", "--world", "flips")
    assert [("hi", Game("flips", rounds=20), True, Drawn(), None, "me", "x")] == GOT


def test_every_option_reaches_its_field():
    GOT.clear()
    run(
        "hi", "--world", "w", "--rounds", "7", "--grade", "4", "--against", "a", "--against", "b",
        "--files", "x", "--top", "5", "--out", "o", "--same-users", "--quietly", "--by", "you",
        "--like", "y",
    )  # fmt: skip
    top: Any = 5
    game = Game("w", 7, 4.0, ("a", "b"), (Path("x"),), False, top)
    assert [("hi", game, True, Drawn("o"), True, "you", "y")] == GOT


def test_help_has_the_words_of_the_fields_and_flags_have_no_opposite():
    shown = " ".join(run("--help").stdout.split())
    for words in (
        "Lists to show.",
        "NAME Also these.",
        "--as,--like WORDS What it is",
        "default: 20",
        "default: 1.0",
        "[required]",
    ):
        assert words in shown
    for words in ("Rounds to play.", "--seed", "--options", "--no-", "All meet the same."):
        assert words not in shown


def test_errors_call_fields_and_parameters_by_their_options():
    for words, sentence in (
        (("hi", "--rounds", "0"), "--rounds must be an integer of at least 1, got 0."),
        (("k",), "--top must be an integer of at least 1, got 'x'."),
        (("chosen",), "--by must be an integer of at least 1, got 'x'."),
        (("dressed",), "--as must be an integer of at least 1, got 'x'."),
        (("word",), "WORD must be an integer of at least 1, got 'x'."),
    ):
        assert run(*words, "--world", "w", code=2).stderr == f"Error: {sentence}\n"
    assert "--world" in run("hi", code=2).stderr


def test_a_command_ends_as_it_says():
    GOT.clear()
    assert run(of=halt, code=130).stderr == "Stopped.\n"
    GOT.append(0)
    run(of=halt, code=1)
