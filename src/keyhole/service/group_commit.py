"""Group commit: decides the commands of many callers, commits them together and applies them.

While the commit thread waits for the fsync of one group, the next group is decided and the
previous one is applied and answered. Under load one fsync serves many callers; a single caller
never waits for a group to fill; disk and processor work in parallel.
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
from keyhole.service.commands import Command, Configure, Expire, MeasureVerdict, Rename
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
"""The maximum number of commands in a group."""
_MOST_EVENTS = 512
"""Events after which a group of batches takes no other: a group is applied in one piece."""
SNAPSHOT_EVERY = 10_000
"""The least number of events of a ranker between two snapshots."""
_TICK = 0.25
"""Seconds between checks for lists that have expired."""
_PROBE = 1.0
"""Seconds between probes of a full disk."""
_CHECKED_FIRST = 2.0
"""Seconds that startup waits for the log check before it answers requests."""
_CREATING = (Configure, Rename)
T = TypeVar("T")


class ReplyReceiver(Protocol):
    """The receiver of a reply: a future, or a callback object. It must not raise."""

    def done(self) -> bool:
        """Return whether the caller has stopped waiting."""

    def set_result(self, result: Any, /) -> None:
        """Receive the result of a command."""

    def set_exception(self, exception: Exception, /) -> None:
        """Receive the error of a command."""


class _Group:
    """Decided commands to be committed together."""

    def __init__(self) -> None:
        self.decided: list[tuple[Command, Decision, ReplyReceiver]] = []
        self.made: list[Made] = []

    @property
    def events(self) -> list[Event]:
        """The events to append, in order."""
        return [event for event, _ in self.made]


class Desk:
    """The group committer: takes commands, and replies once their events are durable.

    Parameters
    ----------
    store
        The log, opened for writing.
    reopen
        Reopens the log after an I/O error; None if it cannot be reopened.
    clock
        A monotonic clock in seconds, which times the wait for feedback; the wall clock may be set.
    preparer
        Compiles the code of new rankers in child processes. Without one, the code is compiled in a
        thread while the ranker is created, which also delays other requests.
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
        """Called after every commit with its events and the seconds it took."""
        self._reopen = reopen
        self._clock = clock
        self._snapshot_every = snapshot_every
        self._inbox: deque[tuple[Command, ReplyReceiver]] = deque()
        self._next = _Group()
        self._is_writing = False
        self._is_learning = False
        """Whether a thread applies events."""
        self._is_broken = False
        self._probing: asyncio.Future[None] | None = None
        """The probe of a full disk in progress."""
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
        """A sentence on why the service cannot write, though it answers; None if it can."""
        full = "The disk is full: nothing is written until there is room for the log."
        return self.engine.damage or self._gone or (full if self._is_full else None)

    @property
    def log(self) -> Literal["checking", "checked", "damaged"]:
        """The progress of the log check; ``damaged`` if some ranker is not served."""
        if self.engine.damaged or self.engine.damage:
            return "damaged"
        return "checked" if self._checking.is_done else "checking"

    async def start(self) -> None:
        """Start to accept commands."""
        self._tasks = [asyncio.create_task(self._serve()), asyncio.create_task(self._watch_waits())]

    async def stop(self) -> None:
        """Commit the queued commands, write snapshots and stop; the store stays open."""
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
        """Return the reply to a command, once its events are committed."""
        if isinstance(command, Configure) and command.judged is None:
            command = await self._judged(command)
        future = asyncio.get_running_loop().create_future()
        self.put(command, future)
        reply = await future
        if isinstance(command, _CREATING) and reply.created:
            live = self.engine.ranker(reply.name)
            if self._preparer is not None and live.preparation is not None:
                await self._preparer.look(live.preparation)
                return msgspec.structs.replace(reply, code=live.preparation.reply())
        return reply

    def put(self, command: Command, reply: ReplyReceiver) -> None:
        """Queue a command that needs no preparation; the reply comes after its commit."""
        if self._stopping or not self.is_ready:
            raise StoreFailed("The service is not ready: retry.")
        if self._gone is not None:
            raise StoreGone(self._gone)
        self._inbox.append((command, reply))
        if self._is_writing:
            self._decide()  # the fsync runs in another thread
        else:
            self._wake.set()

    async def read(self, what: Callable[[], T]) -> T:
        """Call a function on rankers in a thread, during which no event is applied to them.

        It can read a large state without a copy. Events committed meanwhile are applied, and their
        callers answered, afterwards. Reads run one at a time, so a commit waits for at most one.
        """
        found: list[T] = []
        async with self._reading, self._still:
            await self._reader.begin(lambda: found.append(what()))
        return found[0]

    async def _judged(self, command: Configure) -> Configure:
        """Return the command with its observability verdict, computed in a thread.

        Afterwards the code that constructs the ranker is loaded; its code to rank and to learn is
        prepared once the ranker exists.
        """
        request, name, preparer = command.request, command.ranker, self._preparer
        judge = partial(check_learnable, request)
        make = partial(config_of, request, name, self.engine.secret)
        is_new = name not in self.engine.rankers
        if preparer is None:
            judged = MeasureVerdict(await asyncio.to_thread(judge))
            if is_new:
                await asyncio.to_thread(warm_up, make())
        else:
            judged = MeasureVerdict(await preparer.run(judge, request, name))
            if is_new:
                await preparer.run(make, request, name)
        return msgspec.structs.replace(command, judged=judged)

    async def subscribe(self, ranker: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the progress of a ranker, now and after each change, until the desk stops."""
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
        """Commit one group after the other; each is applied during the commit of the next."""
        written = _Group()
        while True:
            if self._is_broken:
                self._give_up(_Group(), StoreFailed("The log is being read again: retry."))
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
        """Commit the next group while finishing the previous one; return the one left to finish."""
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
                self._decide()  # commands that had to wait for the group before
                await writing
                self._is_full = False
                if self.on_commit is not None:
                    self.on_commit(events, time.perf_counter() - began)
        except StoreFull as error:
            self._is_full = True
            await self._finish(before)
            self._give_up(group, error)
        except Exception as error:  # after any error the state of the disk is unknown
            logger().error("A commit failed.", error=str(error), kind=type(error).__name__)
            await self._finish(before)
            self._give_up(group, StoreFailed("The log could not be written: retry."))
            self._is_broken = True
        finally:
            self._is_writing = False
        await self._finish(before)
        return group

    def _decide(self) -> None:
        """Decide the queued commands, except those that must wait for an earlier decision."""
        if not self._inbox or self._is_learning:
            return
        at, group = now(), self._next
        while (
            self._inbox and len(group.decided) < MOST_IN_A_GROUP and len(group.made) < _MOST_EVENTS
        ):
            command, future = self._inbox.popleft()
            if future.done():  # the caller disconnected before the decision
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
        """Apply a committed group and send its replies; a finished group is empty."""
        if not group.decided:
            return
        decided, group.decided = group.decided, []
        try:
            async with self._still:
                self._note_applied(await self._applied(group.made))
                await self._make_states(group.made)
        except Exception:  # a bug: the log has the events, so it is replayed
            logger().exception("Committed events could not be applied.")
            self._is_broken = True
            for _, _, future in decided:
                if not future.done():
                    future.set_exception(StoreFailed("The log is being read again: retry."))
            return
        for _, decision, future in decided:
            self.engine.settle(decision)
            if not future.done():
                future.set_result(decision.reply())
        due = self._due_snapshots(group.made)
        if due:  # taken from the live state, so no events may be applied meanwhile
            try:
                await self._committer.begin(partial(self._put_snapshots, due))
            except Exception as error:  # snapshots are a cache: the log is complete
                logger().warning("A snapshot could not be taken.", error=str(error))

    def _give_up(self, group: "_Group", error: KeyholeError) -> None:
        """Fail a group that was not committed; later commands are decided again."""
        self.engine.forget()
        for command, _, future in reversed(self._next.decided):
            self._inbox.appendleft((command, future))
        self._next = _Group()
        refused, group.decided = group.decided, []
        for _, _, future in refused:
            if not future.done():
                future.set_exception(error)

    async def _applied(self, made: list[Made]) -> dict[str, list[Made]]:
        """Apply committed events: in a thread if rankers learn from large lists, which takes long.

        Commands wait meanwhile, because deciding one reads what is being changed.
        """
        taught = {event.ranker for event, _ in made if event.kind in ("feedback", "expire")}
        rankers = self.engine.rankers
        if not any(rankers[name].learns_long for name in taught if name in rankers):
            return self.engine.apply_all(made)
        by_ranker: dict[str, list[Made]] = {}
        self._is_learning = True
        try:
            await self._reader.begin(lambda: by_ranker.update(self.engine.apply_all(made)))
        finally:
            self._is_learning = False
        return by_ranker

    def _note_applied(self, by_ranker: dict[str, list[Made]]) -> None:
        """Start feedback timers, and tell watchers what has changed."""
        moment = self._clock()
        for ranker, own in by_ranker.items():
            live = self.engine.rankers.get(ranker)
            if live is not None:  # not deleted
                begun: list[int] = []
                for event, _ in own:
                    if event.kind == "rank":
                        begun.append(event.seq)
                    elif event.kind == "activate":
                        begun.append(live.seq_of.get(str(event.key), 0))
                    elif event.kind == "config":
                        self._configured(live, event)
                self._waits.begin(live, begun, moment)
            self._tell_watchers(ranker)

    async def _make_states(self, made: list[Made]) -> None:
        """Allocate the state of new rankers in a thread, before their first request.

        No request can come earlier: the command that creates them is not settled.
        """
        for event in [event for event, _ in made if event.kind == "config"]:
            live = self.engine.rankers.get(event.ranker)
            if live is not None and live.begun == event.seq:
                await self._committer.begin(live.make_state)

    def _configured(self, live: LiveRanker, event: Event) -> None:
        self._waits.look_again(live)
        if event.seq == live.begun and live.preparation is None:
            self._prepare(live)

    def _prepare(self, live: LiveRanker) -> None:
        """Start to prepare the code of a new ranker."""
        if self._preparer is not None:
            tell = partial(self._tell_watchers, live.name)
            live.preparation = self._preparer.begin(live.name, live.config, tell)

    def _tell_watchers(self, ranker: str) -> None:
        for changed in self._watchers.get(ranker, ()):
            changed.set()

    # ------------------------------------------------------------------- after a failure

    async def _recover(self) -> None:
        """Read the log again, with retries until that succeeds; meanwhile refuse commands."""
        self.is_ready = self._is_broken = False
        while self._inbox:
            _, future = self._inbox.popleft()
            if not future.done():
                future.set_exception(StoreFailed("The log is being read again: retry."))
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
        """Take over rankers that were read from the log.

        All feedback timers start again: how long the service was down is not known for certain.
        """
        known = {} if self._preparer is None else self._preparer.known
        self._waits, moment = Waits(), self._clock()
        for name, live in self.engine.rankers.items():
            live.preparation = known.get(name)
            self._waits.begin(live, live.waiting, moment)

    def _read_again(self) -> None:
        gone = self.store.gone()
        if gone is not None:  # another file has taken its place
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
        """Check periodically for damage, a moved file and room on a full disk."""
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
        """Probe whether a full disk has room again: no requests arrive while it is not ready."""
        with suppress(StoreError):
            self.store.probe()
            self._is_full = False

    def overdue(self, live: LiveRanker) -> list[int]:
        """Return the lists that have expired without feedback."""
        return self._waits.over(live, self._clock())

    def _due_snapshots(self, made: list[Made]) -> list[LiveRanker]:
        """Return the rankers that are due for a snapshot after these events.

        A snapshot holds every waiting list. It comes after as many events at the earliest, so
        that its share of the cost of an event stays constant, and few requests wait for it.
        """
        due = []
        for name in {event.ranker for event, _ in made}:
            live = self.engine.rankers.get(name)
            if live is None:
                continue
            if live.seq - live.snapshot_at >= max(self._snapshot_every, len(live.waiting)):
                live.snapshot_at = live.seq
                due.append(live)
        return due

    def _put_snapshots(self, rankers: list[LiveRanker]) -> None:
        self.store.put_snapshots([live.snapshot() for live in rankers])

    def _put_last_snapshots(self) -> None:
        rankers = self.engine.rankers.values()
        put_last_snapshots(self.store, rankers, self._snapshot_every)
