"""Options about a .csv file of people by items, which several commands have."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from keyhole.base.described import described


@dataclass(frozen=True)
class Ratings:
    """How such a file is read; None is as the world has it."""

    threshold: float | None = described(None, "For a .csv: ratings of at least this are relevant.")
    grades: int | None = described(
        None, "For a .csv: cut ratings into so many grades, 0 to this less one."
    )
    missing: str | None = described(
        None, "For a .csv: people with a missing rating are an error, or drop."
    )
    ids: str | None = described(
        None,
        "For a .csv: the column of this name tells people apart and is left out.",
        metavar="NAME",
    )

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


Threshold = Annotated[
    float | None, typer.Option(help="For a .csv: ratings of at least this are relevant.")
]
Grades = Annotated[
    int | None,
    typer.Option(help="For a .csv: cut ratings into so many grades, 0 to this less one."),
]
Missing = Annotated[
    str | None,
    typer.Option(help="For a .csv: people with a missing rating are an error, or drop."),
]
Ids = Annotated[
    str | None,
    typer.Option(
        help="For a .csv: the column of this name tells people apart and is left out.",
        metavar="NAME",
    ),
]

OPTIONS = {name: f"--{name}" for name in ("threshold", "grades", "missing", "ids")}
"""What sentences about such a file call them."""


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}
