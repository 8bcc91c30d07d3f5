"""The description of the interface: complete, true, and held to by every answer."""

import json
import re

import pytest

from bench.api_cases import Target, attack
from keyhole.service.api.openapi import document, statuses
from keyhole.service.api.routes import OPERATIONS
from keyhole.service.commands import RankerRequest
from keyhole.service.http.problems import TABLE

PROMISED = [
    "GET /v1/rankers", "PUT /v1/rankers/{ranker}", "GET /v1/rankers/{ranker}",
    "PATCH /v1/rankers/{ranker}", "DELETE /v1/rankers/{ranker}",
    "PUT /v1/rankers/{ranker}/items", "POST /v1/rankers/{ranker}/items",
    "POST /v1/rankers/{ranker}/reset", "POST /v1/rankers/{ranker}/rename",
    "POST /v1/rankers/{ranker}/rank", "PUT /v1/rankers/{ranker}/events/{event}/feedback",
    "POST /v1/rankers/{ranker}/events/{event}/activate",
    "POST /v1/rankers/{ranker}/rank-batch",
    "POST /v1/rankers/{ranker}/feedback-batch", "GET /v1/rankers/{ranker}/events",
    "GET /v1/rankers/{ranker}/events/{event}", "POST /v1/rankers/{ranker}/evaluations",
    "GET /v1/rankers/{ranker}/evaluations", "GET /v1/rankers/{ranker}/evaluations/{evaluation}",
    "GET /v1/rankers/{ranker}/state", "GET /v1/rankers/{ranker}/stream", "GET /v1/keys",
    "POST /v1/keys", "DELETE /v1/keys/{prefix}", "GET /healthz", "GET /readyz", "GET /metrics",
    "GET /openapi.json",
]  # fmt: skip
RARE = {
    "DELETE /v1/keys/{prefix}",
    "GET /v1/rankers/{ranker}/evaluations/{evaluation}",
    "PUT /v1/rankers/{ranker}",
}
"""What random requests hardly ever do: their ids cannot be guessed, their fields must agree."""


@pytest.fixture(scope="module")
def described():
    return json.loads(document())


def test_every_endpoint_is_served_and_described(described):
    served = sorted(f"{each.method} {each.path}" for each in OPERATIONS)
    told = [
        f"{method.upper()} {path}" for path, item in described["paths"].items() for method in item
    ]
    assert served == sorted(told)
    assert set(PROMISED) <= set(served)


def test_every_operation_has_a_name_of_its_own(described):
    names = [each["operationId"] for item in described["paths"].values() for each in item.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


def test_what_is_referred_to_is_there(described):
    schemas = described["components"]["schemas"]
    referred = set(re.findall(r"#/components/schemas/(\w+)", document().decode()))
    assert referred <= set(schemas)
    assert {"ProblemDetails", "RankRequest", "FeedbackLine", "EvaluationRequest"} <= set(schemas)


def test_patterns_are_those_of_json_schema(described):
    text = document().decode()
    assert "\\\\A" not in text
    assert "\\\\Z" not in text
    name = described["paths"]["/v1/rankers/{ranker}"]["get"]["parameters"][0]["schema"]
    assert name["pattern"] == "^[A-Za-z0-9][A-Za-z0-9._-]*$"


def test_fields_are_described_as_in_the_code(described):
    fields = described["components"]["schemas"]["RankerRequest"]["properties"]
    assert set(fields) == set(RankerRequest.__struct_fields__)
    assert fields["k"]["description"] == "The number of top items whose relevance feedback reveals."


def test_every_status_of_a_problem_is_one_that_some_exception_has():
    known = {row.status for row in TABLE.values()} | {408}  # which the server under it answers
    for operation in OPERATIONS:
        assert set(statuses(operation)) <= known
        assert not set(statuses(operation)) & set(operation.replies)


def test_a_thousand_requests_made_of_the_description_are_answered_as_it_says():
    target = Target()
    try:
        assert attack(target, 1_000) >= 1_000
        busy = ("POST /v1/rankers/{ranker}/evaluations", 503)  # a slow machine has many waiting
        assert {each[1] for each in target.statuses if each != busy} <= {
            200, 201, 202, 204, 400, 404, 406, 409, 412, 415, 422,
        }  # fmt: skip
        answered = {label for label, status in target.statuses if status < 300}
        assert set(PROMISED) - answered <= RARE
    finally:
        target.close()
