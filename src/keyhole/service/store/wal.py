"""The write-ahead log of SQLite: whether what was acknowledged can still be read from it.

After a crash SQLite reads it up to the first frame that is not what was written, and says nothing
of the rest. At its end that is a transaction which was never acknowledged. Where another one
follows, it was: each is on the disk before the next one begins.
"""

import struct
from pathlib import Path
from typing import NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")


class Frame(NamedTuple):
    """A page of a transaction; the last of it tells how many pages there are then."""

    page: int
    n_pages: int


class Journal:
    """The write-ahead log that was there before a database was opened."""

    def __init__(self, path: Path) -> None:
        self._database, self._file = path, path.with_name(path.name + "-wal")
        self.frames: list[Frame | None] = []
        """None stands for those of a log before, which this one has not overwritten yet."""
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
        """Return whether SQLite, which has read some frames, left others that were acknowledged."""
        if self._is_headless:
            return self._has_news()
        rest = self.frames[max(n_read, 0) :]
        for place, frame in enumerate(rest):
            if frame is not None and frame.n_pages:
                # One that ends a transaction may be there several times, to fill a sector.
                return any(later not in (None, frame) for later in rest[place + 1 :])
        return False

    def _has_news(self) -> bool:
        """Return whether frames below a head that cannot be read say what the database does not.

        A head that was being written when the power was cut has frames below it whose pages were
        moved to the database before.
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
    """Return the checksum that SQLite keeps of the head of a write-ahead log."""
    numbers = struct.unpack(f"{'>' if big_endian else '<'}{len(content) // 4}I", content)
    one = two = 0
    for first, second in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + first + two) % 2**32
        two = (two + second + one) % 2**32
    return one, two
