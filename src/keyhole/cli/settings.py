"""Reads the options of a command from a TOML settings file."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.base.errors import InvalidInput, check_choice, shown
from keyhole.base.files import shortened
from keyhole.data.packed import decoded, read_unpacked

_UsageError: Any = typer.BadParameter.__base__
"""Typer's exception for wrong values, which has no public name."""


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, or raise."""
    text = decoded(path, read_unpacked(path, "TOML"), "TOML")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"{shortened(path)} must be a TOML file of settings: {error}.") from None


def _names(command: Any) -> dict[str, Any]:
    """Return the parameters of a command by name: the option without dashes, or FILEs."""
    names = {}
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        names[longest.removeprefix("--")] = parameter
    del names["settings"]
    return names


def _text(value: Any, where: str) -> str:
    """Return a value as command-line text, which Typer converts and checks."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise InvalidInput(f"{where} must be a text or a number, got {shown(value)}.")


def _assignments(value: Any, where: str) -> list[str]:
    """Return the values of ``--set`` from a list of OWNER.NAME=VALUE or from tables per owner."""
    if not isinstance(value, Mapping):
        return [_text(each, where) for each in (value if isinstance(value, list) else [value])]
    for owner, options in value.items():
        if not isinstance(options, Mapping):
            raise InvalidInput(
                f"{where} must have a table for each owner, such as [set.world], got {owner} = "
                f"{shown(options)}."
            )
    return [
        f"{owner}.{name}={json.dumps(option, default=str)}"
        for owner, options in value.items()
        for name, option in options.items()
    ]


def _as_given(parameter: Any, value: Any, where: str) -> Any:
    """Return a value as command-line input of a parameter."""
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise InvalidInput(f"{where} must be true or false, got {shown(value)}.")
        return value
    if "--set" in parameter.opts:
        return _assignments(value, where)
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        return [_text(each, where) for each in (value if isinstance(value, list) else [value])]
    return _text(value, where)


def take_settings(context: typer.Context, path: Path | None) -> Path | None:
    """Use the settings of a file as defaults; options on the command line take precedence."""
    if path is None:
        return None
    parameters, defaults = _names(context.command), {}
    for name, value in _read(path).items():
        parameter = parameters[check_choice(name, f"A setting of {shortened(path)}", parameters)]
        where = f"{name} of {shortened(path)}"
        given = _as_given(parameter, value, where)
        try:
            parameter.process_value(context, given)
        except _UsageError as error:
            why = error.message.rstrip(".")
            raise InvalidInput(f"{where} cannot be {shown(value)}: {why}.") from None
        defaults[parameter.name] = given
    context.default_map = defaults
    return path


SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        is_eager=True,
        callback=take_settings,
        help="A TOML file with these options by name; the command line takes precedence.",
    ),
]
