"""The engine: turns commands into events, and applies committed events to rankers."""

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from keyhole.base.errors import InvalidInput, KeyholeError, shown
from keyhole.base.version import __version__
from keyhole.service.commands import (
    Activate,
    Command,
    Configure,
    Delete,
    Expire,
    FeedbackReply,
    GiveFeedback,
    GiveMany,
    OfWhole,
    Rank,
    RankerReply,
    RankItem,
    RankMany,
    RankRequest,
    Rename,
    Reset,
)
from keyhole.service.errors import (
    ConflictingRequest,
    NoSuchResource,
    Preparing,
    RankerDamaged,
    StoreDamaged,
    WasDeleted,
)
from keyhole.service.events import (
    Activated,
    Answered,
    Deleted,
    Event,
    Expired,
    Kind,
    Ranked,
    Rebased,
    Repeated,
    body_bytes,
    body_of,
)
from keyhole.service.feedback import answer_of, said_before, was_never_shown
from keyhole.service.rank_batches import repeated_batch, show_many, told_again
from keyhole.service.ranker_changes import (
    check_version,
    configured,
    deleted_sentence,
    moved,
    restarted,
)
from keyhole.service.ranker_state import LiveRanker
from keyhole.service.ranking import rank_reply, repeated, show
from keyhole.service.recovery import recovered
from keyhole.service.store.base import Store
from keyhole.service.structured_logs import logger

MOST_WAITING = 100_000
"""The maximum number of lists per ranker that wait for feedback; beyond it the oldest expire."""
_SLACK = 100
"""At the limit, one in this many waiting lists expires at once, so expire events stay rare."""
_MOST_GIVEN_UP = 1_000
"""The maximum number of lists in one expire event."""

Touched = tuple[str, str, str]
"""A resource that a decision locks: its kind, the ranker and its id."""


class RankerTip(NamedTuple):
    """The end of a ranker's log, counting decided events that are not committed yet."""

    seq: int
    round: int
    n_waiting: int


Made = tuple[Event, Any]
"""An event with its body; None: decode the body from the event."""


class Decided(NamedTuple):
    """Events to append, the reply once they are applied, and the lists that they expire."""

    made: tuple[Made, ...]
    reply: Callable[[], Any]
    given_up: tuple[Touched, ...] = ()


class Decision(NamedTuple):
    """The outcome of a command: events to append, and the reply once they have been applied.

    ``keys`` are locked until then: no other decision may touch them.
    """

    made: tuple[Made, ...]
    reply: Callable[[], Any]
    rankers: tuple[str, ...]
    """The rankers whose logs the events extend."""
    keys: tuple[Touched, ...]


class Engine:
    """All rankers of a log, in memory.

    ``decide`` changes no ranker. Its events are appended to the log, several decisions at a time,
    and only then applied and settled; further decisions may follow meanwhile. If appending fails,
    :meth:`forget` undoes every decision that was not applied. Not thread-safe.
    """

    def __init__(self, store: Store, *, most_waiting: int = MOST_WAITING) -> None:
        self.store = store
        self.most_waiting = most_waiting
        self.secret = store.secret()
        self._tips: dict[str, RankerTip] = {}
        self._touched: set[Touched] = set()
        self._n_open: dict[str, int] = {}
        """The number of unsettled decisions per ranker."""
        self.rankers: dict[str, LiveRanker] = {}
        self.damaged: dict[str, str] = {}
        """Damaged rankers, which are not served, and the reason."""
        self.damage: str | None = None
        """The reason why no ranker is served, if the whole log is damaged."""
        self.gone: dict[str, LiveRanker] = {}
        """Deleted rankers: a new ranker of the same name continues their log."""
        for name in store.rankers():
            try:
                live = recovered(store, name)
            except StoreDamaged as error:
                self.refuse(name, str(error))
            else:
                (self.rankers if live.gone is None else self.gone)[name] = live
        for live in list(self.rankers.values()):
            if live.learnt_by != __version__:
                self._rebase(live)

    def ranker(self, name: str) -> LiveRanker:
        """Return a ranker by name, or raise :class:`NoSuchResource`."""
        self._check_whole(name)
        live = self.rankers.get(name)
        if live is None:
            gone = self.gone.get(name)
            if gone is not None and gone.gone is not None:
                raise WasDeleted(deleted_sentence(name, gone.gone))
            raise NoSuchResource(f"There is no ranker {shown(name)}.")
        return live

    def all(self) -> list[LiveRanker]:
        """Return all rankers with a log, including deleted ones."""
        return [*self.rankers.values(), *self.gone.values()]

    @property
    def names(self) -> list[str]:
        """The names of all rankers that exist, including damaged ones."""
        return list({**self.rankers, **self.damaged})

    def refuse(self, name: str, why: str) -> None:
        """Stop serving a ranker whose log is damaged."""
        if name in self.damaged:
            return
        self.damaged[name] = (
            f"{why} The ranker is no longer served: keyhole db check shows whether there is more "
            "damage, and keyhole db restore restores a backup."
        )
        if name not in self._n_open:
            self.rankers.pop(name, None)
        logger().error("A ranker is damaged and no longer served.", ranker=name, error=why)

    def refuse_all(self, why: str) -> None:
        """Stop serving all rankers: the file is damaged, and writing could make it worse."""
        if self.damage is None:
            self.damage = (
                f"{why} No ranker is served any more: keyhole db restore restores a backup."
            )
            logger().error("The log is damaged and nothing is served.", error=why)

    def _check_whole(self, name: str) -> None:
        why = self.damage or self.damaged.get(name)
        if why is not None:
            raise RankerDamaged(why)

    def usable(self, name: str) -> LiveRanker:
        """Return a ranker by name, or raise if it does not exist or its code is not ready."""
        live = self.ranker(name)
        if live.is_preparing and live.preparation is not None:
            raise Preparing(
                f"The code of ranker {shown(name)} has been compiling for "
                f"{live.preparation.seconds:.0f} s: retry in a moment."
            )
        return live

    def decide(self, command: Command, at: int) -> Decision | None:
        """Return the decision on a command at a time, or raise.

        None: the command must wait until earlier decisions are settled. That serialises commands on
        the same list, on the same idempotency key and on a whole ranker, and those that need room
        among the waiting lists.
        """
        if self.damaged or self.damage:
            self._check_whole(command.ranker)
        keys = _keys_of(command)
        if self._n_open and self._must_wait(command, keys):
            return None
        try:
            decided = self._decide(command, at)
        except StoreDamaged as error:
            self.refuse(command.ranker, str(error))
            raise RankerDamaged(self.damaged[command.ranker]) from error
        if decided is None:
            return None
        made, reply, given_up = decided
        rankers = (command.ranker, command.to) if isinstance(command, Rename) else (command.ranker,)
        decision = Decision(made, reply, rankers, keys + given_up)
        if made:
            self._touched.update(decision.keys)
            for ranker in rankers:
                self._n_open[ranker] = self._n_open.get(ranker, 0) + 1
        return decision

    def _must_wait(self, command: Command, keys: tuple[Touched, ...]) -> bool:
        if isinstance(command, OfWhole):
            to = command.to if isinstance(command, Rename) else command.ranker
            return command.ranker in self._n_open or to in self._n_open
        touched = self._touched
        return ("ranker", command.ranker, "") in touched or not touched.isdisjoint(keys)

    def _decide(self, command: Command, at: int) -> Decided | None:
        match command:
            case Rank():
                return self._rank(command, at)
            case RankMany():
                return self._rank_many(command, at)
            case GiveFeedback():
                return self._feedback(command, at)
            case GiveMany():
                return self._feedback_many(command, at)
            case Activate():
                return self._activate(command, at)
        return self._decide_of_whole(command, at)

    def apply(self, event: Event) -> None:
        """Apply a committed event."""
        self.apply_all([(event, None)])

    def apply_all(self, made: Iterable[Made]) -> dict[str, list[Made]]:
        """Apply committed events in order, and return them by ranker."""
        by_ranker: dict[str, list[Made]] = {}
        for each in made:
            by_ranker.setdefault(each[0].ranker, []).append(each)
        for name, own in by_ranker.items():
            live = self.rankers.get(name) or self.gone.pop(name, None)
            if live is None:
                live = LiveRanker(name, self.store)
            self.rankers[name] = live
            live.apply_all(own)
            if live.gone is not None:
                self.gone[name] = self.rankers.pop(name)
        return by_ranker

    def settle(self, decision: Decision) -> None:
        """Release the locks of a decision whose events have been applied."""
        if not decision.made:
            return
        self._touched.difference_update(decision.keys)
        for ranker in decision.rankers:
            self._n_open[ranker] -= 1
            if not self._n_open[ranker]:
                del self._n_open[ranker], self._tips[ranker]
                if ranker in self.damaged:
                    self.rankers.pop(ranker, None)

    def forget(self) -> None:
        """Undo all unsettled decisions: their events were not appended."""
        self._tips.clear()
        self._touched.clear()
        self._n_open.clear()
        for name in self.damaged:
            self.rankers.pop(name, None)

    def execute(self, command: Command, at: int | None = None) -> Any:
        """Decide, append and apply one command, without group commit."""
        decision = self.decide(command, now() if at is None else at)
        if decision is None:
            raise RuntimeError("execute must be called with no decision pending.")
        if decision.made:
            try:
                self.store.append([event for event, _ in decision.made])
            except BaseException:
                self.forget()
                raise
            self.apply_all(decision.made)
        self.settle(decision)
        return decision.reply()

    # ------------------------------------------------------------------- each command

    def _configure(self, command: Configure, at: int) -> Decided:
        live = self.rankers.get(command.ranker)
        config = configured(live, command, self.secret, fresh=command.ranker in self.gone)
        if config is None:
            return Decided((), self.ranker(command.ranker).reply)
        made = self._event(command.ranker, "config", config, at)

        def reply() -> RankerReply:
            return self.rankers[command.ranker].reply(created=live is None)

        return Decided((made,), reply)

    def _decide_of_whole(self, command: OfWhole, at: int) -> Decided:
        match command:
            case Expire():
                return self._expire(command, at)
            case Configure():
                return self._configure(command, at)
            case Reset():
                return self._reset(command, at)
            case Rename():
                return self._rename(command, at)
            case Delete():
                return self._delete(command, at)

    def _reset(self, command: Reset, at: int) -> Decided:
        live = self.ranker(command.ranker)
        check_version(live, command)
        made = self._event(command.ranker, "config", restarted(live, command, self.secret), at)
        return Decided((made,), live.reply)

    def _delete(self, command: Delete, at: int) -> Decided:
        check_version(self.ranker(command.ranker), command)
        made = self._event(command.ranker, "delete", Deleted(by=command.by), at)
        return Decided((made,), lambda: None)

    def _rename(self, command: Rename, at: int) -> Decided:
        live, to = self.ranker(command.ranker), command.to
        check_version(live, command)
        self._check_whole(to)
        if to in self.rankers:
            raise ConflictingRequest(
                f"There is a ranker {shown(to)} already: delete it, or give another name."
            )
        config, rebased = moved(live, command, self._tip(to).seq)
        made = self._event(command.ranker, "delete", Deleted(to, command.by), at)
        first = self._event(to, "config", config, at)
        second = self._event(to, "rebase", rebased, at)
        return Decided((made, first, second), lambda: self.ranker(to).reply(created=True))

    def _rank(self, command: Rank, at: int) -> Decided | None:
        live = self.usable(command.ranker)
        before = repeated(live, command)
        if before is not None:
            return self._again(live, command, before, at)
        ranked, event_id = show(
            live,
            command.request,
            self._tip(command.ranker).round,
            self.secret,
            is_keyed=command.idem is not None,
        )
        room = self._room(live, 1, at)
        if room is None:
            return None
        made = self._event(command.ranker, "rank", ranked, at, event_id, command.idem)
        expired, given_up = room
        return Decided((*expired, made), lambda: rank_reply(live, made[0], ranked), given_up)

    def _again(self, live: LiveRanker, command: Rank, before: Event, at: int) -> Decided:
        """Answer a repeated request; log its idempotency key if it is a new one."""
        made: tuple[Made, ...] = ()
        if command.idem is not None and live.store.find_idem(live.name, command.idem) is None:
            body = Repeated(before.seq)
            made = (self._event(command.ranker, "repeat", body, at, idem=command.idem),)
        return Decided(made, lambda: rank_reply(live, before, body_of(before)))

    def _rank_many(self, command: RankMany, at: int) -> Decided | None:
        """Show many lists like single requests in a row, but all or none of them."""
        live, n_lists = self.usable(command.ranker), len(command.requests)
        if n_lists > self.most_waiting:
            raise InvalidInput(
                f"A batch must have at most max_waiting={self.most_waiting} requests, got "
                f"{n_lists}."
            )
        before = repeated_batch(live, command)
        if before is not None:
            return Decided((), lambda: told_again(live, before))
        tip = self._tip(command.ranker)
        shown = show_many(live, command, tip.round, self.secret)
        room = self._room(live, len(shown.new), at)
        if room is None:
            return None
        expired, given_up = room
        noted = shown.noted(self._tip(live.name).seq)
        made = self._events(live.name, "rank", noted, at, command.idem)

        def reply() -> list[RankItem | Exception]:
            return shown.replies(live, [event for event, _ in made])

        again = shown.repeated
        if again is not None:
            kept = (self._event(live.name, "repeat", again, at, idem=command.idem),)
            return Decided(kept, reply)
        return Decided((*expired, *made), reply, given_up)

    def _room(
        self, live: LiveRanker, n_lists: int, at: int
    ) -> tuple[tuple[Made, ...], tuple[Touched, ...]] | None:
        """Return the expire event of the oldest waiting lists, if new lists would exceed the limit.

        None: decisions on those lists must be settled first.
        """
        over = self._tip(live.name).n_waiting + n_lists - self.most_waiting
        if over <= 0:
            return (), ()
        touched, name = self._touched, live.name
        free = (
            (seq, ("event", name, waited.event_id))
            for seq, waited in live.waiting.items()
            if ("event", name, waited.event_id) not in touched
        )
        least = min(over, _MOST_GIVEN_UP)  # more only after a restart with a lower limit
        oldest = list(islice(free, min(over + self.most_waiting // _SLACK, _MOST_GIVEN_UP)))
        if len(oldest) < least:
            return None
        expired = Expired(tuple([seq for seq, _ in oldest]))
        return (self._event(name, "expire", expired, at),), tuple([key for _, key in oldest])

    def _feedback(self, command: GiveFeedback, at: int) -> Decided:
        live = self.usable(command.ranker)
        answered = answer_of(live, command.event_id, command.request)
        if isinstance(answered, Event):
            return Decided((), lambda: said_before(live, answered))
        made = self._event(command.ranker, "feedback", answered, at, command.event_id)
        noted = made[0].seq
        return Decided((made,), lambda: FeedbackReply(live.outcome(answered, noted), noted))

    def _feedback_many(self, command: GiveMany, at: int) -> Decided:
        """Note feedback on many lists; each exception is the reply of its list alone."""
        live = self.usable(command.ranker)
        became: list[Answered | Event | Exception] = []
        new: list[tuple[msgspec.Struct, str]] = []
        for event_id, request in command.answers.items():
            try:
                answered = answer_of(live, event_id, request)
            except StoreDamaged:
                raise
            except KeyholeError as error:
                became.append(error)
                continue
            became.append(answered)
            if isinstance(answered, Answered):
                new.append((answered, event_id))
        made = self._events(live.name, "feedback", new, at)

        def reply() -> list[FeedbackReply | Exception]:
            seqs, outcome = iter([event.seq for event, _ in made]), live.outcome
            return [
                FeedbackReply(outcome(what, seq := next(seqs)), seq)
                if isinstance(what, Answered)
                else said_before(live, what)
                if isinstance(what, Event)
                else what
                for what in became
            ]

        return Decided(tuple(made), reply)

    def _activate(self, command: Activate, at: int) -> Decided:
        live = self.ranker(command.ranker)
        seq = live.seq_of.get(command.event_id)
        if seq is not None and live.waiting[seq].deferred:
            made = self._event(command.ranker, "activate", Activated(), at, command.event_id)
            return Decided((made,), lambda: None)
        if was_never_shown(live, seq, command.event_id):
            raise ConflictingRequest(
                f"Event {shown(command.event_id)} can no longer be activated: it has expired."
            )
        return Decided((), lambda: None)

    def _expire(self, command: Expire, at: int) -> Decided:
        live = self.rankers.get(command.ranker)
        seqs = tuple(seq for seq in command.seqs if live is not None and seq in live.waiting)
        if not seqs:
            return Decided((), lambda: None)
        return Decided((self._event(command.ranker, "expire", Expired(seqs), at),), lambda: None)

    def _rebase(self, live: LiveRanker) -> None:
        """Log the whole state before a new version of the library takes over."""
        event, _ = self._event(live.name, "rebase", Rebased(live.kept_bytes(), __version__), now())
        self.store.append([event])
        live.apply(event)
        self.forget()

    def _tip(self, ranker: str) -> RankerTip:
        """Return the end of a ranker's log, decided events included."""
        tip = self._tips.get(ranker)
        if tip is not None:
            return tip
        live = self.rankers.get(ranker) or self.gone.get(ranker)
        return (
            RankerTip(0, 0, 0)
            if live is None
            else RankerTip(live.seq, live.round, len(live.waiting))
        )

    def _event(
        self,
        ranker: str,
        kind: Kind,
        body: msgspec.Struct,
        at: int,
        key: str | None = None,
        idem: str | None = None,
    ) -> Made:
        """Return the next event of a ranker and advance the tip.

        The store fills in its hash link.
        """
        seq, round, n_waiting = self._tip(ranker)
        event = Event(ranker, seq + 1, kind, key, idem, at, body_bytes(body), b"")
        self._tips[ranker] = RankerTip(
            seq + 1, round + (kind == "rank"), n_waiting + _more_wait(body)
        )
        return event, None if kind == "config" else body  # free-form settings change when decoded

    def _events(
        self,
        ranker: str,
        kind: Kind,
        bodies: Sequence[tuple[msgspec.Struct, str]],
        at: int,
        idem: str | None = None,
    ) -> list[Made]:
        """Return the next events of a ranker, given bodies and keys, and advance the tip.

        The idempotency key belongs to the first.
        """
        seq, round, n_waiting = self._tip(ranker)
        made: list[Made] = []
        for place, (body, key) in enumerate(bodies, seq + 1):
            made.append((Event(ranker, place, kind, key, idem, at, body_bytes(body), b""), body))
            n_waiting += _more_wait(body)
            idem = None
        if made:
            n_ranked = len(made) if kind == "rank" else 0
            self._tips[ranker] = RankerTip(seq + len(made), round + n_ranked, n_waiting)
        return made


def _more_wait(body: msgspec.Struct) -> int:
    """Return by how much an event changes the number of waiting lists."""
    if isinstance(body, Ranked):
        return 1
    if isinstance(body, Expired):
        return -len(body.seqs)
    return -(isinstance(body, Answered) and body.learned != "late")


def _keys_of(command: Command) -> tuple[Touched, ...]:
    """Return the resources that a command locks."""
    match command:
        case Rank():
            events = [command.request.event_id]
        case RankMany():
            events = [one.event_id for one in command.requests if isinstance(one, RankRequest)]
        case GiveFeedback() | Activate():
            return (("event", command.ranker, command.event_id),)
        case GiveMany():
            return tuple([("event", command.ranker, event_id) for event_id in command.answers])
        case Rename():
            return ("ranker", command.ranker, ""), ("ranker", command.to, "")
        case Configure() | Reset() | Delete() | Expire():
            return (("ranker", command.ranker, ""),)
    keys = tuple([("event", command.ranker, name) for name in events if name is not None])
    return keys if command.idem is None else (("idem", command.ranker, command.idem), *keys)


def now() -> int:
    """Return the wall clock in milliseconds."""
    return time.time_ns() // 1_000_000
