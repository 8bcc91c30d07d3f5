"""Endpoints of the service itself: health, readiness, metrics and the API description."""

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
    """The process is alive."""

    status: Literal["ok"]
    version: str


class ReadyReply(msgspec.Struct, frozen=True):
    """The service is ready to answer requests."""

    status: Literal["ready"]
    log: Literal["checking", "checked", "damaged"]
    """The progress of the log check; `damaged`: some rankers are not served."""


async def healthz(request: Request, service: "Service") -> Response:
    """Return 200 while the process is alive, even during startup."""
    return json_response(HealthReply("ok", __version__))


async def readyz(request: Request, service: "Service") -> Response:
    """Return 200 if the service is ready: not during replay, nor if the log cannot be written."""
    if not service.is_ready or service.desk.trouble is not None:
        raise NotReady(service.why_not_ready)
    return json_response(ReadyReply("ready", service.desk.log))


async def metrics(request: Request, service: "Service") -> Response:
    """Return metrics for Prometheus."""
    text = await asyncio.to_thread(service.metrics.text)  # slow with many rankers
    return Response(text, headers={"content-type": CONTENT_TYPE})


async def openapi(request: Request, service: "Service") -> Response:
    """Return the OpenAPI description."""
    return Response(service.openapi, media_type=JSON)


OPERATIONS = (
    Operation(
        "GET", "/healthz", healthz, None, "Liveness check",
        {200: Reply("The process is alive.", {"application/json": HealthReply})},
    ),
    Operation(
        "GET", "/readyz", readyz, None, "Readiness check",
        {200: Reply("The service is ready.", {"application/json": ReadyReply})},
        problems=(503,),
    ),
    Operation(
        "GET", "/metrics", metrics, "read", "Metrics for Prometheus",
        {200: Reply("Metrics in Prometheus text format.", {"text/plain": str})},
        needs_all=True,
    ),
    Operation(
        "GET", "/openapi.json", openapi, None, "This API description",
        {200: Reply("The OpenAPI 3.1 document.", {"application/json": dict})},
    ),
)  # fmt: skip
