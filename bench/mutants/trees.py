"""Copies of the project in which tests run, so that the working tree is never touched."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "out", "build", "dist", "*.egg-info")


class Tree:
    """A copy of ``root`` that stays at one place, so that compiled code is found again there."""

    def __init__(self, root: Path, folder: Path) -> None:
        for old in folder.rglob("*"):
            name = old.relative_to(folder)
            if old.is_file() and "__pycache__" not in name.parts and not (root / name).exists():
                old.unlink()
        shutil.copytree(root, folder, ignore=_LEFT_OUT, dirs_exist_ok=True)
        self.folder = folder
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
        arguments: list[str],
        settings: dict[str, str],
        *,
        interpreted: bool,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run pytest with the plugin; ``fresh`` keeps compiled code out of the tree's cache."""
        environment = {
            "KEYHOLE_DATA": str(self._data),
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder / "src"), str(self.folder)]),
            **settings,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "bench.mutants.plugin"]
        command += ["-p", "no:cacheprovider", "-p", "no:xdist"]
        if interpreted:
            environment["NUMBA_DISABLE_JIT"] = "1"
            # The words that random numbers are made of wrap around without a warning if compiled.
            command += ["-W", "ignore:overflow encountered:RuntimeWarning"]
        with tempfile.TemporaryDirectory() as cache:
            if fresh:
                environment["NUMBA_CACHE_DIR"] = cache
            return subprocess.run(
                [*command, *arguments],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=timeout,
                check=False,
            )
