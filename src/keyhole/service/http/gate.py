"""The way of a request: found, let in, answered, counted; whatever goes wrong is a problem."""

import time
from typing import Any, Protocol

from keyhole.service.desk import Reply
from keyhole.service.http.call import JSON_TYPES, Call, Gone
from keyhole.service.http.doors import (
    WHO,
    access_by_header,
    access_by_session,
    access_without_keys,
    check_access,
)
from keyhole.service.http.operations import Errand, Operation, Router
from keyhole.service.http.problems import Busy, NoSuchPath, NotReady, Unauthorized, answer_to
from keyhole.service.http.service import Service
from keyhole.service.http.table import OPERATIONS
from keyhole.service.http.wire import Answer, Headers, Receive, Scope, Send, send_answer
from keyhole.service.keys import Access
from keyhole.service.logs import logger

_GONE = 499
"""What is counted where nobody waits for the answer any more."""
_NO_PATH = "There is no such path: /openapi.json has all there are."
_SECURITY: Headers = ((b"x-content-type-options", b"nosniff"),)


class Ticket(Reply, Protocol):
    """Told how a request ends, once it is known which errand it is."""

    errand: Errand | None


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
        status = _GONE
        self._enter(call)
        try:
            found = self._find(call)
            if found is None and send is not None and not call.scope["path"].startswith("/v1/"):
                call.operation = "page"
                status = await self.service.pages.answer(call, send)
                return None
            answer = await self._let_in(found, call).handler(call)
            status = answer.status
        except Gone:
            return None
        except Exception as error:
            answer = self._answer_to(error, call)
            status = answer.status
        finally:
            self._leave(call, status)
        return _finished(answer, call)

    def begin(self, call: Call, ticket: Ticket) -> None:
        """Take a request that has come whole and is an errand; its ticket is told how it ends.

        Whatever is on the ticket by then is the answer to :meth:`end` or to :meth:`fail`.
        """
        self._enter(call)
        try:
            ticket.errand = errand = self._let_in(self._find(call), call).errand
            if errand is None:
                raise NoSuchPath(_NO_PATH)
            call.check_head(JSON_TYPES)
            self.service.desk.put(errand.command(call, call.content or b""), ticket)
        except Exception as error:
            ticket.set_exception(error)

    def end(self, call: Call, errand: Errand, reply: Any) -> Answer:
        """Return the answer to an errand that the desk has replied to."""
        try:
            answer = errand.answer(reply)
        except Exception as error:
            return self.fail(call, error)
        self._leave(call, answer.status)
        return _finished(answer, call)

    def fail(self, call: Call, error: Exception) -> Answer:
        """Return the answer to a request that was not done."""
        answer = self._answer_to(error, call)
        self._leave(call, answer.status)
        return _finished(answer, call)

    def _enter(self, call: Call) -> None:
        call.began = time.perf_counter()
        self.service.metrics.in_flight += 1

    def _leave(self, call: Call, status: int) -> None:
        metrics = self.service.metrics
        metrics.in_flight -= 1
        seconds = time.perf_counter() - call.began
        metrics.count(call.operation, status, seconds)
        if self.service.settings.log_requests:
            self._log(call, call.operation, status, seconds)

    @staticmethod
    def _answer_to(error: Exception, call: Call) -> Answer:
        answer = answer_to(error, call.request_id)
        if answer.status == 500:
            logger().error(
                "A request failed.",
                request=call.request_id,
                operation=call.operation,
                exc_info=error,
            )
        return answer

    @staticmethod
    def _log(call: Call, operation: str, status: int, seconds: float) -> None:
        logger().info(
            "request",
            request=call.request_id,
            operation=operation,
            status=status,
            seconds=round(seconds, 6),
        )

    def _find(self, call: Call) -> tuple[Operation, tuple[str, ...]] | None:
        """Return where a request leads, or raise where too many are being answered."""
        most = self.service.settings.max_concurrency
        if self.service.metrics.in_flight > most:
            raise Busy(f"At most {most} requests are answered at once.")
        return self._router.find(call.scope)

    def _let_in(self, found: tuple[Operation, tuple[str, ...]] | None, call: Call) -> Operation:
        """Return the operation of a request that may be done, or raise."""
        if found is None:
            raise NoSuchPath(_NO_PATH)
        operation, call.params = found
        call.operation = operation.name
        service = self.service
        if operation.needs is not None:
            if not service.is_ready:
                raise NotReady(service.why_not_ready)
            access = self._access(call)
            ranker = call.params[0] if operation.is_of_ranker else None
            check_access(access, operation.needs, ranker, operation.needs_all)
            call.access = access
        return operation

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


def _finished(answer: Answer, call: Call) -> Answer:
    """Return an answer with the headers that all have."""
    more = _SECURITY
    if answer.status >= 400 or b"x-request-id" in call.headers:
        more = (*more, (b"x-request-id", call.request_id.encode()))
    return Answer(answer.status, answer.body, answer.headers + more, answer.pieces)
