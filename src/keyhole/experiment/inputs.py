"""Data sets that a description may name, and that may be on this machine."""

import os
from pathlib import Path

from keyhole.base.errors import KeyholeError

DATA_PREFIX = "data:"


class DataMissing(KeyholeError):
    """A data set that is not on this machine."""


def data_folder() -> Path:
    """Return where data sets lie: KEYHOLE_DATA, or shared/data beside the project."""
    return Path(os.environ.get("KEYHOLE_DATA") or Path("..") / "shared" / "data")
