"""Generated requests: a service that is busy is no fault, and one whose log has failed is."""

import json
import threading

import pytest
from schemathesis.core.failures import FailureGroup

from bench import api_cases
from bench.api_cases import Target, attack, is_busy
from keyhole.service.api import evaluations
from keyhole.service.api.openapi import document
from keyhole.service.errors import StoreError
from keyhole.service.evaluations import evaluate

pytestmark = pytest.mark.interpreted

OPERATION = "POST /v1/rankers/{ranker}/evaluations"


@pytest.fixture
def target(monkeypatch):
    """Give a target of which requests are made for evaluations alone, none of which ever ends."""
    goes_on = threading.Event()
    monkeypatch.setattr(
        evaluations, "evaluate", lambda *given: goes_on.wait(60) and evaluate(*given)
    )
    only = json.loads(document())
    only["paths"] = {OPERATION.split()[1]: {"post": only["paths"][OPERATION.split()[1]]["post"]}}
    monkeypatch.setattr(api_cases, "document", lambda: json.dumps(only))
    made = Target()
    yield made
    goes_on.set()
    made.close()


def asked(target, n):
    body = {"policy": "uniform"}
    path = "/v1/rankers/animals/evaluations"
    return [target.send("POST", path, json=body) for _ in range(n)]


def test_what_waits_too_long_is_refused_as_described(target):
    answers = asked(target, 17)
    assert [answer.status_code for answer in answers] == [202] * 16 + [503]
    assert [is_busy(answer) for answer in answers] == [False] * 16 + [True]
    assert attack(target, 24) >= 24
    assert target.statuses[OPERATION, 503] > 0


def test_a_log_that_fails_is_a_fault(target, monkeypatch):
    def ask(*_):
        raise StoreError("The disk is gone.")

    monkeypatch.setattr(evaluations.Evaluations, "ask", ask)
    (answer,) = asked(target, 1)
    assert answer.status_code == 503
    assert not is_busy(answer)
    with pytest.raises(FailureGroup, match="Server error"):
        attack(target, 24)
