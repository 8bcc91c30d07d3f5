"""The one way in: commands of many callers are decided, committed in groups, and applied.

While one group is being written to the disk by a thread of its own, the next one is decided, and
the one before is applied and answered: under load a commit serves many callers, a single caller
never waits for others to come, and neither the disk nor the processor waits for the other.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import Command, Configure, Expire, Judged, Rename
from keyhole.service.commit_thread import Committer
from keyhole.service.compilation import Preparer
from keyhole.service.configuration import check_learnable, config_of
from keyhole.service.engine import MOST_WAITING, Decision, Engine, Made, now
from keyhole.service.errors import StoreError, StoreFailed, StoreFull, StoreGone
from keyhole.service.events import Event
from keyhole.service.log_check import LogCheck
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.shutdown import put_last_snapshots
from keyhole.service.store.base import Store
from keyhole.service.structured_logs import logger
from keyhole.service.wait_clock import Waits
from keyhole.service.warm_up import warm_up

MOST_IN_A_GROUP = 256
"""Commands that are committed together."""
SNAPSHOT_EVERY = 10_000
"""Events of a ranker between two snapshots."""
_TICK = 0.25
"""Seconds between looks at what is no longer waited for."""
_PROBE = 1.0
"""Seconds between looks at whether a full disk still is."""
_CHECKED_FIRST = 2.0
"""Seconds that checking the log may take before requests are answered."""
T = TypeVar("T")


class Reply(Protocol):
    """Where a reply goes: a future, or whatever else is told of it. It must not raise."""

    def done(self) -> bool:
        """Return whether nobody waits any more."""

    def set_result(self, result: Any, /) -> None:
        """Be told what a command led to."""

    def set_exception(self, exception: Exception, /) -> None:
        """Be told why nothing came of a command."""


class _Group:
    """Commands that were decided, to be committed together."""

    def __init__(self) -> None:
        self.decided: list[tuple[Command, Decision, Reply]] = []
        self.made: list[Made] = []

    @property
    def events(self) -> list[Event]:
        """Those to append, in their order."""
        return [event for event, _ in self.made]


class Desk:
    """Takes commands, and replies once what they led to is on the disk.

    Parameters
    ----------
    store
        The log, open for writing.
    reopen
        Opens it anew after a failure; None where that cannot be done.
    clock
        Seconds that only ever go forward: how long feedback is waited for is measured by it, never
        by the wall clock, which people set.
    preparer
        Has other processes compile what new rankers need; without one, whoever creates a ranker
        waits until it is compiled in a thread, and others may wait with them.
    """

    def __init__(
        self,
        store: Store,
        *,
        reopen: Callable[[], Store] | None = None,
        clock: Callable[[], float] = time.monotonic,
        snapshot_every: int = SNAPSHOT_EVERY,
        most_waiting: int = MOST_WAITING,
        preparer: Preparer | None = None,
    ) -> None:
        self.store = store
        self._preparer = preparer
        self._read_log(most_waiting)
        self.is_ready = True
        self._gone: str | None = None
        self._is_full = False
        self._probed = 0.0
        self.on_commit: Callable[[list[Event], float], None] | None = None
        """Told of every commit: its events, and the seconds it took."""
        self._reopen = reopen
        self._clock = clock
        self._snapshot_every = snapshot_every
        self._inbox: deque[tuple[Command, Reply]] = deque()
        self._next = _Group()
        self._is_writing = False
        self._is_broken = False
        self._probing: asyncio.Future[None] | None = None
        """The probe of a full disk, while it goes on."""
        self._wake = asyncio.Event()
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._committer, self._reader = Committer(), Committer()
        self._still, self._reading = asyncio.Lock(), asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._take_up()

    # ------------------------------------------------------------------- for callers

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written, in a sentence, though requests are answered."""
        full = "There is no room left for the log: nothing is written until there is."
        return self.engine.damage or self._gone or (full if self._is_full else None)

    @property
    def log(self) -> Literal["checking", "checked", "damaged"]:
        """How far the check of the log is, and whether there is a ranker that is not served."""
        if self.engine.damaged or self.engine.damage:
            return "damaged"
        return "checked" if self._checking.is_done else "checking"

    async def start(self) -> None:
        """Begin to take commands."""
        self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(self._watch_waits())]

    async def stop(self) -> None:
        """Commit what has come in, write snapshots, and stop; the store stays open."""
        self._stopping = True
        self._checking.stop()
        self._wake.set()
        if self._tasks:
            self._tasks[1].cancel()
            with suppress(asyncio.CancelledError):
                await self._tasks[1]
            await self._tasks[0]
        for watching in self._watchers.values():
            for event in watching:
                event.set()
        with suppress(StoreError):
            await self._committer.begin(self._put_last_snapshots)
        self._committer.stop()
        self._reader.stop()

    async def submit(self, command: Command) -> Any:
        """Return the reply to a command, after the commit of what it led to."""
        if isinstance(command, Configure) and command.judged is None:
            command = await self._judged(command)
        future = asyncio.get_running_loop().create_future()
        self.put(command, future)
        reply = await future
        if isinstance(command, Configure | Rename) and reply.created:
            live = self.engine.ranker(reply.name)
            if self._preparer is not None and live.preparation is not None:
                await self._preparer.look(live.preparation)
                return msgspec.structs.replace(reply, code=live.preparation.reply())
        return reply

    def put(self, command: Command, reply: Reply) -> None:
        """Take a command that needs no preparation; it is replied to after its commit."""
        if self._stopping or not self.is_ready:
            raise StoreFailed("The service is not ready: try again.")
        if self._gone is not None:
            raise StoreGone(self._gone)
        self._inbox.append((command, reply))
        if self._is_writing:
            self._decide()  # while the disk is busy, this thread is not
        else:
            self._wake.set()

    async def read(self, what: Callable[[], T]) -> T:
        """Return what is read of rankers in a thread, while no event is applied to any.

        Nothing is copied for it, however large a state is: what is committed meanwhile is applied
        and replied to afterwards. One is read at a time, so that this waits for one at most.
        """
        found: list[T] = []
        async with self._reading, self._still:
            await self._reader.begin(lambda: found.append(what()))
        return found[0]

    async def _judged(self, command: Configure) -> Configure:
        """Ask the oracle, which can take seconds, in which others must be served.

        What is needed to make the ranker is there afterwards; what it needs to rank and to learn
        may be prepared once it exists.
        """
        request, name, preparer = command.request, command.ranker, self._preparer
        judge = partial(check_learnable, request)
        make = partial(config_of, request, name, self.engine.secret)
        is_new = name not in self.engine.rankers
        if preparer is None:
            judged = Judged(await asyncio.to_thread(judge))
            if is_new:
                await asyncio.to_thread(warm_up, make())
        else:
            judged = Judged(await preparer.run(judge, request, name))
            if is_new:
                await preparer.run(make, request, name)
        return msgspec.structs.replace(command, judged=judged)

    async def subscribe(self, ranker: str) -> AsyncIterator[dict[str, Any]]:
        """Yield how far a ranker has come, now and after each change, until the desk stops."""
        live = self.engine.ranker(ranker)
        changed = asyncio.Event()
        watching = self._watchers.setdefault(ranker, set())
        watching.add(changed)
        try:
            while not self._stopping and ranker in self.engine.rankers:
                live = self.engine.rankers[ranker]
                yield {"seq": live.seq, "round": live.round, "waiting": len(live.waiting)}
                await changed.wait()
                changed.clear()
        finally:
            watching.discard(changed)

    # ------------------------------------------------------------------- groups

    async def _serve(self) -> None:
        """Commit one group after the other; what a commit leaves is applied during the next one."""
        written = _Group()
        while True:
            if self._is_broken:
                self._give_up(_Group(), StoreFailed("The log must be read again: try again."))
                await self._recover()
            self._decide()
            if self._next.decided:
                written = await self._commit(written)
            elif written.decided:
                await self._finish(written)
                written = _Group()
            elif self._stopping:
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _commit(self, before: "_Group") -> "_Group":
        """Commit the next group, and meanwhile finish the one before; return what is to finish."""
        if self._probing is not None:
            await self._probing
            self._probing = None
        group, self._next = self._next, _Group()
        began, self._is_writing = time.perf_counter(), True
        try:
            if group.made:
                events = group.events
                writing = self._committer.begin(self.store.stage(events))
                await self._finish(before)
                self._decide()  # what had to wait for it
                await writing
                self._is_full = False
                if self.on_commit is not None:
                    self.on_commit(events, time.perf_counter() - began)
        except StoreFull as error:
            self._is_full = True
            await self._finish(before)
            self._give_up(group, error)
        except Exception as error:  # what is on the disk must be read again, whatever it was
            logger().error("A commit failed.", error=str(error), kind=type(error).__name__)
            await self._finish(before)
            self._give_up(group, StoreFailed("The log could not be written: try again."))
            self._is_broken = True
        finally:
            self._is_writing = False
        await self._finish(before)
        return group

    def _decide(self) -> None:
        """Decide what has come in, as far as it need not wait for what was decided before."""
        if not self._inbox:
            return
        at, group = now(), self._next
        while self._inbox and max(len(group.decided), len(group.made)) < MOST_IN_A_GROUP:
            command, future = self._inbox.popleft()
            if future.done():  # its caller has gone before anything was decided
                continue
            try:
                decision = self.engine.decide(command, at)
            except KeyholeError as error:
                future.set_exception(error)
            except Exception as error:
                logger().exception("A command failed.", command=type(command).__name__)
                future.set_exception(error)
            else:
                if decision is None:
                    self._inbox.appendleft((command, future))
                    return
                group.decided.append((command, decision, future))
                group.made += decision.made

    async def _finish(self, group: "_Group") -> None:
        """Apply a group that is on the disk, and reply; one that is finished has nothing left."""
        if not group.decided:
            return
        decided, group.decided = group.decided, []
        try:
            async with self._still:
                self._apply(group.made)
                await self._make_states(group.made)
        except Exception:  # a fault of ours: the log has the events, and is read again
            logger().exception("What was committed could not be applied.")
            self._is_broken = True
            for _, _, future in decided:
                if not future.done():
                    future.set_exception(StoreFailed("The log must be read again: try again."))
            return
        for _, decision, future in decided:
            self.engine.settle(decision)
            if not future.done():
                future.set_result(decision.reply())
        due = self._due_snapshots(group.made)
        if due:  # they are taken of the rankers themselves, to which nothing is applied meanwhile
            try:
                await self._committer.begin(partial(self._put_snapshots, due))
            except Exception as error:  # a cache: the log has all of it
                logger().warning("A snapshot could not be taken.", error=str(error))

    def _give_up(self, group: "_Group", error: KeyholeError) -> None:
        """Refuse a group that was not kept; what was decided after it is decided anew."""
        self.engine.forget()
        for command, _, future in reversed(self._next.decided):
            self._inbox.appendleft((command, future))
        self._next = _Group()
        refused, group.decided = group.decided, []
        for _, _, future in refused:
            if not future.done():
                future.set_exception(error)

    def _apply(self, made: list[Made]) -> None:
        self.engine.apply_all(made)
        begun: dict[str, list[int]] = {}
        for event, _ in made:
            live = self.engine.rankers.get(event.ranker)
            if live is None:  # it was deleted
                self._tell_watchers(event.ranker)
                continue
            seqs = begun.setdefault(event.ranker, [])
            if event.kind == "rank":
                seqs.append(event.seq)
            elif event.kind == "activate":
                seqs.append(self.engine.rankers[event.ranker].seq_of.get(str(event.key), 0))
            elif event.kind == "config":
                self._configured(self.engine.rankers[event.ranker], event)
        moment = self._clock()
        for ranker, seqs in begun.items():
            self._waits.begin(self.engine.rankers[ranker], seqs, moment)
            self._tell_watchers(ranker)

    async def _make_states(self, made: list[Made]) -> None:
        """Fill the memory of rankers that begin, in a thread, before they are asked for lists.

        Nobody asks earlier: the command that they begin with is not settled.
        """
        for event, _ in made:
            live = self.engine.rankers.get(event.ranker)
            if event.kind == "config" and live is not None and live.begun == event.seq:
                await self._committer.begin(live.make_state)

    def _configured(self, live: LiveRanker, event: Event) -> None:
        self._waits.look_again(live)
        if event.seq == live.begun and live.preparation is None:
            self._prepare(live)

    def _prepare(self, live: LiveRanker) -> None:
        """Begin to prepare the code of a ranker that was created just now."""
        if self._preparer is not None:
            tell = partial(self._tell_watchers, live.name)
            live.preparation = self._preparer.begin(live.name, live.config, tell)

    def _tell_watchers(self, ranker: str) -> None:
        for changed in self._watchers.get(ranker, ()):
            changed.set()

    # ------------------------------------------------------------------- after a failure

    async def _recover(self) -> None:
        """Read the log again, as often as it takes; meanwhile nothing is accepted."""
        self.is_ready = self._is_broken = False
        while self._inbox:
            _, future = self._inbox.popleft()
            if not future.done():
                future.set_exception(StoreFailed("The log is being read again: try again."))
        pause = 0.05
        while self._reopen is not None and not self._stopping:
            try:
                await self._committer.begin(self._read_again)
            except (StoreError, OSError) as error:
                logger().error("The log cannot be read.", error=str(error))
                await asyncio.sleep(pause)
                pause = min(2.0 * pause, 5.0)
            else:
                self._take_up()
                self.is_ready = True
                logger().info("The log was read again.", rankers=len(self.engine.rankers))
                return

    def _take_up(self) -> None:
        """Go on with rankers that were read from the log.

        All feedback is waited for anew: how long nobody was here is not known for certain.
        """
        known = {} if self._preparer is None else self._preparer.known
        self._waits, moment = Waits(), self._clock()
        for name, live in self.engine.rankers.items():
            live.preparation = known.get(name)
            self._waits.begin(live, live.waiting, moment)

    def _read_again(self) -> None:
        gone = self.store.gone()
        if gone is not None:  # what is there now is another log
            raise StoreGone(gone)
        self._checking.stop()
        with suppress(StoreError):
            self.store.close()
        if self._reopen is not None:
            self.store = self._reopen()
            self._read_log(self.engine.most_waiting)

    def _read_log(self, most_waiting: int) -> None:
        self.engine = Engine(self.store, most_waiting=most_waiting)
        for live in self.engine.rankers.values():
            live.make_state()
        self._checking = LogCheck(self.store, self.engine.all())
        self._checking.wait(_CHECKED_FIRST)
        self._take_findings()

    def _take_findings(self) -> None:
        for ranker, why in self._checking.findings():
            if ranker is None:
                self.engine.refuse_all(why)
            else:
                self.engine.refuse(ranker, why)

    # ------------------------------------------------------------------- waits and snapshots

    async def _watch_waits(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._look_after_log()
            waits, due = self._waits, islice(self._waits.due(self._clock()), MOST_IN_A_GROUP)
            found = [live for name in due if (live := self.engine.rankers.get(name)) is not None]
            await asyncio.gather(*(self._expire(live) for live in found))
            for live in found:
                waits.look_again(live)

    async def _expire(self, live: LiveRanker) -> None:
        seqs = self.overdue(live)
        if seqs:
            with suppress(KeyholeError):
                await self.submit(Expire(live.name, tuple(seqs)))

    def _look_after_log(self) -> None:
        """Notice what happens to the log beside requests."""
        n_damaged = len(self.engine.damaged)
        self._take_findings()
        if len(self.engine.damaged) > n_damaged:
            for ranker in self.engine.damaged:
                self._tell_watchers(ranker)
        gone = self.store.gone()
        if gone is not None and self._gone is None:
            logger().error("The log is gone.", error=gone)
        elif gone is None and self._gone is not None:
            logger().info("The log is back.")
        self._gone = gone
        probing = self._probing
        if self._is_full and gone is None and (probing is None or probing.done()):
            moment = self._clock()
            if moment - self._probed >= _PROBE:
                self._probed, self._probing = moment, self._committer.begin(self._probe)

    def _probe(self) -> None:
        """Try whether there is room again: nobody asks for anything where it is not ready."""
        with suppress(StoreError):
            self.store.probe()
            self._is_full = False

    def overdue(self, live: LiveRanker) -> list[int]:
        """Return lists whose feedback is no longer waited for."""
        return self._waits.over(live, self._clock())

    def _due_snapshots(self, made: list[Made]) -> list[LiveRanker]:
        """Return rankers of which a snapshot is to be taken after these events."""
        due = []
        for name in {event.ranker for event, _ in made}:
            live = self.engine.rankers.get(name)
            if live is not None and live.seq - live.snapshot_at >= self._snapshot_every:
                live.snapshot_at = live.seq
                due.append(live)
        return due

    def _put_snapshots(self, rankers: list[LiveRanker]) -> None:
        self.store.put_snapshots([live.snapshot() for live in rankers])

    def _put_last_snapshots(self) -> None:
        rankers = self.engine.rankers.values()
        put_last_snapshots(self.store, rankers, self._snapshot_every)
