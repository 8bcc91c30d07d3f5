"""Tables whose columns have names, from CSV and Parquet files.

A table is read by polars, which is quick; a CSV file that has anything unusual in it is read again
by Python's own reader, which takes its time and can say on which line something is wrong.
"""

import csv
import gzip
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput, LibraryMissing
from keyhole.base.files import read_input, write_atomically
from keyhole.base.limits import check_memory, inflation_limit
from keyhole.data.bandit.columns import UnusableRow, is_number, seconds_of
from keyhole.data.bandit.log import BanditLog
from keyhole.data.packed import decoded, read_unpacked, readable

if TYPE_CHECKING:
    import polars as pl

_ROOM = 2**28
"""Bytes of addresses that must be free before polars is asked for anything."""


class Sheet(ABC):
    """A table as it was found in a file: its columns as text or numbers, and where rows were."""

    path: Path

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Return where a row is, for an error."""

    @abstractmethod
    def cells(self, name: str) -> list[str]:
        """Return a column as text, every bit of its numbers in it; what is missing is empty."""

    def need(self, names: Sequence[str]) -> None:
        """Raise unless all of these columns are there."""
        for name in names:
            if name not in self.names:
                raise InvalidInput(
                    f"{self.path} must have a column {name!r}, got {', '.join(self.names)[:200]}."
                )

    def is_numeric(self, name: str) -> bool:
        """Return whether every cell of a column is a number."""
        return self._parsed(name) is not None

    def numbers(self, name: str, missing: str = "") -> FloatArray:
        """Return a column as numbers, or say which cell is none; ``missing`` is what it lacks."""
        parsed = self._parsed(name)
        if parsed is not None:
            return parsed
        for row, cell in enumerate(self.cells(name)):
            place = f"{self.place(row)}, column {name!r}"
            if missing and not cell.strip():
                raise InvalidInput(f"{self.place(row)}: {missing} is missing.")
            if not cell.strip():
                raise InvalidInput(f"{place}: a number is missing.")
            if not is_number(cell):
                raise InvalidInput(f"{place}: a number is needed, got {cell!r}.")
        raise AssertionError("a column without a bad cell is numeric")

    def whole(self, name: str) -> IntArray:
        """Return a column as integers, or say which cell is none."""
        numbers = self.numbers(name)
        bad = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)) & (abs(numbers) < 2.0**53))
        if bad.any():
            row = int(np.argmax(bad))
            cell = self.cells(name)[row]
            raise InvalidInput(
                f"{self.place(row)}, column {name!r}: a whole number is needed, got {cell!r}."
            )
        return numbers.astype(np.int64)

    def moments(self, name: str) -> FloatArray:
        """Return a column of times as numbers: as they are, or seconds since 1970 of ISO 8601."""
        parsed = self._parsed(name)
        if parsed is not None:
            return parsed
        try:
            return seconds_of(self.cells(name))
        except UnusableRow as error:
            raise InvalidInput(
                f"{self.place(error.row)}, column {name!r}: {error.reason}."
            ) from None

    def log(self, *columns: Any, **options: Any) -> BanditLog:
        """Return the log that ``BanditLog.of`` makes of columns; a bad row is named by its line."""
        try:
            return BanditLog.of(*columns, **options)
        except UnusableRow as error:
            raise InvalidInput(f"{self.place(error.row)}: {error.reason}.") from None
        except InvalidInput as error:
            raise InvalidInput(f"{self.path}: {error}") from None

    def _parsed(self, name: str) -> FloatArray | None:
        """Return a column as numbers, or None if a cell is missing or no number."""
        try:
            return np.array(self.cells(name), dtype=np.float64)
        except ValueError:
            return None


@dataclass(frozen=True)
class TextSheet(Sheet):
    """A table of text, and the line of each row."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def n_rows(self) -> int:
        return len(self.lines)

    def place(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"

    def cells(self, name: str) -> list[str]:
        return self.columns[name]


@dataclass(frozen=True)
class FrameSheet(Sheet):
    """A table that polars holds, its rows numbered from 0."""

    path: Path
    frame: "pl.DataFrame"

    @property
    def names(self) -> list[str]:
        return self.frame.columns

    @property
    def n_rows(self) -> int:
        return self.frame.height

    def place(self, row: int) -> str:
        return f"{self.path}, row {row}"

    def cells(self, name: str) -> list[str]:
        column = self.frame[name]
        if column.dtype.is_float():
            column = column.fill_nan(None)
        return ["" if cell is None else str(cell) for cell in column.to_list()]

    def _parsed(self, name: str) -> FloatArray | None:
        pl, column = _polars(), self.frame[name]
        if column.dtype.is_numeric() or column.dtype == pl.String:
            numbers = column.cast(pl.Float64, strict=False)
            if not (numbers.null_count() or numbers.is_nan().any()):
                return numbers.to_numpy()
        return super()._parsed(name)  # which also takes what only Python reads as a number


# --------------------------------------------------------------------------- CSV


@dataclass(frozen=True)
class CsvFile:
    """A CSV file in memory, unpacked, and the names in its header."""

    path: Path
    text: bytes
    header: list[str]


@contextmanager
def _readable_cells(path: Path) -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise InvalidInput(f"{path} must be cells that are readable as CSV: {error}.") from None


def open_csv(path: Path | str) -> CsvFile:
    """Return a CSV file, plain or compressed, whose header names each column once."""
    path = Path(path)
    text = read_unpacked(path, "CSV")
    first = io.TextIOWrapper(io.BytesIO(text), "utf-8", errors="replace", newline="")
    with _readable_cells(path):
        header = [name.strip() for name in next(csv.reader(first), [])]
    if len(set(header)) != len(header) or not header:
        raise InvalidInput(f"{path} must start with a header that names each column once.")
    return CsvFile(path, text, header)


def read_sheet(file: CsvFile) -> Sheet:
    """Return the table of a CSV file, cell by cell, or say what is wrong with it."""
    path, width, rows, lines = file.path, len(file.header), [], []
    reader = csv.reader(io.StringIO(decoded(path, file.text, "CSV"), newline=""))
    next(reader)
    with _readable_cells(path):
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
                if len(row) != width:
                    raise InvalidInput(
                        f"{path}, line {reader.line_num}: a row must have {width} cells, as the "
                        f"header has, got {len(row)}."
                    )
    if not rows:
        raise InvalidInput(f"{path} must have at least one row below its header.")
    columns = (list(cells) for cells in zip(*rows, strict=True))
    return TextSheet(path, dict(zip(file.header, columns, strict=True)), lines)


def log_of_csv(
    file: CsvFile, make: Callable[[Sheet], BanditLog], *, is_text: Callable[[str], bool]
) -> BanditLog:
    """Return the log that ``make`` makes of a CSV file's table.

    ``is_text`` says which columns may hold something else than numbers.
    """
    quick = _quick_sheet(file, is_text)
    if quick is not None:
        try:
            return make(quick)
        except InvalidInput:
            pass  # said again below, with the line
    return make(read_sheet(file))


def _quick_sheet(file: CsvFile, is_text: Callable[[str], bool]) -> Sheet | None:
    """Return a table without gaps and without anything that readers differ on, or None."""
    try:
        pl = _polars()
    except (LibraryMissing, MemoryError):
        return None
    if file.text.count(b"\r") != file.text.count(b"\r\n"):
        return None  # ends a line for Python, and none for polars
    types = {name: pl.String if is_text(name) else pl.Float64 for name in file.header}
    try:
        frame = pl.read_csv(io.BytesIO(file.text), schema=types)
    except pl.exceptions.PolarsError:
        return None
    has_gaps = any(frame.null_count().row(0))
    return FrameSheet(file.path, frame) if frame.height and not has_gaps else None


def write_csv(path: Path | str, columns: dict[str, Any]) -> None:
    """Write columns as CSV; gzipped if the name ends with .gz. Floats are written exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    plain = (np.asarray(column).tolist() for column in columns.values())  # whose floats are exact
    writer.writerows(zip(*plain, strict=True))
    write_text(path, text.getvalue())


def write_text(path: Path | str, text: str) -> None:
    """Write text whole or not at all, gzipped if the name ends with .gz."""
    path, content = Path(path), text.encode()
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


# --------------------------------------------------------------------------- Parquet


def _polars() -> Any:
    # Where memory runs out polars ends the process, and nothing can be said. So look before: these
    # are addresses that are never written to, and a MemoryError where there are none.
    np.empty(_ROOM, np.uint8)
    try:
        import polars as pl

        return pl
    except ModuleNotFoundError:
        raise LibraryMissing("Parquet files need polars", "logs") from None


def read_parquet(path: Path | str) -> Sheet:
    """Return the table of a Parquet file."""
    pl, path = _polars(), Path(path)
    with readable(path, "Parquet"):
        content = read_input(path)
    try:
        scanned = pl.scan_parquet(io.BytesIO(content))
        n_cells = scanned.select(pl.len()).collect().item() * len(scanned.collect_schema())
        check_memory(8.0 * n_cells, f"{path}, unpacked,", inflation_limit(len(content)))
        frame = scanned.collect()
    except InvalidInput:
        raise
    # Of Rust's panics Python makes what is no Exception.
    except (Exception, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
        raise InvalidInput(f"{path} must be a readable Parquet file: {reason}.") from None
    if not frame.height:
        raise InvalidInput(f"{path} must have at least one row.")
    return FrameSheet(path, frame)


def write_parquet(path: Path | str, columns: dict[str, Any]) -> None:
    """Write columns as Parquet, whole or not at all."""
    buffer = io.BytesIO()
    _polars().DataFrame(columns).write_parquet(buffer)
    write_atomically(Path(path), buffer.getvalue())
