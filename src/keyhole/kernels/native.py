"""Native code for games that are long enough: compiled by another process, taken up meanwhile.

Code that ships with the package is for a baseline processor. Native code is a third faster for
some rankers and hardly at all for others, and takes seconds to compile; so it is compiled once a
game has lasted ``PAYS_AFTER`` seconds and has as long to go. Results are the same to the last bit.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from numba.core.serialize import dumps

from keyhole.kernels.code_cache import code_folder

PAYS_AFTER = 10.0
"""Seconds that a game must have lasted, and must be expected to go on for."""


class NativeCode:
    """Watches the progress of a game; has its loop compiled for this processor when that pays."""

    def __init__(self, loop: Callable[..., Any], n_rounds: int) -> None:
        self._program: Any = getattr(loop, "_cache", None)
        self._n_rounds, self._n_played = n_rounds, 0
        self._began = time.perf_counter()
        self._compiler: subprocess.Popen[bytes] | None = None
        self._args: Any = None
        self._is_settled = False

    def after(self, n_rounds: int) -> None:
        """Hear of rounds that were played since the last call."""
        self._n_played += n_rounds
        if self._is_settled:
            return
        if self._compiler is None:
            self._consider()
        elif self._compiler.poll() is not None:
            self._is_settled = True
            if self._compiler.returncode == 0:
                self._program.take_native(self._args)

    def _consider(self) -> None:
        seconds = time.perf_counter() - self._began
        if seconds < PAYS_AFTER or not self._n_played:
            return
        left = seconds * (self._n_rounds - self._n_played) / self._n_played
        on_baseline = getattr(self._program, "on_baseline", ())
        if left < PAYS_AFTER or not on_baseline or code_folder() is None:
            self._is_settled = True
            return
        (self._args, *_) = on_baseline
        self._compiler = subprocess.Popen(
            [sys.executable, "-m", "keyhole.kernels.compile_native"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with self._compiler.stdin as pipe:  # type: ignore[union-attr]
            pipe.write(dumps((self._program.identity, self._args)))

    def close(self) -> None:
        """End the other process, if it is still at work."""
        if self._compiler is not None and self._compiler.poll() is None:
            self._compiler.kill()
            self._compiler.wait()
