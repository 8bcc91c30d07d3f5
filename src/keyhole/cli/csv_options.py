"""Options of ratings files, shared by several commands."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from keyhole.base.described import described


@dataclass(frozen=True)
class Ratings:
    """Options of a ratings file; None: the default of the world."""

    threshold: float | None = described(None, "For a .csv: the smallest relevant rating.")
    grades: int | None = described(
        None, "For a .csv: cut ratings into this number of grades, from 0."
    )
    missing: str | None = described(
        None, "For a .csv: what to do about people with a missing rating: error or drop."
    )
    ids: str | None = described(
        None,
        "For a .csv: the column of person ids, which is left out.",
        metavar="NAME",
    )

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


Threshold = Annotated[float | None, typer.Option(help="For a .csv: the smallest relevant rating.")]
Grades = Annotated[
    int | None,
    typer.Option(help="For a .csv: cut ratings into this number of grades, from 0."),
]
Missing = Annotated[
    str | None,
    typer.Option(help="For a .csv: what to do about people with a missing rating: error or drop."),
]
Ids = Annotated[
    str | None,
    typer.Option(
        help="For a .csv: the column of person ids, which is left out.",
        metavar="NAME",
    ),
]

OPTIONS = {name: f"--{name}" for name in ("threshold", "grades", "missing", "ids")}
"""The names of these options in error messages."""


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}
