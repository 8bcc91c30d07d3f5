"""The type of an operation, which defines its route, its scope and its OpenAPI entry."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from keyhole.service.http.problems import encode
from keyhole.service.keys import ScopeName

if TYPE_CHECKING:
    from keyhole.service.http.context import Service

Handler = Callable[[Request, "Service"], Awaitable[Response]]
JSON = "application/json"


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response."""
    return Response(encode(value), status, headers, JSON)


class Parameter(NamedTuple):
    """A header or a query parameter."""

    name: str
    schema: Mapping[str, Any]
    description: str


class Reply(NamedTuple):
    """A successful response: its description, and the body type per content type."""

    description: str
    content: Mapping[str, Any] = {}
    headers: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Operation:
    """An endpoint.

    ``needs`` is the scope that a key must have; an endpoint without one answers even while the log
    is being read. A path with ``{ranker}`` requires a key that may see that ranker; ``needs_all``
    requires a key for all rankers. ``problems`` are error statuses beyond those that every endpoint
    has.
    """

    method: str
    path: str
    handler: Handler
    needs: ScopeName | None
    summary: str
    replies: Mapping[int, Reply]
    problems: tuple[int, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)
    is_request_required: bool = True
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    needs_all: bool = False

    @cached_property
    def name(self) -> str:
        """The name of the operation, unique among all."""
        return self.handler.__name__
