"""What an endpoint is: one row, from which its route, its lock and its documentation follow."""

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
    """Return a response that is JSON."""
    return Response(encode(value), status, headers, JSON)


class Parameter(NamedTuple):
    """A header or a parameter of the query."""

    name: str
    schema: Mapping[str, Any]
    description: str


class Reply(NamedTuple):
    """What an endpoint answers if all is well: the type of its body for each kind of content."""

    description: str
    content: Mapping[str, Any] = {}
    headers: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Operation:
    """An endpoint.

    ``needs`` is the scope that a key must have; one that needs none answers while the log is still
    being read. A path with ``{ranker}`` is for keys that may see that ranker, and one without it
    that ``needs_all`` for keys that may see all. ``problems`` are statuses of its own besides those
    that every such endpoint has.
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
