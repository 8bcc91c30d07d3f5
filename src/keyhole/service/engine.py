"""What the service decides: commands become events, and events become the state of rankers."""

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from keyhole.errors import InvalidInput, shown
from keyhole.service.answering import answer_to
from keyhole.service.batches import repeated_batch, show_many, told_again
from keyhole.service.commands import (
    Activate,
    Command,
    Configure,
    Expire,
    FeedbackReply,
    GiveFeedback,
    Judged,
    Rank,
    RankerReply,
    RankItem,
    RankMany,
    RankRequest,
)
from keyhole.service.errors import Conflict, NotFound, Preparing, StaleVersion, StoreDamaged
from keyhole.service.events import (
    Activated,
    Answered,
    Config,
    Event,
    Expired,
    Kind,
    Learned,
    Ranked,
    Rebased,
    body_bytes,
    body_of,
)
from keyhole.service.live import LiveRanker
from keyhole.service.showing import rank_reply, repeated, show
from keyhole.service.specs import changed_config, check_learnable, config_of
from keyhole.service.store.base import Store
from keyhole.version import __version__

MOST_WAITING = 100_000
"""Lists of one ranker whose feedback is awaited; the oldest are given up beyond it."""
_SLACK = 100
"""Where lists are given up for want of room, a share of one in so many is, so that few events are
about that."""
_MOST_GIVEN_UP = 1_000
"""Lists that one event gives up."""

Touched = tuple[str, str, str]
"""What a decision is about: a kind of thing, the ranker, and which one."""


class Tip(NamedTuple):
    """Where the next event of a ranker goes: what was committed, and what was decided since."""

    seq: int
    round: int
    n_waiting: int


Made = tuple[Event, Any]
"""An event with its body; None stands for a body that is to be read from it."""


class Decided(NamedTuple):
    """Events to append, the reply once they are applied, and which lists are given up by them."""

    made: tuple[Made, ...]
    reply: Callable[[], Any]
    given_up: tuple[Touched, ...] = ()


class Decision(NamedTuple):
    """What a command leads to: events to append, and the reply once they have been applied.

    ``keys`` are what no other decision may be about until then.
    """

    made: tuple[Made, ...]
    reply: Callable[[], Any]
    ranker: str
    keys: tuple[Touched, ...]


class Engine:
    """All rankers of a log, in memory.

    ``decide`` changes no ranker: what it decides is appended to the log, several decisions at a
    time, and only then applied and settled. More may be decided meanwhile: it follows what was
    decided before. Where appending fails, :meth:`forget` undoes all that was not applied. Used by
    one thread at a time.
    """

    def __init__(self, store: Store, *, most_waiting: int = MOST_WAITING) -> None:
        self.store = store
        self.most_waiting = most_waiting
        self.secret = store.secret()
        self._tips: dict[str, Tip] = {}
        self._touched: set[Touched] = set()
        self._n_open: dict[str, int] = {}
        """Decisions about each ranker that are not settled."""
        self.rankers = {name: recovered(store, name) for name in store.rankers()}
        for live in self.rankers.values():
            if live.learnt_by != __version__:
                self._rebase(live)

    def ranker(self, name: str) -> LiveRanker:
        """Return a ranker by its name, or raise."""
        live = self.rankers.get(name)
        if live is None:
            raise NotFound(f"There is no ranker {shown(name)}.")
        return live

    def usable(self, name: str) -> LiveRanker:
        """Return a ranker by its name, or raise where there is none or its code is not there."""
        live = self.ranker(name)
        if live.is_preparing and live.preparation is not None:
            raise Preparing(
                f"The code of ranker {shown(name)} has been prepared for "
                f"{live.preparation.seconds:.0f} s: come again in a moment."
            )
        return live

    def decide(self, command: Command, at: int) -> Decision | None:
        """Return what a command leads to at a time, or raise.

        None says that it can be decided only once others are settled: two that are about one list,
        or about one idempotency key, are decided one after the other; so is what is about a whole
        ranker, and what there is no room for yet.
        """
        keys = _keys_of(command)
        if self._n_open and self._must_wait(command, keys):
            return None
        decided = self._decide(command, at)
        if decided is None:
            return None
        made, reply, given_up = decided
        if made:
            keys += given_up
            self._touched.update(keys)
            self._n_open[command.ranker] = self._n_open.get(command.ranker, 0) + 1
        return Decision(made, reply, command.ranker, keys)

    def _must_wait(self, command: Command, keys: tuple[Touched, ...]) -> bool:
        if isinstance(command, Configure | Expire):
            return command.ranker in self._n_open
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
            case Activate():
                return self._activate(command, at)
            case Expire():
                return self._expire(command, at)
            case Configure():
                return self._configure(command, at)

    def apply(self, event: Event) -> None:
        """Fold in a committed event."""
        live = self.rankers.get(event.ranker)
        if live is None:
            live = self.rankers[event.ranker] = LiveRanker(event.ranker, self.store)
        live.apply(event)

    def apply_all(self, made: Iterable[Made]) -> None:
        """Fold in committed events, in their order."""
        by_ranker: dict[str, list[Made]] = {}
        for each in made:
            by_ranker.setdefault(each[0].ranker, []).append(each)
        for name, own in by_ranker.items():
            if name not in self.rankers:
                self.rankers[name] = LiveRanker(name, self.store)
            self.rankers[name].apply_all(own)

    def settle(self, decision: Decision) -> None:
        """Let others be about the same things, now that the event of a decision was applied."""
        if not decision.made:
            return
        ranker = decision.ranker
        self._touched.difference_update(decision.keys)
        self._n_open[ranker] -= 1
        if not self._n_open[ranker]:
            del self._n_open[ranker], self._tips[ranker]

    def forget(self) -> None:
        """Undo all decisions that are not settled: their events were not appended."""
        self._tips.clear()
        self._touched.clear()
        self._n_open.clear()

    def execute(self, command: Command, at: int | None = None) -> Any:
        """Decide, append and apply: what a service with one caller at a time does."""
        decision = self.decide(command, now() if at is None else at)
        if decision is None:
            raise RuntimeError("Commands must be executed one after the other.")
        if decision.made:
            try:
                self.store.append([event for event, _ in decision.made])
            except BaseException:
                self.forget()
                raise
            for event, _ in decision.made:
                self.apply(event)
        self.settle(decision)
        return decision.reply()

    # ------------------------------------------------------------------- each command

    def _configure(self, command: Configure, at: int) -> Decided:
        live = self.rankers.get(command.ranker)
        if command.if_match is not None and (live is None or live.version != command.if_match):
            have = "it does not exist" if live is None else f"it is {live.version}"
            raise StaleVersion(
                f"The version of ranker {command.ranker!r} must be {command.if_match}, but {have}: "
                f"read it again."
            )
        judged = command.judged or Judged(check_learnable(command.request))
        if live is None and command.ranker.endswith(".json"):
            raise InvalidInput(
                f"The name of a ranker must not end in .json, as its page's data does, got "
                f"{command.ranker!r}."
            )
        if live is None:
            config = config_of(command.request, command.ranker, self.secret)
        else:
            config = changed_config(live.config, command.request)
        config = msgspec.structs.replace(config, verdict=judged.verdict)
        if live is not None and config == live.config:
            return Decided((), live.reply)
        if live is not None and config.catalogue not in (None, live.config.catalogue):
            live.learner.with_items(config.catalogue or ())  # refuses what cannot be, now
        made = self._event(command.ranker, "config", config, at)

        def reply() -> RankerReply:
            return self.ranker(command.ranker).reply(created=live is None)

        return Decided((made,), reply)

    def _rank(self, command: Rank, at: int) -> Decided | None:
        live = self.usable(command.ranker)
        before = repeated(live, command)
        if before is not None:
            return Decided((), lambda: rank_reply(live, before, body_of(before)))
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

    def _rank_many(self, command: RankMany, at: int) -> Decided | None:
        """Show many lists as if one after the other, but that all are there or none is."""
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
        made = self._ranks(live.name, shown.noted(self._tip(live.name).seq), command.idem, at)

        def reply() -> list[RankItem | Exception]:
            return shown.replies(live, [event for event, _ in made])

        return Decided((*expired, *made), reply, given_up)

    def _room(
        self, live: LiveRanker, n_lists: int, at: int
    ) -> tuple[tuple[Made, ...], tuple[Touched, ...]] | None:
        """Give up the lists that were shown first, where more would wait than there is room for.

        None says that others must be settled first: they are about the lists to give up.
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
        least = min(over, _MOST_GIVEN_UP)  # more than that only after a restart with less room
        oldest = list(islice(free, min(over + self.most_waiting // _SLACK, _MOST_GIVEN_UP)))
        if len(oldest) < least:
            return None
        expired = Expired(tuple([seq for seq, _ in oldest]))
        return (self._event(name, "expire", expired, at),), tuple([key for _, key in oldest])

    def _feedback(self, command: GiveFeedback, at: int) -> Decided:
        live, request = self.usable(command.ranker), command.request
        seq = live.seq_of.get(command.event_id)
        if seq is not None:
            ranked = live.ranked(seq, live.waiting[seq])
            learned: Learned = "pending"
            if not ranked.teaches or request.status == "not_shown":
                learned = "unused"
        else:
            ranked = self._ranked_before(live, command.event_id)
            learned = "late"
        answered = answer_to(live, ranked, request, learned)
        if learned == "late":
            said = live.store.find(live.name, command.event_id, "feedback")
            if said is not None:
                return _said_before(said, answered)
        elif seq is not None:
            live.waiting[seq].ranked = ranked
        made = self._event(command.ranker, "feedback", answered, at, command.event_id)
        return Decided((made,), lambda: FeedbackReply(answered.learned, made[0].seq))

    def _ranked_before(self, live: LiveRanker, event_id: str) -> Ranked:
        """Return a list whose feedback is no longer awaited, or raise where there is none."""
        event = live.store.find(live.name, event_id, "rank")
        if event is None:
            raise NotFound(f"There is no event {shown(event_id)} of ranker {live.name!r}.")
        return body_of(event)

    def _activate(self, command: Activate, at: int) -> Decided:
        live = self.ranker(command.ranker)
        seq = live.seq_of.get(command.event_id)
        if seq is not None and live.waiting[seq].deferred:
            made = self._event(command.ranker, "activate", Activated(), at, command.event_id)
            return Decided((made,), lambda: None)
        if self._was_never_shown(live, seq, command.event_id):
            raise Conflict(
                f"Event {shown(command.event_id)} can no longer be activated: it was not in time."
            )
        return Decided((), lambda: None)

    def _was_never_shown(self, live: LiveRanker, seq: int | None, event_id: str) -> bool:
        """Return whether a deferred list was given up before anybody said that it was shown."""
        if not self._ranked_before(live, event_id).deferred or seq is not None:
            return False
        if live.store.find(live.name, event_id, "activate") is not None:
            return False
        said = live.store.find(live.name, event_id, "feedback")
        return said is None or body_of(said).learned == "late"

    def _expire(self, command: Expire, at: int) -> Decided:
        live = self.rankers.get(command.ranker)
        seqs = tuple(seq for seq in command.seqs if live is not None and seq in live.waiting)
        if not seqs:
            return Decided((), lambda: None)
        return Decided((self._event(command.ranker, "expire", Expired(seqs), at),), lambda: None)

    def _rebase(self, live: LiveRanker) -> None:
        """Write down a whole state where another version of the library takes over."""
        event, _ = self._event(live.name, "rebase", Rebased(live.kept_bytes(), __version__), now())
        self.store.append([event])
        live.apply(event)
        self.forget()

    def _tip(self, ranker: str) -> Tip:
        """Return where the next event of a ranker goes."""
        tip = self._tips.get(ranker)
        if tip is not None:
            return tip
        live = self.rankers.get(ranker)
        return Tip(0, 0, 0) if live is None else Tip(live.seq, live.round, len(live.waiting))

    def _event(
        self,
        ranker: str,
        kind: Kind,
        body: Config | Ranked | Answered | Activated | Expired | Rebased,
        at: int,
        key: str | None = None,
        idem: str | None = None,
    ) -> Made:
        """Return the next event of a ranker, and let the one after it follow.

        Its link is yet to come: the store gives it.
        """
        seq, round, n_waiting = self._tip(ranker)
        event = Event(ranker, seq + 1, kind, key, idem, at, body_bytes(body), b"")
        self._tips[ranker] = Tip(seq + 1, round + (kind == "rank"), n_waiting + _more_wait(body))
        return event, None if kind == "config" else body  # what is free in it comes back otherwise

    def _ranks(
        self, ranker: str, shown: list[tuple[Ranked, str]], idem: str | None, at: int
    ) -> list[Made]:
        """Return the next events of a ranker, all of them lists; the key is the first one's."""
        seq, round, n_waiting = self._tip(ranker)
        n_lists, made = len(shown), []
        for place, (ranked, event_id) in enumerate(shown, seq + 1):
            body = body_bytes(ranked)
            made.append((Event(ranker, place, "rank", event_id, idem, at, body, b""), ranked))
            idem = None
        self._tips[ranker] = Tip(seq + n_lists, round + n_lists, n_waiting + n_lists)
        return made


def _more_wait(
    body: Config | Ranked | Answered | Activated | Expired | Rebased,
) -> int:
    """Return how many more lists wait after an event, or how many fewer."""
    if isinstance(body, Ranked):
        return 1
    if isinstance(body, Expired):
        return -len(body.seqs)
    return -(isinstance(body, Answered) and body.learned != "late")


def _keys_of(command: Command) -> tuple[Touched, ...]:
    """Return what a command is about that no other decision may be about meanwhile."""
    match command:
        case GiveFeedback() | Activate():
            return (("event", command.ranker, command.event_id),)
        case Configure() | Expire():
            return (("ranker", command.ranker, ""),)
        case Rank():
            events = [command.request.event_id]
        case RankMany():
            events = [one.event_id for one in command.requests if isinstance(one, RankRequest)]
    keys = tuple([("event", command.ranker, name) for name in events if name is not None])
    return keys if command.idem is None else (("idem", command.ranker, command.idem), *keys)


def now() -> int:
    """Return the wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def recovered(store: Store, name: str) -> LiveRanker:
    """Return a ranker as its log says: from the newest snapshot that holds, or from the start."""
    live = LiveRanker(name, store)
    for snapshot in store.snapshots(name):
        try:
            live = LiveRanker.from_snapshot(snapshot, store)
        except StoreDamaged:
            continue  # a cache that does not hold is no loss: the log does
        break
    for event in store.events(name, after=live.seq):
        live.apply(event)
    return live


def _said_before(said: Event, answered: Answered) -> Decided:
    """Return the answer to feedback on a list that has some, or raise where it differs."""
    before: Answered = body_of(said)
    if (before.status, before.relevance) != (answered.status, answered.relevance):
        raise Conflict(f"Event {shown(said.key)} has other feedback already: the first one counts.")
    return Decided((), lambda: FeedbackReply(before.learned, said.seq, created=False))
