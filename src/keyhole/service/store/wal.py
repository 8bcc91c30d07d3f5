"""Detects lost transactions in the write-ahead log of SQLite.

After a crash SQLite replays the log up to the first invalid frame and silently drops the rest. At
the end of the log that is an unacknowledged transaction. If another transaction follows, the
dropped one had been acknowledged: each is synced before the next one starts.
"""

import struct
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")


class Frame(NamedTuple):
    """A page of a transaction; its last frame holds the resulting number of pages."""

    page: int
    n_pages: int


class Journal:
    """The write-ahead log as it was before the database was opened."""

    def __init__(self, path: Path) -> None:
        self._database, self._file = path, path.with_name(path.name + "-wal")
        self.frames: list[Frame | None] = []
        """The frames; None for old frames that this log has not overwritten yet."""
        self._is_headless, self._page_size = False, 0
        if self._file.is_file() and self._file.stat().st_size > _HEADER.size:
            self._read()

    def _read(self) -> None:
        with self._file.open("rb") as file:
            head = file.read(_HEADER.size)
            magic, _, self._page_size, _, *salts = _HEADER.unpack(head)[:6]
            checksum = _checksum(head[:24], big_endian=bool(magic & 1))
            self._is_headless = checksum != _HEADER.unpack(head)[6:]
            if self._is_headless:
                self._page_size = self._size_of_pages()
            while self._page_size and len(head := file.read(_FRAME.size)) == _FRAME.size:
                page, n_pages, *own = _FRAME.unpack(head)[:4]
                if self._is_headless and not self.frames:
                    salts = own
                self.frames.append(Frame(page, n_pages) if own == salts else None)
                file.seek(self._page_size, 1)

    def _size_of_pages(self) -> int:
        with self._database.open("rb") as database:
            size = int.from_bytes(database.read(18)[16:], "big")
        return 65_536 if size == 1 else size

    def is_cut_short(self, n_read: int) -> bool:
        """Return whether SQLite dropped acknowledged frames after the ones it read."""
        if self._is_headless:
            return self._has_news()
        rest = self.frames[max(n_read, 0) :]
        for place, frame in enumerate(rest):
            if frame is not None and frame.n_pages:
                # The last frame of a transaction may be repeated, to fill a sector.
                return any(later not in (None, frame) for later in rest[place + 1 :])
        return False

    def _has_news(self) -> bool:
        """Return whether frames after an invalid header differ from the database.

        If power failed while the header was written, the frames after it have been checkpointed.
        """
        ends = [number for number, frame in enumerate(self.frames) if frame and frame.n_pages]
        newest = {
            frame.page: number
            for number, frame in enumerate(self.frames[: ends[-1] + 1 if ends else 0])
            if frame is not None
        }
        size = self._page_size
        with self._file.open("rb") as journal, self._database.open("rb") as database:
            for page, number in newest.items():
                journal.seek(_HEADER.size + number * (_FRAME.size + size) + _FRAME.size)
                database.seek((page - 1) * size)
                if journal.read(size) != database.read(size):
                    return True
        return False


def _checksum(content: bytes, *, big_endian: bool) -> tuple[int, int]:
    """Return SQLite's checksum of the header of a write-ahead log."""
    numbers = struct.unpack(f"{'>' if big_endian else '<'}{len(content) // 4}I", content)
    one = two = 0
    for first, second in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + first + two) % 2**32
        two = (two + second + one) % 2**32
    return one, two
