"""Options about files of data, which several commands have: people by items, and lists."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from keyhole.base.described import described
from keyhole.base.errors import check_integer, check_number


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


@dataclass(frozen=True)
class Reading:
    """How files of query-document lists are read and shown."""

    groups: tuple[Path, ...] | None = described(
        None, "Group file of each FILE that has no qid: (list lengths)."
    )
    raw: bool = described(False, "Features as they are; default: min-max within each query.")
    keep_empty: bool = described(False, "Keep queries without a relevant document.")
    shuffle: bool = described(
        False,
        "Shuffle the documents of each list: ties go to the first, and files may be sorted by "
        "label.",
    )
    permute_at: float | None = described(
        None,
        "After this share of the rounds, such as 0.5, the documents of each list have each other's "
        "labels.",
    )

    @property
    def how(self) -> dict[str, Any]:
        """How files are read, where that is not as always."""
        groups = [str(path) for path in self.groups or ()]
        how = {"groups": groups, "raw": self.raw, "keep_empty": self.keep_empty}
        return {name: value for name, value in how.items() if value}

    def world_options(self, rounds: int, seed: int) -> dict[str, Any]:
        """Return the options of the world of such files in some rounds, where not as always."""
        found = self.how
        if self.shuffle:
            found["document_seed"] = seed
        if self.permute_at is not None:
            check_integer(rounds, "rounds", at_least=1)
            share = check_number(self.permute_at, "--permute-at", above=0.0, at_most=1.0)
            found["permute_at"] = round(share * rounds)
        return found
