"""The command line: every command has a file of its own, and a row here.

Its file is imported when the command is run: most of them need the compiler, which takes longer to
load than help does to read.
"""

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import keyhole
from keyhole.base.errors import InvalidInput
from keyhole.base.lazy import named
from keyhole.cli.exit_codes import MEANINGS, ExitCode, needing, one_sentence
from keyhole.cli.terminal import say

_UsageError: Any = typer.BadParameter.__base__
"""What Typer raises where the options are wrong; it has no public name."""


class Row(NamedTuple):
    """Where a command is in this package, a function or an app, and what it does in a sentence."""

    where: str
    summary: str


COMMANDS = {
    "play": Row("play:play_command", "Play a game and see regret fall."),
    "compare": Row(
        "compare:compare_command",
        "Compare every ranker that fits, on the same users, and say which is best.",
    ),
    "advise": Row(
        "advise:advise_command",
        "Say which ranker to take, what it guarantees, and what no ranker can.",
    ),
    "list": Row(
        "listing:list_command",
        "List rankers, surrogates, measures, worlds, reveals and papers, with their options.",
    ),
    "check": Row(
        "check:check_command",
        "Check that a ranker, measure, world, reveal or surrogate keeps its contract.",
    ),
    "reproduce": Row(
        "reproduce:reproduce_command",
        "Reproduce a figure or theorem of a paper and judge every claim about it.",
    ),
    "learn": Row("learn:learn_command", "Learn a ranker online from query-document lists."),
    "rank": Row("rank:rank_command", "Rank the documents of every query by a model's scores."),
    "train-policy": Row(
        "train_policy:train_policy_command",
        "Train a policy on a log of what was shown, and judge it on rows that were held out.",
    ),
    "evaluate": Row(
        "evaluate:evaluate_command",
        "Say from a log whether a policy beats a baseline: promote or keep.",
    ),
    "classify": Row(
        "classify:classify_command",
        "Say whether feedback can teach a measure at all, at which rate, and why.",
    ),
    "atlas": Row(
        "atlas:atlas_app",
        "Map which measures can be learnt from the top k: all k, many lengths of lists.",
    ),
    "bound": Row(
        "bound:bound_command",
        "Bound how much worse than the best weights a ranker learnt from n lists is on new ones.",
    ),
    "warm": Row("warm:warm_command", "Compile ahead, so that nothing waits for it later."),
    "doctor": Row(
        "doctor:doctor_command", "Say what is installed here, and whether it learns what it should."
    ),
    "completion": Row(
        "completion:completion_command",
        "Print what lets a shell complete commands, options and names.",
    ),
    "simulate-users": Row(
        "simulate:simulate_command",
        "Let a crowd of simulated users play the client of a running service.",
    ),
    "serve": Row("serve:serve_command", "Run the service: rank, later feedback, nothing lost."),
    "keys": Row("keys:keys_app", "Access keys of the service."),
    "db": Row("db:db_commands", "Look after the log of a service: check, backup, restore, export."),
}


class _Imported(Mapping[str, Any]):
    """Commands by name, each of which is imported when it is asked for."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self._found: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = _command(name, f"keyhole.cli.{self._rows[name].where}")
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _command(name: str, where: str) -> Any:
    """Return a command, or raise where a library that it is made of is missing."""
    with needing(f"keyhole {name}", "all"):
        found = named(where)
    if not isinstance(found, typer.Typer):
        own = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        own.command(name=name)(found)
        found = own
    return typer.main.get_command(found)


class Commands(TyperGroup):
    """All commands, which end with the exit codes of Keyhole and not with those of Typer."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = _Imported(COMMANDS)

    def list_commands(self, _: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Tell of all commands without importing any."""
        told = copy.copy(self)
        told.commands = {
            name: TyperCommand(name=name, help=row.summary) for name, row in COMMANDS.items()
        }
        super(Commands, told).format_help(ctx, formatter)

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
            what = error.format_message()
            end = "" if what.endswith((".", "?", "!")) else "."
            raise InvalidInput(f"{what}{end} What there is: {command} --help") from None
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
