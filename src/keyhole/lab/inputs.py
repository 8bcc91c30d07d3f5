"""What descriptions of all kinds name: fields, and data sets that may be on this machine."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keyhole.errors import KeyholeError, check_choice

DATA_PREFIX = "data:"


class DataMissing(KeyholeError):
    """A data set that is not on this machine."""


def check_fields(fields: dict[str, Any], where: str, known: Iterable[str]) -> dict[str, Any]:
    """Return fields if all of them are known, or name the one that is not."""
    for name in fields:
        check_choice(name, f"A field of {where}", known)
    return fields


def data_folder() -> Path:
    """Return where data sets lie: KEYHOLE_DATA, or shared/data beside the project."""
    return Path(os.environ.get("KEYHOLE_DATA") or Path("..") / "shared" / "data")
