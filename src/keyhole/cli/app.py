"""The table of commands, each with its own file.

A file is imported when its command runs, because most of them need Numba, which takes longer to
load than help takes to print.
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
"""Typer's exception for wrong options, which has no public name."""


class CommandRow(NamedTuple):
    """A command: the place of its function or app in this package, and a summary."""

    where: str
    summary: str


COMMANDS = {
    "play": CommandRow("play:play_command", "Play a game and see regret fall."),
    "compare": CommandRow(
        "compare:compare_command",
        "Compare every ranker that fits, on the same users, and say which is best.",
    ),
    "advise": CommandRow(
        "advise:advise_command",
        "Recommend a ranker, with its guarantee and the limits of every ranker.",
    ),
    "list": CommandRow(
        "listing:list_command",
        "List rankers, surrogates, measures, worlds, reveals and papers, with their options.",
    ),
    "check": CommandRow(
        "check:check_command",
        "Check that a ranker, measure, world, reveal or surrogate satisfies its contract.",
    ),
    "reproduce": CommandRow(
        "reproduce:reproduce_command",
        "Reproduce a figure or theorem of a paper and check every claim about it.",
    ),
    "learn": CommandRow("learn:learn_command", "Learn a ranker online from query-document lists."),
    "rank": CommandRow(
        "rank:rank_command", "Rank the documents of every query by a model's scores."
    ),
    "train-policy": CommandRow(
        "train_policy:train_policy_command",
        "Train a policy on a log of actions and rewards, and evaluate it on held-out rows.",
    ),
    "evaluate": CommandRow(
        "evaluate:evaluate_command",
        "Evaluate a policy on a log: promote it, or keep the baseline.",
    ),
    "classify": CommandRow(
        "classify:classify_command",
        "Tell whether a measure can be learnt from the feedback, at which rate, and why.",
    ),
    "atlas": CommandRow(
        "atlas:atlas_app",
        "Classify measures for all k and many list lengths, as an atlas.",
    ),
    "bound": CommandRow(
        "bound:bound_command",
        "Bound the excess risk on new lists of a ranker trained on n lists.",
    ),
    "warm": CommandRow("warm:warm_command", "Compile rankers in advance."),
    "doctor": CommandRow("doctor:doctor_command", "Diagnose the installation, with a self-test."),
    "completion": CommandRow(
        "completion:completion_command",
        "Print a completion script for a shell.",
    ),
    "simulate-users": CommandRow(
        "simulate:simulate_command",
        "Run simulated users against a running service.",
    ),
    "serve": CommandRow("serve:serve_command", "Run the service."),
    "keys": CommandRow("keys:keys_app", "Manage the access keys of the service."),
    "db": CommandRow(
        "db:db_commands", "Check, back up, restore, copy and export the log of the service."
    ),
}


class _Imported(Mapping[str, Any]):
    """Commands by name, imported on access."""

    def __init__(self, rows: Mapping[str, CommandRow]) -> None:
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
    """Import a command, or raise if a library it needs is missing."""
    with needing(f"keyhole {name}", "all"):
        found = named(where)
    if not isinstance(found, typer.Typer):
        own = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        own.command(name=name)(found)
        found = own
    return typer.main.get_command(found)


class Commands(TyperGroup):
    """The group of all commands, with Keyhole's exit codes instead of Typer's."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = _Imported(COMMANDS)

    def list_commands(self, _: Any) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of all commands without importing any."""
        told = copy.copy(self)
        told.commands = {
            name: TyperCommand(name=name, help=row.summary) for name, row in COMMANDS.items()
        }
        super(Commands, told).format_help(ctx, formatter)

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **__: Any
    ) -> NoReturn:
        """Run a command, and exit; Typer's other modes are not supported."""
        given = sys.argv[1:] if args is None else list(args)
        with one_sentence():
            if any("\0" in argument for argument in given):
                raise InvalidInput("Arguments must not contain NUL characters.")
            for before, argument in zip(["keyhole", *given], given, strict=False):
                option, equals, value = argument.partition("=")
                if not argument or (option.startswith("--") and equals and not value):
                    # An empty path would mean the current folder.
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
            raise InvalidInput(f"{what}{end} See: {command} --help") from None
        return ExitCode.DONE


app = typer.Typer(
    name="keyhole",
    help="Learn to rank a whole list from feedback on its top.",
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
    """Learn to rank a whole list from feedback on its top."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # find the user's own modules in the current folder
