"""Whatever happens, in whatever order: the service does what a model of a hundred lines does."""

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from keyhole.base.version import __version__
from keyhole.service import engine as engines
from keyhole.service.commands import Activate, Expire
from keyhole.service.engine import Engine
from keyhole.service.errors import ConflictingRequest, KeyReused, NoSuchResource
from keyhole.service.replay import check_ranker
from keyhole.service.store import open_store
from tests.service.addresses import address_of
from tests.service.desks import answer, configure, rank
from tests.service.model import Model

_NAMES = ["ant", "bee", "cat", "dog", "eel", "fox"]
_LISTS = st.lists(st.sampled_from(_NAMES), min_size=3, max_size=5, unique=True)


class Service(RuleBasedStateMachine):
    """The engine on a real file, beside the model."""

    scheme = "sqlite"

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.address = address_of(self.scheme, self.folder)
        self.n_versions = 0
        self.at = 1_000

    @initialize(items=_LISTS, k=st.integers(1, 2), missing=st.sampled_from([None, 0.0, 1.0]))
    def create(self, items, k, missing):
        self.asked = {"k": k, "missing": missing}
        self.engine = Engine(open_store(self.address))
        configure(self.engine, items=items, **self.asked)
        self.model = Model(items, k, missing)

    @property
    def live(self):
        return self.engine.ranker("animals")

    def some_event(self, data):
        return list(self.model.shown)[data.draw(st.integers(0, len(self.model.shown) - 1))]

    @rule(
        idem=st.sampled_from([None, None, "one", "two", "three"]),
        deferred=st.booleans(),
    )
    def show(self, idem, deferred):
        before = None if idem is None else self.model.repeated(idem, deferred)
        if before == "reused":
            with pytest.raises(KeyReused):
                rank(self.engine, idem=idem, deferred=deferred)
            return
        reply = rank(self.engine, idem=idem, deferred=deferred)
        if before is not None:
            assert reply.event_id == before
        else:
            assert reply.ranking == self.model.rank(reply.event_id, idem, deferred)

    @precondition(lambda self: self.model.shown)
    @rule(
        data=st.data(),
        status=st.sampled_from(["observed", "observed", "none", "not_shown"]),
        relevance=st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 0.5])),
    )
    def hear(self, data, status, relevance):
        event_id = self.some_event(data)
        given = relevance[: self.model.k] if status == "observed" else ()
        expected = self.model.feedback(event_id, status, given)
        told = list(given) if status == "observed" else None
        if expected == "conflict":
            with pytest.raises(ConflictingRequest):
                answer(self.engine, event_id, told, status)
            return
        reply = answer(self.engine, event_id, told, status)
        assert reply.created == (expected != "same")
        assert reply.learned == self.model.shown[event_id].learned

    @precondition(lambda self: self.model.shown)
    @rule(data=st.data())
    def activate(self, data):
        event_id = self.some_event(data)
        if self.model.activate(event_id):
            self.engine.execute(Activate("animals", event_id))
        else:
            with pytest.raises(ConflictingRequest):
                self.engine.execute(Activate("animals", event_id))

    @precondition(lambda self: self.model.waiting())
    @rule(data=st.data())
    def give_up(self, data):
        waiting = self.model.waiting()  # ids differ from run to run, places do not
        places = data.draw(st.lists(st.integers(0, len(waiting) - 1), unique=True))
        event_ids = [waiting[place] for place in places]
        seqs = tuple(self.live.seq_of[event_id] for event_id in event_ids)
        self.engine.execute(Expire("animals", (*seqs, 10**6)))
        for event_id in event_ids:
            self.model.expire(event_id)

    @rule(items=_LISTS)
    def change_items(self, items):
        configure(self.engine, items=items, **self.asked)
        self.model.change_items(items)

    @rule()
    def crash(self):
        """Lose all that is in memory, with the lock on the file."""
        self.engine.store.close()
        self.engine = Engine(open_store(self.address))

    @rule()
    def take_a_snapshot(self):
        self.engine.store.put_snapshot(self.live.snapshot())

    @rule()
    def upgrade(self):
        """Go on with another version of the library."""
        self.n_versions += 1
        self.engine.store.close()
        vars(engines)["__version__"] = f"{__version__}.{self.n_versions}"
        self.engine = Engine(open_store(self.address))

    @rule()
    def guess(self):
        with pytest.raises(NoSuchResource):
            answer(self.engine, "guess", [1.0] * self.model.k)

    @invariant()
    def is_what_the_model_is(self):
        if not hasattr(self, "model"):
            return
        assert self.live.round == self.model.round
        waiting = [waited.event_id for waited in self.live.waiting.values()]
        assert waiting == self.model.waiting()
        expected = self.model.learner.state._asdict()
        for name, array in self.live.learner.state._asdict().items():
            assert (array == expected[name]).all(), name

    def teardown(self):
        vars(engines)["__version__"] = __version__
        if hasattr(self, "model"):
            checked = check_ranker(self.engine.store, "animals")
            assert checked.problems == ()
            assert checked.sha256 == self.live.sha256()
            assert checked.seq == checked.n_events
            self.engine.store.close()
        shutil.rmtree(self.folder)


class ServiceOnPostgres(Service):
    """The engine on a database, beside the model."""

    scheme = "postgresql"


def some(n_examples):
    return settings(
        max_examples=n_examples,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


TestService = Service.TestCase
TestService.settings = some(25)
TestServiceOnPostgres = ServiceOnPostgres.TestCase
TestServiceOnPostgres.settings = some(10)
