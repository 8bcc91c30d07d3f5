"""Commands run in the process of the tests."""

from typer.testing import CliRunner

from keyhole.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "100"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def said(result):
    """Return all that a command has said, as one line."""
    return " ".join((result.stdout + result.stderr).split())
