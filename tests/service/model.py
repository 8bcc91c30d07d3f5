"""What the service must do, in a hundred lines: no log, no groups, no snapshots, no disk."""

from dataclasses import dataclass, field
from typing import Any

from keyhole.contracts.lists import Impression
from keyhole.rankers import ranker


@dataclass
class Shown:
    """A list that was shown, and what became of it."""

    impression: Impression
    round: int
    deferred: bool
    asked: tuple[Any, ...]
    state: str = "waiting"
    said: tuple[str, tuple[float, ...]] | None = None
    learned: str = ""


@dataclass
class Model:
    """One ranker of a fixed list, by the library alone."""

    items: list[str]
    k: int
    missing: float | None
    seed: int = 1
    round: int = 0
    shown: dict[str, Shown] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.learner = ranker("keystone", items=self.items, k=self.k, seed=self.seed)

    def rank(self, event_id: str, idem: str | None, deferred: bool) -> list[str]:
        """Show the next list, under the id that the service has given it."""
        impression = self.learner.rank(round=self.round)
        self.shown[event_id] = Shown(impression, self.round, deferred, (deferred,))
        self.round += 1
        if idem is not None:
            self.keys[idem] = event_id
        return [str(item) for item in impression.items]

    def repeated(self, idem: str, deferred: bool) -> str | None:
        """Return the event of an idempotency key, or ``reused`` where it was of another request."""
        event_id = self.keys.get(idem)
        if event_id is not None and self.shown[event_id].asked != (deferred,):
            return "reused"
        return event_id

    def feedback(self, event_id: str, status: str, relevance: tuple[float, ...]) -> str:
        """Return ``pending``, ``late`` or ``unused``; ``same`` or ``conflict`` for a second one."""
        shown = self.shown[event_id]
        said = (status, (0.0,) * self.k if status == "none" else relevance)
        if shown.said is not None:
            return "same" if shown.said == said else "conflict"
        shown.said = said
        if shown.state == "expired":
            shown.learned = "late"
        elif status == "not_shown":
            shown.learned = "unused"
        else:
            shown.learned = "learned"
            self.learner.update(shown.impression, list(said[1]))
        shown.state = "answered" if shown.state == "waiting" else shown.state
        return shown.learned

    def activate(self, event_id: str) -> bool:
        """Return whether a list waits, or has waited, for feedback as one that was shown."""
        shown = self.shown[event_id]
        if shown.state == "expired" and shown.deferred:
            return False
        if shown.state == "waiting":
            shown.deferred = False
        return True

    def expire(self, event_id: str) -> None:
        """No longer wait for a list."""
        shown = self.shown[event_id]
        if shown.state != "waiting":
            return
        shown.state = "expired"
        if self.missing is not None and not shown.deferred:
            self.learner.update(shown.impression, [self.missing] * self.k)

    def change_items(self, items: list[str]) -> None:
        """Add and remove items by name."""
        if items != self.items:
            self.items = items
            self.learner = self.learner.with_items(items)

    def waiting(self) -> list[str]:
        """Return the lists whose feedback is awaited, in the order in which they were shown."""
        return [event_id for event_id, shown in self.shown.items() if shown.state == "waiting"]
