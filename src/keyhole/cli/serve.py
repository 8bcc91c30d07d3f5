"""The command that runs the service."""

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from keyhole.base.errors import LibraryMissing
from keyhole.cli.exit_codes import one_sentence
from keyhole.cli.terminal import say

_STOPPED = "Stopped; all that was acknowledged is on the disk."


def serve_command(
    db: Annotated[
        str | None, typer.Option(help="The file that holds the log; made if it is not there.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen at; 0: any free.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings.")] = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Let everybody in who reaches the port, without a key."),
    ] = None,
    log_requests: Annotated[
        bool | None, typer.Option("--log-requests", help="Log every request.")
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Begin an empty log where the one before is missing.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Fill an empty log with rankers and simulated crowds.")
    ] = False,
) -> None:
    """Run the service: rank, later feedback, nothing lost.

    Settings come from these options, then from variables KEYHOLE_…, then from the file.
    """
    flags = {
        "db": db,
        "host": host,
        "port": port,
        "insecure": insecure,
        "log_requests": log_requests,
    }
    with one_sentence(interrupted=_STOPPED):
        _serve(flags, config, create=create, demo=demo)


def _serve(flags: Mapping[str, object], config: Path | None, *, create: bool, demo: bool) -> None:
    """Serve until a signal comes; whatever can be wrong is said before that."""
    try:
        from keyhole.service.compilation import Preparer
        from keyhole.service.http.app import build_later
        from keyhole.service.http.server import Server, address_of, bound_socket
        from keyhole.service.settings import load_settings
        from keyhole.service.startup import check_lock, opener
        from keyhole.service.store import open_store
        from keyhole.service.structured_logs import configure_logs
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("keyhole"):
            raise
        raise LibraryMissing(f"The service needs {error.name}", "service") from None
    settings = load_settings(flags, file=config)
    configure_logs(settings.log_level)
    store = open_store(settings.db, create=create)
    try:
        check_lock(settings, store)
        listening = bound_socket(settings)
        preparer = Preparer()
        application = build_later(opener(settings, store, preparer), settings, preparer)
        address = address_of(listening)
        say(f"Keyhole is at {address} and keeps its log in {settings.db}; Ctrl+C stops it.")
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
    """Let a simulated crowd use the service meanwhile."""
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
