"""Dispatches a request to the handler of its method, after authorisation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from keyhole.service.api.operations import Operation
from keyhole.service.http.auth import WHO, access_of, check_access
from keyhole.service.http.problems import NotReady, RateLimited, Unauthorized, WrongMethod

if TYPE_CHECKING:
    from keyhole.service.http.context import Service


class Endpoint:
    """A path of the API, with the operations of its methods."""

    def __init__(self, service: "Service", operations: Mapping[str, Operation]) -> None:
        self._service = service
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authorise the request and call its handler."""
        service, state = self._service, scope["state"]
        state["operation"] = "unknown"
        operation = self._operations.get(scope["method"])
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            raise WrongMethod(
                f"The method of this path must be one of {allowed}, got {scope['method'][:20]}.",
                {"allow": allowed},
            )
        state["operation"] = operation.name
        if operation.needs is not None:
            if not service.is_ready:
                raise NotReady(service.why_not_ready)
            access = access_of(service, scope, by_session=scope["method"] in ("GET", "HEAD"))
            if access is None:
                raise Unauthorized(WHO)
            if service.rate_limits is not None and access.prefix is not None:
                state["rate_limit"], wait = service.rate_limits.take(access.prefix)
                if wait:
                    raise RateLimited(
                        "This key must make fewer requests: its limit is in RateLimit-Policy; "
                        f"retry in {wait} s.",
                        {"retry-after": str(wait)},
                    )
            ranker = scope["path_params"].get("ranker")
            check_access(access, operation.needs, ranker, operation.needs_all)
            state["access"] = access
        response = await operation.handler(Request(scope, receive, send), service)
        await response(scope, receive, send)
