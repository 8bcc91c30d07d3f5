"""What the service decides: commands become events, and events become the state of rankers."""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from keyhole.errors import InvalidInput, shown
from keyhole.service.commands import (
    Activate,
    Command,
    Configure,
    Expire,
    FeedbackReply,
    FeedbackRequest,
    GiveFeedback,
    Judged,
    Rank,
    RankerReply,
)
from keyhole.service.errors import (
    Conflict,
    NotFound,
    Preparing,
    RankerDamaged,
    StaleVersion,
    StoreDamaged,
)
from keyhole.service.events import (
    FIRST_LINK,
    Activated,
    Answered,
    Config,
    Event,
    Expired,
    Kind,
    Learned,
    Ranked,
    Rebased,
    Repeated,
    body_bytes,
    body_of,
    linked,
)
from keyhole.service.live import LiveRanker
from keyhole.service.logs import logger
from keyhole.service.recovering import recovered
from keyhole.service.showing import rank_reply, repeated, show
from keyhole.service.specs import changed_config, check_learnable, config_of
from keyhole.service.store.base import Store
from keyhole.version import __version__

Touched = tuple[str, str, str]
"""What a decision is about: a kind of thing, the ranker, and which one."""


class Tip(NamedTuple):
    """Where the next event of a ranker goes: what was committed, and what was decided since."""

    seq: int
    link: bytes
    round: int


Made = tuple[Event, Any]
"""An event with its body; None stands for a body that is to be read from it."""
Decided = tuple[Made | None, Callable[[], Any]]


class Decision(NamedTuple):
    """What a command leads to: an event to append, and the reply once it has been applied.

    ``keys`` are what no other decision may be about until then.
    """

    made: Made | None
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

    def __init__(self, store: Store) -> None:
        self.store = store
        self.secret = store.secret()
        self._tips: dict[str, Tip] = {}
        self._touched: set[Touched] = set()
        self._n_open: dict[str, int] = {}
        """Decisions about each ranker that are not settled."""
        self.rankers: dict[str, LiveRanker] = {}
        self.damaged: dict[str, str] = {}
        """Why rankers are not served."""
        self.damage: str | None = None
        """Why none is served."""
        for name in store.rankers():
            try:
                self.rankers[name] = recovered(store, name)
            except StoreDamaged as error:
                self.refuse(name, str(error))
        for live in list(self.rankers.values()):
            if live.learnt_by != __version__:
                self._rebase(live)

    def ranker(self, name: str) -> LiveRanker:
        """Return a ranker by its name, or raise."""
        self._check_whole(name)
        live = self.rankers.get(name)
        if live is None:
            raise NotFound(f"There is no ranker {shown(name)}.")
        return live

    def refuse(self, name: str, why: str) -> None:
        """Serve a ranker no more, whose log is not what was written."""
        if name in self.damaged:
            return
        self.damaged[name] = (
            f"{why} The ranker is not served any more: keyhole db check says whether there is more "
            "damage, and keyhole db restore brings a backup back."
        )
        if name not in self._n_open:
            self.rankers.pop(name, None)
        logger().error("A ranker is damaged and is not served.", ranker=name, error=why)

    def refuse_all(self, why: str) -> None:
        """Serve no ranker any more: the file itself is damaged, and writing would damage more."""
        if self.damage is None:
            self.damage = (
                f"{why} No ranker is served any more: keyhole db restore brings a backup back."
            )
            logger().error("The log is damaged and nothing is served.", error=why)

    def _check_whole(self, name: str) -> None:
        why = self.damage or self.damaged.get(name)
        if why is not None:
            raise RankerDamaged(why)

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
        ranker.
        """
        if self.damaged or self.damage:
            self._check_whole(command.ranker)
        keys = _keys_of(command)
        if self._n_open and self._must_wait(command, keys):
            return None
        try:
            made, reply = self._decide(command, at)
        except StoreDamaged as error:
            self.refuse(command.ranker, str(error))
            raise RankerDamaged(self.damaged[command.ranker]) from error
        if made is not None:
            self._touched.update(keys)
            self._n_open[command.ranker] = self._n_open.get(command.ranker, 0) + 1
        return Decision(made, reply, command.ranker, keys)

    def _must_wait(self, command: Command, keys: tuple[Touched, ...]) -> bool:
        if isinstance(command, Configure | Expire):
            return command.ranker in self._n_open
        touched = self._touched
        return ("ranker", command.ranker, "") in touched or not touched.isdisjoint(keys)

    def _decide(self, command: Command, at: int) -> Decided:
        match command:
            case Rank():
                return self._rank(command, at)
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
        if decision.made is None:
            return
        ranker = decision.ranker
        self._touched.difference_update(decision.keys)
        self._n_open[ranker] -= 1
        if not self._n_open[ranker]:
            del self._n_open[ranker], self._tips[ranker]
            if ranker in self.damaged:
                self.rankers.pop(ranker, None)

    def forget(self) -> None:
        """Undo all decisions that are not settled: their events were not appended."""
        self._tips.clear()
        self._touched.clear()
        self._n_open.clear()
        for name in self.damaged:
            self.rankers.pop(name, None)

    def execute(self, command: Command, at: int | None = None) -> Any:
        """Decide, append and apply: what a service with one caller at a time does."""
        decision = self.decide(command, now() if at is None else at)
        if decision is None:
            raise RuntimeError("Commands must be executed one after the other.")
        if decision.made is not None:
            event, _ = decision.made
            try:
                self.store.append([event])
            except BaseException:
                self.forget()
                raise
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
            return None, live.reply
        if live is not None and config.catalogue not in (None, live.config.catalogue):
            live.learner.with_items(config.catalogue or ())  # refuses what cannot be, now
        made = self._event(command.ranker, "config", config, at)

        def reply() -> RankerReply:
            return self.rankers[command.ranker].reply(created=live is None)

        return made, reply

    def _rank(self, command: Rank, at: int) -> Decided:
        live = self.usable(command.ranker)
        before = repeated(live, command)
        if before is not None:
            again = None
            if command.idem is not None and live.store.find_idem(live.name, command.idem) is None:
                body = Repeated(before.seq)
                again = self._event(command.ranker, "repeat", body, at, idem=command.idem)
            return again, lambda: rank_reply(live, before, body_of(before))
        ranked, event_id = show(live, command, self._tip(command.ranker).round, self.secret)
        made = self._event(command.ranker, "rank", ranked, at, event_id, command.idem)
        return made, lambda: rank_reply(live, made[0], ranked)

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
        answered = _answer(live, ranked, request, learned)
        if learned == "late":
            said = live.found(command.event_id, "feedback")
            if said is not None:
                return _said_before(said, answered)
        made = self._event(command.ranker, "feedback", answered, at, command.event_id)
        return made, lambda: FeedbackReply(answered.learned, made[0].seq)

    def _ranked_before(self, live: LiveRanker, event_id: str) -> Ranked:
        """Return a list whose feedback is no longer awaited, or raise where there is none."""
        event = live.found(event_id, "rank")
        if event is None:
            raise NotFound(f"There is no event {shown(event_id)} of ranker {live.name!r}.")
        return body_of(event)

    def _activate(self, command: Activate, at: int) -> Decided:
        live = self.ranker(command.ranker)
        seq = live.seq_of.get(command.event_id)
        if seq is not None and live.waiting[seq].deferred:
            made = self._event(command.ranker, "activate", Activated(), at, command.event_id)
            return made, lambda: None
        if self._was_never_shown(live, seq, command.event_id):
            raise Conflict(
                f"Event {shown(command.event_id)} can no longer be activated: it was not in time."
            )
        return None, lambda: None

    def _was_never_shown(self, live: LiveRanker, seq: int | None, event_id: str) -> bool:
        """Return whether a deferred list was given up before anybody said that it was shown."""
        if not self._ranked_before(live, event_id).deferred or seq is not None:
            return False
        if live.found(event_id, "activate") is not None:
            return False
        said = live.found(event_id, "feedback")
        return said is None or body_of(said).learned == "late"

    def _expire(self, command: Expire, at: int) -> Decided:
        live = self.rankers.get(command.ranker)
        seqs = tuple(seq for seq in command.seqs if live is not None and seq in live.waiting)
        if not seqs:
            return None, lambda: None
        return self._event(command.ranker, "expire", Expired(seqs), at), lambda: None

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
        return Tip(0, FIRST_LINK, 0) if live is None else Tip(live.seq, live.link, live.round)

    def _event(
        self,
        ranker: str,
        kind: Kind,
        body: Config | Ranked | Repeated | Answered | Activated | Expired | Rebased,
        at: int,
        key: str | None = None,
        idem: str | None = None,
    ) -> Made:
        """Return the next event of a ranker, and let the one after it follow."""
        seq, link, round = self._tip(ranker)
        loose = Event(ranker, seq + 1, kind, key, idem, at, body_bytes(body), b"")
        event = linked(link, loose)
        self._tips[ranker] = Tip(seq + 1, event.link, round + (kind == "rank"))
        return event, None if kind == "config" else body  # what is free in it comes back otherwise


def _keys_of(command: Command) -> tuple[Touched, ...]:
    """Return what a command is about that no other decision may be about meanwhile."""
    match command:
        case GiveFeedback() | Activate():
            return (("event", command.ranker, command.event_id),)
        case Configure() | Expire():
            return (("ranker", command.ranker, ""),)
    if command.idem is None and command.request.event_id is None:
        return ()
    named = (("idem", command.idem), ("event", command.request.event_id))
    return tuple((kind, command.ranker, name) for kind, name in named if name is not None)


def now() -> int:
    """Return the wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def _answer(
    live: LiveRanker, ranked: Ranked, request: FeedbackRequest, learned: Learned
) -> Answered:
    """Return feedback as the log keeps it, or raise."""
    k = ranked.k
    relevance: tuple[float, ...] = ()
    if request.status == "observed":
        relevance = tuple(float(value) for value in request.relevance or ())
        largest = float(live.config.request.get("max_grade", 1.0))
        if len(relevance) != k:
            raise InvalidInput(
                f"`relevance` must be {k} number{'s' * (k != 1)}, one for each of the first items "
                f"shown, got {len(relevance)}."
            )
        if relevance and max(relevance) > largest:
            raise InvalidInput(
                f"`relevance` must be at most max_grade={largest:g}, got {max(relevance):g}."
            )
    elif request.relevance is not None:
        raise InvalidInput(f"`relevance` must be left out where status is {request.status}.")
    elif request.status == "none":
        relevance = (0.0,) * k
    return Answered(request.status, relevance, learned, _truth(live, ranked, request))


def _truth(live: LiveRanker, ranked: Ranked, request: FeedbackRequest) -> tuple[float, ...] | None:
    """Return the relevance of every item, where a simulation tells it, or raise."""
    if request.truth is None:
        return None
    if not live.config.simulation:
        raise InvalidInput("`truth` must be left out where a ranker is not for simulation.")
    names = live.names_of(ranked)
    if set(request.truth) != set(names):
        raise InvalidInput(f"`truth` must name all of the {len(names)} items of the list.")
    return tuple(float(request.truth[name]) for name in names)


def _said_before(said: Event, answered: Answered) -> Decided:
    """Return the answer to feedback on a list that has some, or raise where it differs."""
    before: Answered = body_of(said)
    if (before.status, before.relevance) != (answered.status, answered.relevance):
        raise Conflict(f"Event {shown(said.key)} has other feedback already: the first one counts.")
    return None, lambda: FeedbackReply(before.learned, said.seq, created=False)
