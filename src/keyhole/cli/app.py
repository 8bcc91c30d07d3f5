"""The command line: every command has a file of its own, and is registered here."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import keyhole
from keyhole.cli.advise import advise_command
from keyhole.cli.atlas import AtlasCommand, atlas_command
from keyhole.cli.bound import bound_command
from keyhole.cli.check import check_command
from keyhole.cli.classify import classify_command
from keyhole.cli.compare import compare_command
from keyhole.cli.db import db_commands
from keyhole.cli.endings import MEANINGS, ExitCode, one_sentence
from keyhole.cli.evaluate import evaluate_command
from keyhole.cli.keys import keys_app
from keyhole.cli.learn import learn_command
from keyhole.cli.listing import list_command
from keyhole.cli.play import play_command
from keyhole.cli.rank import rank_command
from keyhole.cli.reproduce import reproduce_command
from keyhole.cli.serve import serve_command
from keyhole.cli.simulate import simulate_command
from keyhole.cli.terminal import say
from keyhole.cli.train_policy import train_policy_command
from keyhole.errors import InvalidInput

_UsageError: Any = typer.BadParameter.__base__
"""What Typer raises where the options are wrong; it has no public name."""


class Commands(TyperGroup):
    """All commands, which end with the exit codes of Keyhole and not with those of Typer."""

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **__: Any
    ) -> NoReturn:
        """Run a command, and end the process: Typer's other ways to run one are not used."""
        given = sys.argv[1:] if args is None else list(args)
        with one_sentence():
            if any("\0" in argument for argument in given):
                raise InvalidInput("Arguments must not hold the character NUL.")
            for before, argument in zip(["keyhole", *given], given, strict=False):
                option, equals, value = argument.partition("=")
                if not argument or (option.startswith("--") and equals and not value):
                    # A path without characters would be the current folder.
                    where = before if not argument else option
                    raise InvalidInput(f"Arguments must not be empty, got nothing after {where}.")
            code = self._run(list(given) or ["--help"], prog_name or "keyhole")
        sys.exit(code if given else ExitCode.BAD_INPUT)

    def _run(self, args: list[str], prog_name: str) -> int:
        try:
            with self.make_context(prog_name, args) as context:
                self.invoke(context)
        except typer.Exit as ended:
            return ended.exit_code
        except _UsageError as error:
            command = prog_name if error.ctx is None else error.ctx.command_path
            what = error.format_message().rstrip(".")
            raise InvalidInput(f"{what}. What there is: {command} --help") from None
        return ExitCode.DONE


app = typer.Typer(
    name="keyhole",
    help="Learn to rank a whole list while seeing only its top.",
    epilog="Start with: keyhole play --help, keyhole list, keyhole reproduce thesis-fig3.1\n\n"
    f"Exit codes: {', '.join(f'{int(code)} {text}' for code, text in MEANINGS.items())}.",
    cls=Commands,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        say(f"keyhole {keyhole.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn to rank a whole list while seeing only its top."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module of the user's own is looked for where they are


app.command(name="play")(play_command)
app.command(name="compare")(compare_command)
app.command(name="advise")(advise_command)
app.command(name="list")(list_command)
app.command(name="check")(check_command)
app.command(name="reproduce")(reproduce_command)
app.command(name="learn")(learn_command)
app.command(name="rank")(rank_command)
app.command(name="train-policy")(train_policy_command)
app.command(name="evaluate")(evaluate_command)
app.command(name="classify")(classify_command)
app.command(name="atlas", cls=AtlasCommand)(atlas_command)
app.command(name="bound")(bound_command)
app.command(name="simulate-users")(simulate_command)
app.command(name="serve")(serve_command)
app.add_typer(keys_app)
app.add_typer(db_commands)
