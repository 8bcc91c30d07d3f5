"""Structured logs: JSON lines on standard error, with access keys redacted."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_KEY = re.compile(r"kh_[0-9a-f]{8}_[A-Za-z0-9_-]+")
_SECRETS = frozenset({"authorization", "cookie", "key", "token", "secret"})
_HIDDEN = "[hidden]"


def configure_logs(level: str) -> None:
    """Send the logs of this package and of uvicorn to standard error."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        hide_keys,
    ]
    render = structlog.processors.JSONRenderer(ensure_ascii=True, default=repr)
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger("uvicorn")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(max(threshold, logging.WARNING))  # the service logs startup itself


def hide_keys(
    _logger: Any, _method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Redact access keys in a log line.

    Examples
    --------
    >>> hide_keys(None, "", {"event": "got kh_0123abcd_Secret-1", "token": "x"})
    {'event': 'got [hidden]', 'token': '[hidden]'}
    """
    for name, value in entry.items():
        if name.lower() in _SECRETS:
            entry[name] = _HIDDEN
        elif isinstance(value, str):
            entry[name] = _KEY.sub(_HIDDEN, value)
    return entry


def logger() -> Any:
    """Return the logger of the service."""
    return structlog.get_logger("keyhole")
