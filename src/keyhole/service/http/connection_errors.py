"""What connections answer by themselves, where no application is asked."""

from http import HTTPStatus

from keyhole.service.http.problems import CONTENT_TYPE, TYPE_PREFIX, Problem, encode

MAX_HEAD_BYTES = 64 * 1024
MAX_FIELDS = 100
MAX_FRAME_BYTES = 16 * 1024
FRAME_SHARE = 8
"""Sizes of chunks, extensions and trailers may take that many bytes, and so much of the body.

Clients send chunks of kilobytes, each framed by less than ten bytes.
"""


def _refusal(status: int, slug: str, title: str, detail: str, more: str = "") -> bytes:
    body = encode(Problem(TYPE_PREFIX + slug, title, status, detail))
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {CONTENT_TYPE}\r\n"
        f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\n{more}"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


def _malformed(detail: str) -> bytes:
    return _refusal(400, "malformed", "The request cannot be read", detail)


def _head_too_large(detail: str) -> bytes:
    return _refusal(431, "head-too-large", "The head is too large", detail)


NO_HTTP = _malformed("A request must be HTTP/1.1.")
NO_HOST = _malformed("A request of HTTP/1.1 must have one field Host.")
TWICE = _malformed("A request must have each of the fields Host and Authorization once.")
CODING = _malformed(
    "A body must come with a Content-Length or, in HTTP/1.1, with Transfer-Encoding: chunked alone."
)
UPGRADE = _malformed("A request must not ask for another protocol.")
HEAD_TOO_LARGE = _head_too_large(
    f"A head must have at most {MAX_HEAD_BYTES} bytes and {MAX_FIELDS} fields."
)
FRAME_TOO_LARGE = _head_too_large(
    f"What frames a body must have at most {MAX_FRAME_BYTES} bytes, and one for every "
    f"{FRAME_SHARE} of the body."
)
TOO_SLOW = _refusal(408, "too-slow", "The request took too long", "It did not come whole in time.")
TOO_MANY = _refusal(
    503, "busy", "Too many requests at once", "All requests together are too large.",
    "retry-after: 1\r\n",
)  # fmt: skip
