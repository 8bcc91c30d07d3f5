"""The command that runs the service."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from keyhole.base.described import described
from keyhole.cli.description_options import command
from keyhole.cli.terminal import say

_STOPPED = "Stopped; all acknowledged events are durable."


@dataclass(frozen=True)
class Flags:
    """The settings of the service with options; None: not given."""

    db: str | None = described(
        None, "The log: a file, created at the first start, or postgresql://host/database."
    )
    host: str | None = described(None, "The address to listen on.")
    port: int | None = described(None, "The port to listen on; 0: any free port.")
    insecure: bool | None = described(
        None, "Serve everybody who can reach the port while no key exists."
    )
    log_requests: bool | None = described(None, "Log every request.")


@command(interrupted=_STOPPED, of_service=True)
def serve_command(
    *,
    flags: Flags,
    config: Annotated[Path | None, "A TOML file with settings."] = None,
    create: Annotated[bool, "Start an empty log if the previous one is missing."] = False,
    demo: Annotated[bool, "Create demo rankers with simulated users in an empty log."] = False,
) -> None:
    """Run the service.

    The service returns lists over HTTP, learns from delayed feedback, and makes every event
    durable. Options override environment variables KEYHOLE_…, which override the settings file.
    """
    from keyhole.service.compilation import Preparer
    from keyhole.service.http.app import build_later
    from keyhole.service.http.server import Server, address_of, bound_socket
    from keyhole.service.settings import load_settings
    from keyhole.service.startup import check_lock, opener
    from keyhole.service.store import open_store
    from keyhole.service.store.addresses import shown_address
    from keyhole.service.structured_logs import configure_logs

    settings = load_settings(asdict(flags), file=config)
    configure_logs(settings.log_level)
    store = open_store(settings.db, create=create)
    try:
        check_lock(settings, store)
        listening = bound_socket(settings)
        preparer = Preparer()
        application = build_later(opener(settings, store, preparer), settings, preparer)
        address = address_of(listening)
        log = shown_address(settings.db)
        say(f"Keyhole is at {address} and keeps its log in {log}; Ctrl+C stops it.")
        sys.stdout.flush()
        with _crowd(address, wanted=demo and not store.keys()):
            Server(application, settings).run(sockets=[listening])
    finally:
        store.close()
    if application.service.failure is not None:
        raise application.service.failure
    say(_STOPPED)


@contextmanager
def _crowd(address: str, *, wanted: bool) -> Iterator[None]:
    """Run the demo during the block."""
    if not wanted:
        yield
        return
    from keyhole.cli.demo import start_demo

    stop = threading.Event()
    thread = start_demo(address, stop)
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=2.0)
