"""Commands run in the process of the tests."""

from unittest.mock import patch

from typer.testing import CliRunner

from keyhole.cli import terminal
from keyhole.cli.app import app


def run(*arguments, code=0):
    """Run a command on a terminal of 100 columns: consoles ask for them when they are made."""
    with patch.object(terminal.OUT, "_width", 100), patch.object(terminal.ERR, "_width", 100):
        result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def said(result):
    """Return all that a command has said, as one line."""
    return " ".join((result.stdout + result.stderr).split())
