"""What an endpoint is: one row, from which its route, its lock and its documentation follow."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from keyhole.service.commands import Command
from keyhole.service.http.call import JSON_TYPES, Call
from keyhole.service.http.problems import NoSuchPath, WrongMethod
from keyhole.service.http.wire import Answer, Scope
from keyhole.service.keys import ScopeName

_MOST_FOUND = 1_000
Handler = Callable[[Call], Awaitable[Answer]]


class Errand(NamedTuple):
    """What an endpoint does that only tells the desk one thing: before that, and after it.

    Nothing in it waits, so that a request that has come whole needs no task of its own.
    """

    command: Callable[[Call, bytes], Command]
    """What the desk is told, by the request and its body."""
    answer: Callable[[Any], Answer]
    """What is answered, by the desk's reply."""

    async def run(self, call: Call) -> Answer:
        """Answer a request whose body may still be on its way."""
        body = await call.body(JSON_TYPES)
        return self.answer(await call.service.desk.submit(self.command(call, body)))


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
    errand: Errand | None = None
    """What its handler runs, where that is all it does."""

    @cached_property
    def is_of_ranker(self) -> bool:
        """Whether it is about one ranker, the first parameter of its path."""
        return self.path.startswith("/v1/rankers/")

    @cached_property
    def name(self) -> str:
        """The name of the operation, unique among all."""
        return self.handler.__name__


class _Node:
    __slots__ = ("children", "methods", "parameter")

    def __init__(self) -> None:
        self.children: dict[bytes, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, Operation] = {}


class Router:
    """Leads from the raw path of a request to its operation: an id may hold an escaped slash."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._found: dict[tuple[str, bytes], tuple[Operation, tuple[str, ...]]] = {}
        """Where paths without an event lead: there are few, and most requests are one of them."""
        self._root = _Node()
        for operation in operations:
            node = self._root
            for part in operation.path.split("/")[1:]:
                if part.startswith("{"):
                    node.parameter = node.parameter or _Node()
                    node = node.parameter
                else:
                    node = node.children.setdefault(part.encode(), _Node())
            node.methods[operation.method] = operation

    def find(self, scope: Scope) -> tuple[Operation, tuple[str, ...]] | None:
        """Return the operation of a request and the parameters of its path, None if there is none.

        Raises :class:`WrongMethod` where the path has other methods.
        """
        method, path = scope["method"], scope.get("raw_path") or scope["path"].encode()
        found = self._found.get((method, path)) or self._follow(method, path)
        if found is not None and len(found[1]) <= 1 and len(self._found) < _MOST_FOUND:
            self._found[method, path] = found
        return found

    def _follow(self, method: str, path: bytes) -> tuple[Operation, tuple[str, ...]] | None:
        node: _Node | None = self._root
        params: list[bytes] = []
        for part in path.split(b"/")[1:]:
            if node is None:
                return None
            child = node.children.get(part)
            if child is None:
                child = node.parameter if part else None
                params.append(part)
            node = child
        if node is None or not node.methods:
            return None
        operation = node.methods.get("GET" if method == "HEAD" else method)
        if operation is None:
            allowed = ", ".join(
                sorted({*node.methods, *("HEAD" for m in node.methods if m == "GET")})
            )
            raise WrongMethod(
                f"This path has the methods {allowed}, got {method[:20]}.",
                ((b"allow", allowed.encode()),),
            )
        return operation, tuple(_text(part) for part in params)


def _text(part: bytes) -> str:
    """Return a part of a path as text."""
    if b"%" not in part:
        return part.decode("latin-1")
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise NoSuchPath("Names in a path must be UTF-8.") from None
