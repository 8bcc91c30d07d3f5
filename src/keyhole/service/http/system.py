"""Endpoints about the service itself."""

from typing import Literal

import msgspec

from keyhole.service.http.call import Call
from keyhole.service.http.metrics import CONTENT_TYPE
from keyhole.service.http.operations import Operation, Reply
from keyhole.service.http.problems import NotReady
from keyhole.service.http.wire import JSON, Answer, json_answer
from keyhole.version import __version__


class HealthReply(msgspec.Struct, frozen=True):
    """The process is there."""

    status: Literal["ok"]
    version: str


class ReadyReply(msgspec.Struct, frozen=True):
    """The log is read, and requests are answered."""

    status: Literal["ready"]
    log: Literal["checking", "checked", "damaged"]
    """Whether all of the log was checked; where it is damaged, some rankers are not served."""


async def healthz(call: Call) -> Answer:
    """Say that the process is there, whatever it is doing."""
    return json_answer(HealthReply("ok", __version__))


async def readyz(call: Call) -> Answer:
    """Say whether requests are answered: not while the log is read, nor if it cannot be written."""
    service = call.service
    if not service.is_ready or service.desk.trouble is not None:
        raise NotReady(service.why_not_ready)
    return json_answer(ReadyReply("ready", service.desk.log))


async def metrics(call: Call) -> Answer:
    """Return what Prometheus asks for."""
    return Answer(200, call.service.metrics.text(), ((b"content-type", CONTENT_TYPE),))


async def openapi(call: Call) -> Answer:
    """Return the description of all this."""
    return Answer(200, call.service.openapi, JSON)


OPERATIONS = (
    Operation(
        "GET", "/healthz", healthz, None, "Whether the process is there",
        {200: Reply("It is.", {"application/json": HealthReply})},
    ),
    Operation(
        "GET", "/readyz", readyz, None, "Whether requests are answered",
        {200: Reply("They are.", {"application/json": ReadyReply})},
        problems=(503,),
    ),
    Operation(
        "GET", "/metrics", metrics, "read", "Metrics for Prometheus",
        {200: Reply("Metrics.", {"text/plain": str})},
        needs_all=True,
    ),
    Operation(
        "GET", "/openapi.json", openapi, None, "The description of this interface",
        {200: Reply("OpenAPI 3.1.", {"application/json": dict})},
    ),
)  # fmt: skip
