"""Dataclass fields with help texts, from which options of commands are generated."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, asdict, field, fields
from typing import Any, Self

from keyhole.base.errors import check_choice


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


def check_fields(given: Mapping[str, Any], where: str, known: Iterable[str]) -> dict[str, Any]:
    """Return fields if all of them are known, or name the one that is not."""
    for name in given:
        check_choice(name, f"A field of {where}", known)
    return dict(given)


class PlainData:
    """What a dataclass of names and numbers can do: become plain data, and be made of it."""

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def of(cls, given: dict[str, Any], where: str) -> Self:
        """Return the description that a mapping holds, or name the field that it cannot have."""
        return cls(**check_fields(given, where, [each.name for each in fields(cls)]))  # type: ignore[arg-type]
