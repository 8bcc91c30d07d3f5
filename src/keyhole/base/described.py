"""Dataclass fields with help texts, from which options of commands are generated."""

from dataclasses import MISSING, Field, field
from typing import Any


def described(
    default: Any = MISSING,
    help: str = "",
    *,
    metavar: str | None = None,
    option: str | None = None,
    type: Any = None,
) -> Any:
    """Return a field of a dataclass with a default and a line of help.

    Parameters
    ----------
    default
        The default value; without one, the field is required. A list or a mapping is copied for
        every object.
    help
        The help text. A field without help is no option of a command.
    metavar
        The placeholder of its value in help, if not its type.
    option
        The option, if not ``--name``; several are separated by ``/``.
    type
        The type on the command line, if it differs.

    Examples
    --------
    >>> from dataclasses import dataclass, fields
    >>> @dataclass
    ... class Game:
    ...     rounds: int = described(10_000, "Rounds to play.")
    >>> Game().rounds, fields(Game)[0].metadata["help"]
    (10000, 'Rounds to play.')
    """
    about = {"help": help, "metavar": metavar, "option": option, "type": type}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=about)
    return field(default=default, metadata=about)


def default_of(one: "Field[Any]") -> Any:
    """Return the default of a field, or ``MISSING``."""
    return one.default if one.default_factory is MISSING else one.default_factory()
