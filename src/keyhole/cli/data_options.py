"""Options of ratings files and of files of query-document lists, shared by several commands."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keyhole.base.described import described
from keyhole.base.errors import check_integer, check_number


@dataclass(frozen=True)
class RatingsOptions:
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


@dataclass(frozen=True)
class Reading:
    """Options that say how files of query-document lists are read and shown."""

    groups: tuple[Path, ...] | None = described(
        None, "Group file of each FILE that has no qid: (list lengths)."
    )
    raw: bool = described(
        False, "Use features unscaled; default: min-max scaling within each query."
    )
    keep_empty: bool = described(False, "Keep queries without a relevant document.")
    shuffle: bool = described(
        False,
        "Shuffle the documents of each list. Ties are broken by file order, which may be sorted by "
        "label.",
    )
    permute_at: float | None = described(
        None,
        "Permute the labels within each list after this share of the rounds, such as 0.5.",
    )

    @property
    def how(self) -> dict[str, Any]:
        """The reading options that differ from their defaults."""
        groups = [str(path) for path in self.groups or ()]
        how = {"groups": groups, "raw": self.raw, "keep_empty": self.keep_empty}
        return {name: value for name, value in how.items() if value}

    def world_options(self, rounds: int, seed: int) -> dict[str, Any]:
        """Return the options of the world that differ from their defaults."""
        found = self.how
        if self.shuffle:
            found["document_seed"] = seed
        if self.permute_at is not None:
            check_integer(rounds, "rounds", at_least=1)
            share = check_number(self.permute_at, "--permute-at", above=0.0, at_most=1.0)
            found["permute_at"] = round(share * rounds)
        return found
