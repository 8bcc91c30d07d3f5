"""How the service is set up: flags before the environment before a file."""

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
"""What the library, its tests and clients of the service read from the environment."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything about the service that is not about one of its rankers."""

    db: Annotated[str, Meta(min_length=1)] = "keyhole.db"
    """The file that holds the log."""
    host: Annotated[str, Meta(min_length=1, max_length=255)] = "127.0.0.1"
    """The address to listen at."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8360
    """The port to listen at; 0 takes one that is free."""
    insecure: bool = False
    """Whether to let everybody in who reaches the port, as long as there is no key."""
    max_body_bytes: Annotated[int, Meta(ge=1_024, le=2**30)] = 8 * 2**20
    """The size of the largest body."""
    max_pending_bytes: Annotated[int, Meta(ge=1_024, le=2**36)] = 64 * 2**20
    """Bytes of all requests that are not answered yet; large ones beyond are to come again."""
    request_seconds: Seconds = 30.0
    """How long a request may take to arrive, its head and its body together."""
    shutdown_seconds: Seconds = 20.0
    """How long requests may take to end once the service is told to stop."""
    heartbeat_seconds: Seconds = 10.0
    """How often a live stream says that it is alive."""
    session_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 43_200.0
    """How long a login to the dashboard lasts."""
    secure_cookies: bool = False
    """Whether cookies travel over TLS alone: set it behind a proxy that speaks TLS."""
    max_concurrency: Count = 1_024
    """Requests at once; more are told to come again."""
    max_streams: Count = 128
    """Live streams at once."""
    max_waiting: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    """Impressions of a ranker that wait for feedback at once."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """How much is logged."""
    log_requests: bool = False
    """Whether every request is logged, or only those that fail."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    @property
    def needs_key(self) -> bool:
        """Whether strangers could reach the service, and must not come in without a key."""
        return not (self.is_loopback or self.insecure)


NAMES = Settings.__struct_fields__


def load_settings(
    flags: Mapping[str, Any],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings that flags, the environment and a file give, in this order.

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
