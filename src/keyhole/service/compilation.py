"""Compiles the code of rankers in a child process, and loads it here from the disk cache.

Numba holds the GIL for the seconds that compilation takes, so a process that compiles answers no
requests. This process only loads cached code: in a thread, one function at a time.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from numba.core import event

from keyhole.base.errors import KeyholeError
from keyhole.kernels.code_cache import NotCompiled, code_folder, only_from_disk
from keyhole.service.commands import RankerRequest
from keyhole.service.compile_status import Preparation, Source
from keyhole.service.compile_worker import Order
from keyhole.service.events import Config
from keyhole.service.structured_logs import logger
from keyhole.service.warm_up import code_of, warming

T = TypeVar("T")

_LOOK_SECONDS = 1.0
"""Seconds that the creation of a ranker waits for code from the disk cache."""
_TICK = 1.0
_COMPILES = "numba:compile"
_TIMES = 2
"""Attempts with a compile worker."""
_LONGEST_COMPLAINT = 500
_MOST_LISTED = 5
_PAUSE = 0.002
"""Seconds between loading two functions, in which requests get the GIL."""
_TURN = 0.0005
"""The GIL switch interval while code is loaded, in seconds; a tenth of Python's default."""


class Stopped(KeyholeError):
    """Preparation was cancelled because the service is stopping."""


class Preparer:
    """Prepares the code of rankers on half of the processors."""

    def __init__(self) -> None:
        n_processors = os.cpu_count() or 1
        self._n_at_start = n_processors
        self._pool = ThreadPoolExecutor(max(1, n_processors // 2), "keyhole-preparing")
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._is_stopping = self._is_watching = False
        self._watch = _CompileWatch()
        self._tasks: set[asyncio.Task[None]] = set()
        self.known: dict[str, Preparation] = {}
        """All preparations since startup, by ranker."""
        self._by_code: dict[bytes, Preparation] = {}
        """The first preparation for each distinct set of code."""

    def told(self) -> str | None:
        """Return a sentence on the preparations in progress; None if there are none."""
        going_on = [each for each in dict.fromkeys(list(self.known.values())) if each.is_open]
        if not going_on:
            return None
        listed = [f"{e.ranker} ({e.kind}) for {e.seconds:.0f} s" for e in going_on[:_MOST_LISTED]]
        if len(going_on) > _MOST_LISTED:
            listed.append(f"{len(going_on) - _MOST_LISTED} more")
        return f"Compiling the code of rankers: {', '.join(listed)}; retry in a moment."

    # ------------------------------------------------------------------- while it serves

    def begin(self, ranker: str, config: Config, tell: Callable[[], None]) -> Preparation:
        """Start to prepare a ranker; ``tell`` is called every second and at the end.

        Rankers that need the same code share one preparation.
        """
        before = self._by_code.get(code_of(config))
        if before is not None and before.state == "ready":
            before.looked.set()
            self.known[ranker] = before
            return before
        preparation = self._preparation(ranker, config)
        task = asyncio.create_task(self._follow(preparation, config, tell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return preparation

    def _preparation(self, ranker: str, config: Config) -> Preparation:
        preparation = self.known[ranker] = Preparation(ranker, config)
        self._by_code[code_of(config)] = preparation
        return preparation

    async def look(self, preparation: Preparation) -> None:
        """Wait until cached code is loaded, for at most a second."""
        with suppress(TimeoutError):
            await asyncio.wait_for(preparation.looked.wait(), _LOOK_SECONDS)

    async def run(self, work: Callable[[], T], request: RankerRequest, name: str) -> T:
        """Return the result of ``work`` on the request for a ranker, in a thread.

        The few algorithms and measures that need compiled code for it wait for the code here.
        """
        found: list[T] = []

        def load() -> None:
            found.append(work())

        if not await asyncio.to_thread(_from_disk, load):
            loop, order = asyncio.get_running_loop(), Order(request=request)
            self._check_going_on()
            await loop.run_in_executor(self._pool, self._ensure, load, order, name)
        return found[-1]

    async def _follow(
        self, preparation: Preparation, config: Config, tell: Callable[[], None]
    ) -> None:
        try:
            if await asyncio.to_thread(_from_disk, partial(_load, config)):
                preparation.end("disk")
        except Exception as error:
            preparation.fail(error)
        finally:
            preparation.looked.set()
        if preparation.is_open and not self._is_stopping:
            loop = asyncio.get_running_loop()
            work = loop.run_in_executor(self._pool, self._prepare, preparation, config)
            while not work.done():
                await asyncio.wait({work}, timeout=_TICK)
                tell()
        tell()

    def watch(self) -> None:
        """Log a warning whenever a request compiles code that should have been prepared."""
        event.register(_COMPILES, self._watch)  # type: ignore[no-untyped-call]
        self._is_watching = True

    def halt(self) -> None:
        """Cancel all preparations and start no more."""
        with self._lock:
            if self._is_watching:
                event.unregister(_COMPILES, self._watch)  # type: ignore[no-untyped-call]
                self._is_watching = False
            self._is_stopping = True
            for child in self._children:
                child.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def stop(self) -> None:
        """Call :meth:`halt` and wait for the watching tasks to end."""
        self.halt()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------- before serving

    def prepare_all(self, configs: Mapping[str, Config]) -> None:
        """Prepare all rankers at startup, on all processors, and wait until they are ready.

        Rankers that need the same code share one preparation.
        """
        made: dict[bytes, Preparation] = {}
        with ThreadPoolExecutor(self._n_at_start, "keyhole-preparing") as pool:
            for name, config in configs.items():
                code = code_of(config)
                if code not in made:
                    made[code] = self._preparation(name, config)
                    pool.submit(self._prepare, made[code], config)
                self.known[name] = made[code]
        self._check_going_on()

    # ------------------------------------------------------------------- in any thread

    def _prepare(self, preparation: Preparation, config: Config) -> None:
        try:
            source = self._ensure(partial(_load, config), Order(config=config), preparation.ranker)
        except Stopped:
            return
        except Exception as error:
            preparation.fail(error)
        else:
            preparation.end(source)

    def _ensure(self, load: Callable[[], None], order: Order, ranker: str) -> Source:
        """Load code from the disk cache; on a miss a child process compiles it first."""
        self._check_going_on()
        if _from_disk(load):
            return "disk"
        for _ in range(_TIMES if _is_kept() else 0):
            complaint = self._compile(order)
            if complaint is None:
                if _from_disk(load):
                    return "compiled"
                break
            self._check_going_on()
            logger().warning("A compile worker failed.", ranker=ranker, why=complaint)
        logger().warning(
            "Compiling in the service process, which delays other requests: no compile worker "
            "succeeded.",
            ranker=ranker,
        )
        with expected():
            load()
        return "compiled within the service"

    def _compile(self, order: Order) -> str | None:
        """Run a compile worker; return its error output if it fails."""
        with self._lock:
            self._check_going_on()
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "keyhole.service.compile_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                bufsize=0,  # closing a buffered pipe to a dead child would raise again
                env={**os.environ, "PYTHONPATH": _import_path()},
                # A process group of its own keeps Ctrl-C of the service away from the child. A new
                # session would put it in its own scheduler group, where its niceness has no effect.
                process_group=0,
            )
            self._children.add(child)
        try:
            # The pipe stays open while this process lives: the worker exits when it closes.
            with child:
                if child.stdin is None or child.stderr is None:
                    raise RuntimeError("The compile worker has no pipes.")
                with suppress(BrokenPipeError):
                    child.stdin.write(msgspec.json.encode(order) + b"\n")
                    child.stdin.flush()
                said = child.stderr.read().decode("utf-8", "replace").strip()
        finally:
            with self._lock:
                self._children.discard(child)
        if child.returncode == 0:
            return None
        return said[-_LONGEST_COMPLAINT:] or f"It ended with status {child.returncode}."

    def _check_going_on(self) -> None:
        if self._is_stopping:
            raise Stopped("The service is stopping.")


def _load(config: Config) -> None:
    for _ in warming(config):
        time.sleep(_PAUSE)


def _from_disk(load: Callable[[], None]) -> bool:
    """Load code if all of it is in the disk cache; return whether it is."""
    try:
        with only_from_disk(), expected(), _short_turns():
            load()
    except NotCompiled:
        return False
    return True


def _is_kept() -> bool:
    """Return whether this process can read the disk cache that a worker writes."""
    folder = code_folder()
    return folder is not None and os.access(folder, os.W_OK)


def _import_path() -> str:
    """Return the PYTHONPATH under which a child imports this same package."""
    own, given = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")
    return os.pathsep.join([own, given] if given else [own])


class _Turns:
    """Shortens the GIL switch interval while any thread loads code."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n = 0
        self._usual = 0.0

    @contextmanager
    def short(self) -> Iterator[None]:
        with self._lock:
            if not self._n:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(_TURN, self._usual))
            self._n += 1
        try:
            yield
        finally:
            with self._lock:
                self._n -= 1
                if not self._n:
                    sys.setswitchinterval(self._usual)


_short_turns = _Turns().short
_is_expected: ContextVar[bool] = ContextVar("is_expected", default=False)


@contextmanager
def expected() -> Iterator[None]:
    """Suppress the warning about compilation: no request waits for what this block compiles."""
    token = _is_expected.set(True)
    try:
        yield
    finally:
        _is_expected.reset(token)


class _CompileWatch(event.Listener):
    """Logs a warning if a request has to wait for the compiler."""

    def on_start(self, event: Any) -> None:
        if not _is_expected.get():
            function = event.data["dispatcher"].py_func.__qualname__
            logger().warning("A request is compiling code.", function=function)

    def on_end(self, event: Any) -> None: ...
