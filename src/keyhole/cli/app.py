"""The command line: every command has a file of its own, and is registered here."""

import sys
from typing import Annotated

import typer

import keyhole
from keyhole.cli.atlas import AtlasCommand, atlas_command
from keyhole.cli.bound import bound_command
from keyhole.cli.check import check_command
from keyhole.cli.classify import classify_command
from keyhole.cli.evaluate import evaluate_command
from keyhole.cli.learn import learn_command
from keyhole.cli.listing import list_command
from keyhole.cli.play import play_command
from keyhole.cli.rank import rank_command
from keyhole.cli.reproduce import reproduce_command
from keyhole.cli.terminal import say

app = typer.Typer(
    name="keyhole",
    help="Learn to rank a whole list while seeing only its top.",
    epilog="Start with: keyhole play --help, keyhole list, keyhole reproduce thesis-fig3.1",
    no_args_is_help=True,
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
app.command(name="list")(list_command)
app.command(name="check")(check_command)
app.command(name="reproduce")(reproduce_command)
app.command(name="learn")(learn_command)
app.command(name="rank")(rank_command)
app.command(name="evaluate")(evaluate_command)
app.command(name="classify")(classify_command)
app.command(name="atlas", cls=AtlasCommand)(atlas_command)
app.command(name="bound")(bound_command)
