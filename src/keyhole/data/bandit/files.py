"""Logs of bandit feedback from CSV and Parquet files, and back.

Columns: ``action``, ``propensity``, ``reward``, if there are several places ``position`` (from 0),
and a column ``x_NAME`` per feature. Actions are numbers from 0, or names.
"""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from keyhole.data.bandit.log import BanditLog, UnusableRow
from keyhole.errors import FloatArray, IntArray, InvalidInput, KeyholeError

FEATURE = "x_"
REQUIRED = ("action", "propensity", "reward")
KNOWN = (*REQUIRED, "position")


class ParquetMissing(KeyholeError):
    """The libraries that read Parquet are not installed."""


@dataclass(frozen=True)
class Sheet:
    """A table of text as it was found in a file, and where each row was."""

    path: Path
    columns: dict[str, list[str]]
    lines: Sequence[int]

    def place(self, row: int) -> str:
        """Return the file and line of a row."""
        return f"{self.path}, line {self.lines[row]}"

    def need(self, names: Sequence[str]) -> None:
        """Raise unless all of these columns are there."""
        for name in names:
            if name not in self.columns:
                raise InvalidInput(
                    f"{self.path} must have a column {name!r}, got {', '.join(self.columns)[:200]}."
                )

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, or say which cell is none."""
        cells = self.columns[name]
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:
            for row, cell in enumerate(cells):
                _number(cell, f"{self.place(row)}, column {name!r}")
            raise

    def whole(self, name: str) -> IntArray:
        """Return a column as integers, or say which cell is none."""
        numbers = self.numbers(name)
        bad = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)))
        if bad.any():
            row = int(np.argmax(bad))
            cell = self.columns[name][row]
            raise InvalidInput(
                f"{self.place(row)}, column {name!r}: a whole number is needed, got {cell!r}."
            )
        return numbers.astype(np.int64)

    def log(self, *columns: Any, **options: Any) -> BanditLog:
        """Return the log that ``BanditLog.of`` makes of columns; a bad row is named by its line."""
        try:
            return BanditLog.of(*columns, **options)
        except UnusableRow as error:
            raise InvalidInput(f"{self.place(error.row)}: {error.reason}.") from None
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}: {error}") from None


def _number(cell: str, place: str) -> float:
    if not cell.strip():
        raise InvalidInput(f"{place}: a number is missing.")
    try:
        return float(cell)
    except ValueError:
        raise InvalidInput(f"{place}: a number is needed, got {cell!r}.") from None


@contextmanager
def _reading(path: Path) -> Iterator[TextIO]:
    """Open a text file, plain or gzipped; what goes wrong becomes one sentence."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        opening = gzip.open if packed else open
        with opening(path, "rt", encoding="utf-8-sig", newline="") as text:
            yield text
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"{path} must be a readable CSV file: {reason}.") from None


def read_header(path: Path | str) -> list[str]:
    """Read the names of the columns of a CSV file, plain or gzipped."""
    with _reading(Path(path)) as text:
        return _header(csv.reader(text), Path(path))


def _header(reader: Iterator[list[str]], path: Path) -> list[str]:
    header = [name.strip() for name in next(reader, [])]
    if len(set(header)) != len(header) or not header:
        raise InvalidInput(f"{path} must start with a header that names each column once.")
    return header


def read_sheet(path: Path | str) -> Sheet:
    """Read a CSV file, plain or gzipped, whose header names the columns."""
    path = Path(path)
    rows, lines = [], []
    with _reading(path) as text:
        reader = csv.reader(text)
        header = _header(reader, path)
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
                if len(row) != len(header):
                    raise InvalidInput(
                        f"{path}, line {reader.line_num}: a row must have {len(header)} cells, as "
                        f"the header has, got {len(row)}."
                    )
    if not rows:
        raise InvalidInput(f"{path} must have at least one row below its header.")
    columns = {
        name: list(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    }
    return Sheet(path, columns, lines)


def log_of_sheet(
    sheet: Sheet, *, n_actions: int | None = None, action_names: Sequence[str] | None = None
) -> BanditLog:
    """Return the log that a table in Keyhole's columns holds."""
    sheet.need(REQUIRED)
    for name in sheet.columns:
        if name not in KNOWN and not name.startswith(FEATURE):
            raise InvalidInput(
                f"{sheet.path}: a column must be action, position, propensity, reward or "
                f"{FEATURE}NAME, got {name!r}."
            )
    for name in ("propensity", "reward"):
        for row, cell in enumerate(sheet.columns[name]):
            if not cell.strip():
                raise InvalidInput(f"{sheet.place(row)}: a {name} is missing.")
    features = [name for name in sheet.columns if name.startswith(FEATURE)]
    contexts = np.empty((len(sheet.lines), len(features)))
    for index, name in enumerate(features):
        contexts[:, index] = sheet.numbers(name)
    return sheet.log(
        contexts,
        sheet.columns["action"],
        sheet.numbers("reward"),
        sheet.numbers("propensity"),
        n_actions=n_actions,
        positions=sheet.whole("position") if "position" in sheet.columns else None,
        action_names=action_names,
        feature_names=[name.removeprefix(FEATURE) for name in features],
    )


def read_bandit_csv(
    path: Path | str, *, n_actions: int | None = None, action_names: Sequence[str] | None = None
) -> BanditLog:
    """Read a log from a CSV file, plain or gzipped.

    Parameters
    ----------
    n_actions
        How many actions there are, where the log may not show the last of them.
    action_names
        All names of actions, in their order; without them names are sorted.
    """
    log = _read_quickly(Path(path), n_actions) if action_names is None else None
    if log is not None:
        return log
    return log_of_sheet(read_sheet(path), n_actions=n_actions, action_names=action_names)


def _read_quickly(path: Path, n_actions: int | None) -> BanditLog | None:
    """Read a file of nothing but numbers, or leave it to the reader that can say what is wrong."""
    header = read_header(path)
    known = all(name in KNOWN or name.startswith(FEATURE) for name in header)
    if not (known and set(REQUIRED) <= set(header)):
        return None
    try:
        with _reading(path) as text:
            text.readline()
            first = text.readline()
            if not first.strip():  # NumPy would warn
                return None
            cells = np.loadtxt(chain([first], text), delimiter=",", comments=None, ndmin=2)
        column = {name: cells[:, index] for index, name in enumerate(header)}
        features = [name for name in header if name.startswith(FEATURE)]
        return BanditLog.of(
            cells[:, [header.index(name) for name in features]],
            column["action"],
            column["reward"],
            column["propensity"],
            n_actions=n_actions,
            positions=column.get("position"),
            feature_names=[name.removeprefix(FEATURE) for name in features],
        )
    except (ValueError, IndexError):
        return None


def _table(log: BanditLog) -> dict[str, list[Any]]:
    names = log.feature_names or tuple(str(index) for index in range(log.contexts.shape[1]))
    return {
        "action": [log.name_of(action) for action in log.actions]
        if log.action_names
        else log.actions.tolist(),
        "position": log.positions.tolist(),
        "propensity": log.propensities.tolist(),
        "reward": log.rewards.tolist(),
        **{f"{FEATURE}{name}": log.contexts[:, i].tolist() for i, name in enumerate(names)},
    }


def write_csv(path: Path | str, columns: dict[str, list[Any]]) -> None:
    """Write columns as CSV; gzipped if the name ends with .gz. Floats are written exactly."""
    path = Path(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def write_bandit_csv(log: BanditLog, path: Path | str) -> None:
    """Write a log as CSV, gzipped if the name ends with .gz; reading it gives the same numbers."""
    write_csv(path, _table(log))


def _pandas() -> Any:
    try:
        import pandas as pd

        return pd
    except ModuleNotFoundError:
        raise ParquetMissing(
            "Parquet files need pandas and fastparquet: install them with pip install "
            "'keyhole[logs]'."
        ) from None


def read_bandit_parquet(
    path: Path | str, *, n_actions: int | None = None, action_names: Sequence[str] | None = None
) -> BanditLog:
    """Read a log from a Parquet file with the columns of :func:`read_bandit_csv`."""
    pd, path = _pandas(), Path(path)
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise ParquetMissing(f"Parquet files need fastparquet or pyarrow: {error}") from None
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InvalidInput(f"{path} must be a readable Parquet file: {reason}.") from None
    # As text, so that a table of either kind is judged in one way; repr keeps every bit.
    columns = {
        str(name): [_cell(value) for value in frame[name].tolist()] for name in frame.columns
    }
    if not len(frame):
        raise InvalidInput(f"{path} must have at least one row.")
    rows = _Rows(path, columns, range(len(frame)))
    return log_of_sheet(rows, n_actions=n_actions, action_names=action_names)


class _Rows(Sheet):
    def place(self, row: int) -> str:
        return f"{self.path}, row {self.lines[row]}"


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def write_bandit_parquet(log: BanditLog, path: Path | str) -> None:
    """Write a log as Parquet, with the columns of :func:`write_bandit_csv`."""
    pd = _pandas()
    try:
        pd.DataFrame(_table(log)).to_parquet(Path(path), index=False)
    except ImportError as error:
        raise ParquetMissing(f"Parquet files need fastparquet or pyarrow: {error}") from None
