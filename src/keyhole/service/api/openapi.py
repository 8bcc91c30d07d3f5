"""Generates the OpenAPI 3.1 description from the table of operations and its types."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from keyhole.base.version import __version__
from keyhole.service.api.operations import Operation, Parameter, Reply
from keyhole.service.api.routes import OPERATIONS
from keyhole.service.commands import EventId, Name
from keyhole.service.http.problems import ProblemDetails, encode

_REF = "#/components/schemas/{name}"
_PARAMETERS = {
    "ranker": (Name, "The name of a ranker."),
    "event": (EventId, "The id of an event."),
    "evaluation": (str, "The id of an evaluation."),
    "prefix": (str, "The prefix of a key: the part between its underscores."),
}
_DESCRIPTION = (
    "Rank items, learn from delayed feedback, lose no event. Bodies are JSON in UTF-8; numbers "
    "must be finite, strings free of NUL and lone surrogates; unknown fields are refused; of "
    "duplicate fields the last one counts. Every error is an RFC 9457 problem with a stable type."
)
_WITH_BODY = (400, 408, 413, 415, 422)
_RETRY = Parameter("Retry-After", {"type": "integer"}, "Seconds to wait before a retry.")
_POLICY = Parameter("RateLimit-Policy", {"type": "string"}, "The limit of this key.")
_LIMIT = Parameter("RateLimit", {"type": "string"}, "The requests left to this key.")
_HEADERS_OF_PROBLEMS = {
    401: (Parameter("WWW-Authenticate", {"type": "string"}, "Bearer."),),
    429: (_RETRY, _POLICY, _LIMIT),
    503: (_RETRY,),
}


def document() -> bytes:
    """Return the OpenAPI description as JSON."""
    types = list(_types(OPERATIONS))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        described = _operation(operation, schema_of)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    _describe_fields(types, components)
    return encode(
        _ecma(
            {
                "openapi": "3.1.0",
                "info": {
                    "title": "Keyhole",
                    "version": __version__,
                    "description": _DESCRIPTION,
                    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
                },
                "servers": [{"url": "/"}],
                "paths": paths,
                "components": {
                    "schemas": components,
                    "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
                },
            }
        )
    )


def statuses(operation: Operation) -> list[int]:
    """Return the statuses of all problems of an operation."""
    found = set(operation.problems)
    if operation.request:
        found |= set(_WITH_BODY)
    if operation.needs is not None:
        found |= {401, 403, 429, 503}
    if "{" in operation.path:
        found.add(404)
    return sorted(found)


def _types(operations: tuple[Operation, ...]) -> Iterator[Any]:
    """Yield every request and reply type once."""
    seen: dict[int, Any] = {id(ProblemDetails): ProblemDetails}
    for kind, _ in _PARAMETERS.values():
        seen.setdefault(id(kind), kind)
    for operation in operations:
        for content in (operation.request, *(r.content for r in operation.replies.values())):
            for kind in content.values():
                seen.setdefault(id(kind), kind)
    yield from seen.values()


def _operation(operation: Operation, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": list(_parameters(operation, schema_of)),
        "responses": {
            **{str(s): _reply(r, schema_of) for s, r in operation.replies.items()},
            **{str(s): _problem(s, schema_of) for s in statuses(operation)},
        },
    }
    if operation.request:
        described["requestBody"] = {
            "required": operation.is_request_required,
            "content": _content(operation.request, schema_of),
        }
    if operation.needs is not None:
        described["security"] = [{"key": []}, {}]
        scope = f"Requires the scope `{operation.needs}`"
        described["description"] = f"{scope}{' for all rankers' * operation.needs_all}."
    return described


def _parameters(operation: Operation, schema_of: Mapping[int, Any]) -> Iterator[dict[str, Any]]:
    for part in operation.path.split("/"):
        if part.startswith("{"):
            kind, text = _PARAMETERS[part.strip("{}")]
            yield {
                "name": part.strip("{}"),
                "in": "path",
                "required": True,
                "description": text,
                "schema": schema_of[id(kind)],
            }
    for place, parameters in (("query", operation.query), ("header", operation.headers)):
        for parameter in parameters:
            yield {
                "name": parameter.name,
                "in": place,
                "description": parameter.description,
                "schema": dict(parameter.schema),
            }


def _reply(reply: Reply, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": reply.description}
    if reply.content:
        described["content"] = _content(reply.content, schema_of)
    if reply.headers:
        described["headers"] = _headers(reply.headers)
    return described


def _problem(status: int, schema_of: Mapping[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": HTTPStatus(status).phrase + ".",
        "content": {"application/problem+json": {"schema": schema_of[id(ProblemDetails)]}},
    }
    if status in _HEADERS_OF_PROBLEMS:
        described["headers"] = _headers(_HEADERS_OF_PROBLEMS[status])
    return described


def _headers(headers: tuple[Parameter, ...]) -> dict[str, Any]:
    return {
        each.name: {"description": each.description, "schema": dict(each.schema)}
        for each in headers
    }


def _content(content: Mapping[str, Any], schema_of: Mapping[int, Any]) -> dict[str, Any]:
    """Return the schemas of bodies; for NDJSON and binary files only a description."""
    described: dict[str, Any] = {}
    for kind, body in content.items():
        if kind == "application/x-ndjson":
            described[kind] = {
                "schema": {"type": "string", "description": "NDJSON: one JSON object per line."},
                "x-line-schema": schema_of[id(body)],
            }
        elif kind == "text/event-stream":
            described[kind] = {"schema": {"description": "Server-sent events with JSON data."}}
        elif body is bytes:
            described[kind] = {"schema": {"type": "string", "contentEncoding": "binary"}}
        else:
            described[kind] = {"schema": schema_of[id(body)]}
    return described


def _ecma(value: Any) -> Any:
    r"""Translate Python patterns to JSON Schema: ``\A`` to ``^``."""
    if isinstance(value, dict):
        return {
            name: each.replace(r"\A", "^").replace(r"\Z", "$")
            if name == "pattern" and isinstance(each, str)
            else _ecma(each)
            for name, each in value.items()
        }
    return [_ecma(each) for each in value] if isinstance(value, list | tuple) else value


def _describe_fields(types: list[Any], components: dict[str, Any]) -> None:
    """Use the docstrings of fields as descriptions of the schema."""
    modules = {inspect.getmodule(kind) for kind in types if isinstance(kind, type)}
    for module in modules - {None, inspect.getmodule(int)}:
        tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name in components:
                properties = components[node.name].get("properties", {})
                for name, sentence in _sentences(node):
                    if name in properties:
                        properties[name].setdefault("description", sentence)


def _sentences(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class that have a docstring."""
    for field, after in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield field.target.id, " ".join(after.value.value.split())
