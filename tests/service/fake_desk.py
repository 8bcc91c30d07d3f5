"""A desk that answers as told: what HTTP does with replies and with failures."""

import asyncio

from keyhole.service.commands import (
    Activate,
    Configure,
    FeedbackReply,
    GiveFeedback,
    Policy,
    Rank,
    RankerReply,
    RankReply,
    StateReply,
)
from keyhole.service.errors import NotFound


class FakeRanker:
    def __init__(self, name, request):
        self.name, self.request = name, request
        self.seq, self.round, self.version, self.waiting = 1, 0, 1, {}

    def reply(self, created=False):
        return RankerReply(self.name, self.version, self.request, {}, self.seq, 0, 0, None, created)

    def state(self):
        return StateReply(self.seq, self.round, "0" * 64, 0)

    def event_page(self, event_id):
        raise NotFound(f"There is no event {event_id!r}.")


class FakeEngine:
    def __init__(self):
        self.rankers = {}

    def ranker(self, name):
        if name not in self.rankers:
            raise NotFound(f"There is no ranker {name!r}.")
        return self.rankers[name]


class FakeStore:
    def __init__(self):
        self._keys = {}

    def secret(self):
        return bytes(32)

    def keys(self):
        return list(self._keys.values())

    def add_key(self, key):
        self._keys[key.prefix] = key

    def remove_key(self, prefix):
        return self._keys.pop(prefix, None) is not None

    def events(self, ranker, *, after=0, limit=None):
        return iter(())


class FakeDesk:
    """``fails`` is raised by the next commands; ``delay`` is how long each takes."""

    def __init__(self):
        self.engine, self.store = FakeEngine(), FakeStore()
        self.fails = None
        self.delay = 0.0
        self.commands = []
        self.is_started = self.is_stopped = False

    async def start(self):
        self.is_started = True

    async def stop(self):
        self.is_stopped = True

    async def submit(self, command):
        self.commands.append(command)
        await asyncio.sleep(self.delay)
        if self.fails is not None:
            raise self.fails
        if isinstance(command, Configure):
            created = command.ranker not in self.engine.rankers
            self.engine.rankers[command.ranker] = FakeRanker(command.ranker, command.request)
            return self.engine.ranker(command.ranker).reply(created)
        live = self.engine.ranker(command.ranker)
        live.seq += 1
        if isinstance(command, Rank):
            live.round += 1
            policy = Policy("online", False, 1.0, 1.0)
            return RankReply(f"e{live.seq}", ["a"], 1, policy, live.seq, None)
        if isinstance(command, GiveFeedback):
            return FeedbackReply("pending", live.seq)
        assert isinstance(command, Activate)
        return None

    async def subscribe(self, ranker):
        for seq in range(1, 4):
            yield {"seq": seq, "round": seq}
        await asyncio.sleep(3600)
