"""Error responses that a connection sends itself, before the application is called."""

from http import HTTPStatus

from keyhole.service.http.problems import CONTENT_TYPE, TYPE_PREFIX, ProblemDetails, encode

MAX_HEAD_BYTES = 64 * 1024
MAX_FIELDS = 100
MAX_FRAME_BYTES = 16 * 1024
FRAME_SHARE = 8
"""The most bytes of chunk framing (sizes, extensions, trailers), and its share of the body.

Usual clients send chunks of kilobytes, each framed by less than ten bytes.
"""


def _refusal(status: int, slug: str, title: str, detail: str, more: str = "") -> bytes:
    body = encode(ProblemDetails(TYPE_PREFIX + slug, title, status, detail))
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
NO_HOST = _malformed("A request must have exactly one Host header.")
TWICE = _malformed("A request must not repeat the headers Host or Authorization.")
CODING = _malformed(
    "A body must come with a Content-Length or, in HTTP/1.1, with Transfer-Encoding: chunked alone."
)
UPGRADE = _malformed("A request must not ask for a protocol upgrade.")
HEAD_TOO_LARGE = _head_too_large(
    f"The request head must have at most {MAX_HEAD_BYTES} bytes and {MAX_FIELDS} headers."
)
FRAME_TOO_LARGE = _head_too_large(
    f"Chunk framing must have at most {MAX_FRAME_BYTES} bytes, and at most one byte per "
    f"{FRAME_SHARE} bytes of body."
)
TOO_SLOW = _refusal(
    408, "too-slow", "The request took too long", "It did not arrive within the time limit."
)
TOO_MANY = _refusal(
    503, "busy", "Too many concurrent requests", "All requests together are too large.",
    "retry-after: 1\r\n",
)  # fmt: skip
