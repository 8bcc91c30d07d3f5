"""The way of a request: found, let in, answered, counted; whatever goes wrong is a problem."""

import time

from keyhole.service.http.call import Call, Gone
from keyhole.service.http.doors import (
    WHO,
    access_by_header,
    access_by_session,
    access_without_keys,
    check_access,
)
from keyhole.service.http.operations import Operation, Router
from keyhole.service.http.problems import Busy, NoSuchPath, NotReady, Unauthorized, answer_to
from keyhole.service.http.service import Service
from keyhole.service.http.table import OPERATIONS
from keyhole.service.http.wire import Answer, Headers, Receive, Scope, Send, send_answer
from keyhole.service.keys import Access
from keyhole.service.logs import logger

_GONE = 499
"""What is counted where nobody waits for the answer any more."""
_SECURITY: Headers = ((b"x-content-type-options", b"nosniff"),)


class Gate:
    """Answers what the table of operations has; everything else goes to the pages."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._router = Router(OPERATIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of ASGI."""
        call = Call(self.service, scope, receive, dict(scope["headers"]))
        answer = await self.answer(call, send)
        if answer is not None:
            await send_answer(send, receive, answer)

    async def answer(self, call: Call, send: Send | None = None) -> Answer | None:
        """Return the answer to a request, whatever goes wrong; None where there is none to send.

        Pages are sent as they are made, by ``send``.
        """
        service, metrics = self.service, self.service.metrics
        started = time.perf_counter()
        name, status = "unknown", _GONE
        metrics.in_flight += 1
        try:
            if metrics.in_flight > service.settings.max_concurrency:
                raise Busy(
                    f"At most {service.settings.max_concurrency} requests are answered at once."
                )
            found = self._router.find(call.scope)
            if found is None and send is not None and not call.scope["path"].startswith("/v1/"):
                name = "page"
                status = await service.pages.answer(call, send)
                return None
            if found is None:
                raise NoSuchPath("There is no such path: /openapi.json has all there are.")
            operation, call.params = found
            name = operation.name
            answer = await self._answer(operation, call)
            status = answer.status
        except Gone:
            return None
        except Exception as error:
            answer = answer_to(error, call.request_id)
            status = answer.status
            if status == 500:
                logger().error(
                    "A request failed.", request=call.request_id, operation=name, exc_info=error
                )
        finally:
            metrics.in_flight -= 1
            seconds = time.perf_counter() - started
            metrics.count(name, status, seconds)
            if service.settings.log_requests:
                self._log(call, name, status, seconds)
        more = _SECURITY
        if status >= 400 or b"x-request-id" in call.headers:
            more = (*more, (b"x-request-id", call.request_id.encode()))
        return Answer(status, answer.body, answer.headers + more, answer.pieces)

    @staticmethod
    def _log(call: Call, operation: str, status: int, seconds: float) -> None:
        logger().info(
            "request",
            request=call.request_id,
            operation=operation,
            status=status,
            seconds=round(seconds, 6),
        )

    async def _answer(self, operation: Operation, call: Call) -> Answer:
        """Let a request in, and hand it to its operation."""
        service = self.service
        if operation.needs is not None:
            if not service.is_ready:
                raise NotReady(service.why_not_ready)
            access = self._access(call)
            ranker = call.params[0] if operation.is_of_ranker else None
            check_access(access, operation.needs, ranker, operation.needs_all)
            call.access = access
        return await operation.handler(call)

    def _access(self, call: Call) -> Access:
        """Return what a request may do; one without a known key raises, unless there is none."""
        service, headers = self.service, call.headers
        if service.keyring.is_empty:
            return access_without_keys(service.settings, call.scope["method"], headers)
        access = access_by_header(service.keyring, headers)
        if access is None and call.scope["method"] == "GET":  # a page that is logged in
            access = access_by_session(service.keyring, service.sessions, headers)
        if access is None:
            raise Unauthorized(WHO)
        return access
