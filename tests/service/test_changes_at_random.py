"""Whatever is done to rankers, and whenever one restarts between: the log leads to the same."""

import random
from contextlib import suppress

import pytest

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import (
    Activate,
    Configure,
    Delete,
    Expire,
    FeedbackRequest,
    GiveFeedback,
    GiveMany,
    Rank,
    RankerRequest,
    RankMany,
    RankRequest,
    Rename,
    Reset,
)
from keyhole.service.engine import Engine
from keyhole.service.replay import check_ranker
from keyhole.service.store.memory import MemoryStore
from tests.service.desks import state_of

NAMES = ("cats", "dogs", "owls")
N_STEPS = 150
REPEATED = ("again", "and again")


class Story:
    """Commands by chance; those that are refused change nothing."""

    def __init__(self, number):
        self.dice = random.Random(number)
        self.store = MemoryStore()
        self.restart()
        self.shown: list[tuple[str, str]] = []

    def restart(self):
        self.engine = Engine(self.store, most_waiting=12)

    def config(self):
        dice = self.dice
        return RankerRequest(
            items=[f"i{number}" for number in sorted(dice.sample(range(6), dice.randint(2, 5)))],
            mode=dice.choice(("online", "apprentice", "frozen")),
            wait_seconds=dice.choice((5.0, 600.0)),
            seed=1,
        )

    def request(self):
        dice = self.dice
        event_id = dice.choice((*REPEATED, None, None, None))
        return RankRequest(deferred=dice.random() < 0.3, event_id=event_id)

    def feedback(self):
        name, event_id = self.dice.choice(self.shown or [("cats", "nothing")])
        said = FeedbackRequest(relevance=[float(self.dice.random() < 0.5)])
        return GiveFeedback(name, event_id, said)

    def command(self):  # noqa: PLR0911 - one return for each kind
        dice, name = self.dice, self.dice.choice(NAMES)
        idem = dice.choice((*REPEATED, None, None))
        match dice.randrange(14):
            case 0 | 1 | 2:
                return Rank(name, self.request(), idem)
            case 3 | 4:
                return RankMany(name, [self.request() for _ in range(dice.randint(1, 4))], idem)
            case 5 | 6 | 7:
                return self.feedback()
            case 8:
                said = [self.feedback() for _ in range(4)]
                return GiveMany(name, {each.event_id: each.request for each in said})
            case 9:
                return Activate(*dice.choice(self.shown or [(name, "nothing")]))
            case 10:
                waiting = list(self.engine.rankers[name].waiting) if self.knows(name) else []
                return Expire(name, tuple(waiting[:1]))
            case 11:
                return Reset(name)
            case 12:
                return Rename(name, dice.choice(NAMES))
        return Delete(name) if dice.random() < 0.5 else Configure(name, self.config())

    def knows(self, name):
        return name in self.engine.rankers

    def step(self):
        if self.dice.random() < 0.1:
            for live in self.engine.rankers.values():
                self.store.put_snapshot(live.snapshot())
        if self.dice.random() < 0.1:
            self.restart()
        for name in NAMES:
            if not self.knows(name) and self.dice.random() < 0.2:
                self.engine.execute(Configure(name, self.config()))
        command = self.command()
        with suppress(KeyholeError):
            reply = self.engine.execute(command)
            replies = reply if isinstance(command, RankMany) else [reply]
            if isinstance(command, Rank | RankMany):
                ids = [getattr(each, "event_id", None) for each in replies]
                self.shown += [(command.ranker, each) for each in ids if each is not None]


@pytest.mark.parametrize("number", range(20))
def test_the_log_leads_to_what_is_served_whatever_was_done_and_when_it_was_restarted(number):
    story = Story(number)
    for _ in range(N_STEPS):
        story.step()
    assert not story.engine.damaged
    for name in story.store.rankers():
        assert check_ranker(story.store, name).problems == ()
    whole = MemoryStore()
    for name in story.store.rankers():
        whole.append(list(story.store.events(name)))
    again = Engine(whole)
    assert again.rankers.keys() == story.engine.rankers.keys()
    for name in again.rankers:
        assert state_of(again, name) == state_of(story.engine, name)
