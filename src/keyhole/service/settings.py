"""Settings of the service; flags override the environment, which overrides a file."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from keyhole.base.errors import InvalidInput, check_choice

PREFIX = "KEYHOLE_"
_OTHER_VARIABLES = frozenset(
    {
        "KEYHOLE_DATA",
        "KEYHOLE_KEY",
        "KEYHOLE_MEMORY_LIMIT",
        "KEYHOLE_TRACEBACK",
        "KEYHOLE_VENV",
    }
)
"""Environment variables of the library, its tests and clients, which are no settings."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the service as a whole."""

    db: Annotated[str, Meta(min_length=1)] = "keyhole.db"
    """The event log: a file, or the URL of a database."""
    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8360
    """The port to listen on; 0: any free port."""
    insecure: bool = False
    """Whether to serve everybody who can reach the port while no key exists."""
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=2**30)] = 8 * 2**20
    """The largest request body in bytes."""
    max_pending_bytes: Annotated[int, Meta(ge=1_024, le=2**36)] = 64 * 2**20
    """The largest total of unanswered request bytes; beyond it large requests get a 503."""
    request_seconds: Seconds = 30.0
    """Seconds for the head and body of a request to arrive."""
    shutdown_seconds: Seconds = 20.0
    """Seconds for running requests to finish at shutdown."""
    heartbeat_seconds: Seconds = 10.0
    """Seconds between heartbeats of a live stream."""
    session_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 43_200.0
    """Seconds until a dashboard session expires."""
    secure_cookies: bool = False
    """Whether cookies are sent over TLS only; set it behind a TLS proxy."""
    key_rate: Annotated[float, Meta(ge=0, le=1_000_000)] = 0.0
    """The requests per second of one access key; more get a 429. 0: no limit."""
    key_burst: Count = 100
    """The requests that a key with a limit may make at once."""
    max_concurrency: Count = 1_024
    """The number of concurrent requests; more get a 503."""
    max_streams: Count = 128
    """The number of concurrent live streams."""
    max_waiting: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    """The number of lists per ranker that wait for feedback."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The log level."""
    log_requests: bool = False
    """Whether to log every request, or only those that fail."""

    @property
    def is_loopback(self) -> bool:
        """Whether the address is a loopback address."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    @property
    def needs_key(self) -> bool:
        """Whether other machines can reach the service, so that a key is mandatory."""
        return not (self.is_loopback or self.insecure)


NAMES = Settings.__struct_fields__


def load_settings(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings from flags, the environment and a file, in this order of precedence.

    A flag that is None was not given.
    """
    given = {
        **(_of_file(file) if file is not None else {}),
        **_of_environment(os.environ if environ is None else environ),
        **{name: value for name, value in flags.items() if value is not None},
    }
    try:
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        name = path.strip("`").removeprefix("$.")
        raise InvalidInput(
            f"The setting {name} must be as the documentation says: {message}, got "
            f"{given.get(name)!r}."
        ) from None


def _of_environment(environ: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for variable, value in environ.items():
        if variable.startswith(PREFIX) and variable not in _OTHER_VARIABLES:
            name = variable.removeprefix(PREFIX).lower()
            if name not in NAMES:
                known = [PREFIX + each.upper() for each in NAMES]
                check_choice(variable, "A setting in the environment", known)
            found[name] = value
    return found


def _of_file(file: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"The settings file must be TOML in UTF-8, got {file}: {why}.") from None
    for name in given:
        check_choice(name, f"A setting in {file}", NAMES)
    return given
