"""What descriptions of all kinds name: fields, and data sets that may be on this machine."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

from keyhole.base.errors import KeyholeError, check_choice

DATA_PREFIX = "data:"


class DataMissing(KeyholeError):
    """A data set that is not on this machine."""


def check_fields(given: Mapping[str, Any], where: str, known: Iterable[str]) -> dict[str, Any]:
    """Return fields if all of them are known, or name the one that is not."""
    for name in given:
        check_choice(name, f"A field of {where}", known)
    return dict(given)


def data_folder() -> Path:
    """Return where data sets lie: KEYHOLE_DATA, or shared/data beside the project."""
    return Path(os.environ.get("KEYHOLE_DATA") or Path("..") / "shared" / "data")


class PlainData:
    """What a dataclass of names and numbers can do: become plain data, and be made of it."""

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain data."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def of(cls, given: dict[str, Any], where: str) -> Self:
        """Return the description that a mapping holds, or name the field that it cannot have."""
        return cls(**check_fields(given, where, [each.name for each in fields(cls)]))  # type: ignore[arg-type]
