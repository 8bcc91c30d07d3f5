"""Endpoints about the service itself."""

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from keyhole.base.version import __version__
from keyhole.service.api.operations import JSON, Operation, Reply, json_response
from keyhole.service.http.problems import NotReady
from keyhole.service.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from keyhole.service.http.context import Service


class HealthReply(msgspec.Struct, frozen=True):
    """The process is there."""

    status: Literal["ok"]
    version: str


class ReadyReply(msgspec.Struct, frozen=True):
    """The log is read, and requests are answered."""

    status: Literal["ready"]
    log: Literal["checking", "checked", "damaged"]
    """Whether all of the log was checked; where it is damaged, some rankers are not served."""


async def healthz(request: Request, service: "Service") -> Response:
    """Say that the process is there, whatever it is doing."""
    return json_response(HealthReply("ok", __version__))


async def readyz(request: Request, service: "Service") -> Response:
    """Say whether requests are answered: not while the log is read, nor if it cannot be written."""
    if not service.is_ready or service.desk.trouble is not None:
        raise NotReady(service.why_not_ready)
    return json_response(ReadyReply("ready", service.desk.log))


async def metrics(request: Request, service: "Service") -> Response:
    """Return what Prometheus asks for."""
    text = await asyncio.to_thread(service.metrics.text)  # of every ranker there are lines
    return Response(text, headers={"content-type": CONTENT_TYPE})


async def openapi(request: Request, service: "Service") -> Response:
    """Return the description of all this."""
    return Response(service.openapi, media_type=JSON)


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
