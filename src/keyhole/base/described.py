"""Fields that say what they are, for whoever shows them: options of a command, a page."""

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
        Its value where none is given; left out, there must be one. A list or a mapping is copied
        for every object.
    help
        What it is. A field without help is no option of a command.
    metavar
        What stands for its value in help, where its type does not say enough.
    option
        What the command line calls it, where that is not ``--name``; with ``/`` between several.
    type
        What it is on the command line, where that is not its own type.

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
    """Return the default of a field, ``MISSING`` where it has none."""
    return one.default if one.default_factory is MISSING else one.default_factory()
