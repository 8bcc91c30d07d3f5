"""Copies of the project in which tests run, so that the working tree is never touched."""

import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "out", "build", "dist", "*.egg-info")
_NOT_BEGUN = 3, 4  # the exit codes of pytest that say that it or its plugins failed, not a test
_CODE = Path("src", "keyhole", "__pycache__", "code")


class Tree:
    """A copy of ``root`` that stays at one place, so that compiled code is found again there."""

    def __init__(self, root: Path, folder: Path) -> None:
        for old in folder.rglob("*"):
            name = old.relative_to(folder)
            if old.is_file() and "__pycache__" not in name.parts and not (root / name).exists():
                old.unlink()
        shutil.copytree(root, folder, ignore=_LEFT_OUT, dirs_exist_ok=True)
        self.folder = folder
        link_code(root / _CODE, folder / _CODE)
        self._data = root.parent / "shared" / "data"

    @contextmanager
    def changed(self, path: Path, content: bytes) -> Iterator[None]:
        """Let a file of the tree have other content for a while."""
        place = self.folder / path
        original, times = place.read_bytes(), place.stat()
        bytecode = Path(cache_from_source(str(place)))
        try:
            # Python tells versions of a file apart by size and whole seconds, which is not enough.
            bytecode.unlink(missing_ok=True)
            place.write_bytes(content)
            yield
        finally:
            place.write_bytes(original)
            os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
            bytecode.unlink(missing_ok=True)

    def pytest(
        self,
        files: list[str],
        *,
        interpreted: bool,
        limits: dict[str, float] | None = None,
        limit: float = 0.0,
        fresh: bool = False,
        whole: float | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Return the exit code, and how each test went.

        With ``limits`` these tests alone run, up to the first that fails, all of them for at most
        ``whole`` seconds of processor time. ``fresh`` keeps what is compiled out of the tree's
        cache, of which it has a copy.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-p", "bench.mutants.plugin"]
        command += ["-p", "no:cacheprovider"]
        with tempfile.TemporaryDirectory() as scratch:
            out, wanted = Path(scratch, "out.json"), Path(scratch, "wanted.json")
            environment = {
                "KEYHOLE_DATA": str(self._data),
                **os.environ,
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # to load them takes ten times as long
                "PYTHONPATH": os.pathsep.join([str(self.folder / "src"), str(self.folder)]),
                "MUTANTS_OUT": str(out),
                "MUTANTS_LIMIT": str(limit),
            }
            if limits is not None:
                wanted.write_text(json.dumps(limits))
                environment["MUTANTS_TESTS"] = str(wanted)
                command += ["-x"]
            if whole is not None:
                environment["MUTANTS_WHOLE"] = str(math.ceil(whole))
            if interpreted:
                environment["NUMBA_DISABLE_JIT"] = "1"
                # The words that random numbers are made of wrap around; compiled, in silence.
                command += ["-W", "ignore:overflow encountered:RuntimeWarning"]
            if fresh:
                package = self.folder / "src" / "keyhole"
                place = hashlib.sha256(str(package).encode()).hexdigest()[:16]
                link_code(self.folder / _CODE, Path(scratch) / f"keyhole-{place}")
                environment["NUMBA_CACHE_DIR"] = scratch
            ran = subprocess.run(
                [*command, *files],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if ran.returncode in _NOT_BEGUN and limits is None:
                raise RuntimeError(f"pytest could not begin:\n{ran.stdout}")
            found = json.loads(out.read_text()) if out.exists() else {}
        return ran.returncode, found


def link_code(source: Path, folder: Path) -> None:
    """Let a cache have the compiled code of another one, whose files are never changed in place."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.code"):
        target = folder / file.name
        if target.exists():
            continue
        try:
            os.link(file, target)
        except (FileNotFoundError, FileExistsError):  # another process was faster
            continue
        except OSError:  # another disk
            shutil.copy2(file, target)
