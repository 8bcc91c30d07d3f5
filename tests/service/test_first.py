"""A log of the first form, which every later version must open and go on with."""

import json
import shutil

import pytest

from keyhole.service.commands import FeedbackRequest, GiveFeedback, Rank, RankRequest
from keyhole.service.engine import Engine
from keyhole.service.replay import check
from keyhole.service.store import open_store
from keyhole.service.store.integrity import check_log
from tests.service.make_first import FIXTURES


@pytest.fixture
def first(tmp_path):
    return shutil.copy(FIXTURES / "first.db", tmp_path / "first.db")


def test_the_first_form_opens_checks_and_gives_its_hashes(first):
    expected = json.loads((FIXTURES / "first.json").read_text())
    with open_store(first) as store:
        assert check_log(store) == {name: said["seq"] for name, said in expected.items()}
        found = list(check(store))
        assert [each.problems for each in found] == [()] * len(expected)
        assert [each.n_snapshots for each in found] == [1] * len(expected)
        assert {each.ranker: each.sha256 for each in found} == {
            name: said["sha256"] for name, said in expected.items()
        }
        kinds = {event.kind for event in store.events("shop")}
        assert kinds == {"config", "rank", "feedback", "activate", "expire"}
        (key,) = store.keys()
        assert key.prefix == "kh_first"


def test_the_first_form_is_gone_on_with(first):
    expected = json.loads((FIXTURES / "first.json").read_text())["shop"]
    with open_store(first) as store:
        engine = Engine(store)
        assert engine.ranker("shop").round == expected["round"]
        shown = engine.execute(Rank("shop", RankRequest()), 10_000)
        said = FeedbackRequest(relevance=[1.0, 0.0])
        assert engine.execute(GiveFeedback("shop", shown.event_id, said), 10_001).created
        again = engine.execute(Rank("shop", RankRequest(), idem="request 39"), 10_002)
        (before,) = (e for e in store.events("shop") if e.idem == "request 39")
        assert before.key == again.event_id
