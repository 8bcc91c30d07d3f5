"""The commands that check, back up, restore, copy and export the log of a service."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import sleep
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from keyhole.base.display import counted
from keyhole.base.errors import InvalidInput, check_choice, check_number
from keyhole.base.files import check_file, shortened, writing_atomically
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode, VerdictIsNo
from keyhole.cli.terminal import OUT, Json, escape, print_json, progress_bar, say

if TYPE_CHECKING:
    from keyhole.service.store.base import Store

db_commands = typer.Typer(
    name="db",
    help="Check, back up, restore, copy and export the log of the service.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

Log = Annotated[str, typer.Argument(metavar="LOG", help="The log, as in keyhole serve --db.")]


@db_commands.command(name="check")
@command(of_service=True)
def check_log_command(log: Log, as_json: Json = False) -> None:
    """Check the integrity of a log, and that its replay reproduces the snapshots.

    Reads every page of the file, checks the sequence numbers, hash links and index entries of all
    events, and replays them from the first, comparing state hashes with the snapshots. May run
    while the service runs. Exits with 1 if the log is damaged.

        keyhole db check service.db
    """
    result = _checked(log, quiet=as_json)
    if as_json:
        print_json(result)
    else:
        _show(result)
    if result["problems"]:
        raise SystemExit(ExitCode.NO)


@db_commands.command(name="migrate")
@command(of_service=True)
def migrate_command(
    log: Log,
    grant: Annotated[
        str | None,
        "A role of PostgreSQL that keyhole serve logs in as; it gets the rights it needs.",
    ] = None,
) -> None:
    """Create a log in PostgreSQL, or bring one to the newest schema, as its owner.

    The owner may be another role than that of the service, which can then insert and select events
    but neither change nor delete them. Stop the service first. A log in a file needs no migration:
    keyhole serve does it.

        keyhole db migrate postgresql://owner@db.example/keyhole --grant keyhole
    """
    from keyhole.service.store import migrate
    from keyhole.service.store.addresses import shown_address

    migrate(log, grant)
    say(f"{shortened(shown_address(log))} has the newest schema.")


@db_commands.command(name="copy")
@command(of_service=True)
def copy_command(
    log: Log,
    to: Annotated[str, typer.Argument(metavar="TO", help="The new log: a file or a URL.")],
) -> None:
    """Copy a log to another kind of store, with its keys and every hash as it was.

    TO is empty, or an earlier copy, of which only what is new is copied: so copy once while the
    service runs, stop it, copy again and start it on TO. In PostgreSQL its owner does that.

        keyhole db copy service.db postgresql://owner@db.example/keyhole
        keyhole db copy postgresql://owner@db.example/keyhole copy.db
    """
    from keyhole.service.store import migrate, open_store
    from keyhole.service.store.addresses import shown_address
    from keyhole.service.store.transfer import n_missing, transfer

    with _opened(log) as source:
        migrate(to)
        with (
            open_store(to) as target,
            progress_bar("Copied", n_missing(source, target), False, "events") as advance,
        ):
            transfer(source, target, advance)
    said = [shortened(shown_address(each)) for each in (log, to)]
    say(f"{said[0]} has been copied to {said[1]}.")


@db_commands.command(name="backup")
@command(of_service=True)
def backup_command(
    log: Log,
    to: Annotated[Path, typer.Argument(metavar="TO", help="The new file.")],
) -> None:
    """Back up a log to a file, also while the service runs, and check the copy.

    The copy is a consistent state of the log and includes the access keys: protect it like the
    log.

        keyhole db backup service.db monday.db
    """
    from keyhole.service.store import file_of
    from keyhole.service.store.addresses import shown_address
    from keyhole.service.store.backup import copy_log, copy_store
    from keyhole.service.store.integrity import n_events

    named, file = shortened(shown_address(log)), file_of(log)
    if file is not None:
        copy_log(file, to, lambda copy: _must_be_whole(copy, named, replay=False))
    else:
        with _opened(log) as source:
            total = sum(n_events(source).values())
            with progress_bar("Copied", total, False, "events") as advance:
                check = partial(_must_be_whole, named=named, replay=False)
                copy_store(source, to, check, advance)
    say(f"{named} has been backed up to {shortened(to)}.")


@db_commands.command(name="restore")
@command(of_service=True)
def restore_command(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file written by db backup.")],
    log: Annotated[str, typer.Argument(metavar="LOG", help="The new log: a file or a URL.")],
) -> None:
    """Restore a log from a backup, after checking it; never overwrites a log.

    keyhole db restore monday.db service.db
    """
    from keyhole.service.store import file_of, migrate, open_store
    from keyhole.service.store.addresses import shown_address
    from keyhole.service.store.backup import copy_log
    from keyhole.service.store.file_lock import forget_acknowledged
    from keyhole.service.store.transfer import n_missing, transfer

    said, file = shortened(shown_address(log)), file_of(log)
    if file is not None:
        copy_log(backup, file, lambda copy: _must_be_whole(copy, shortened(backup), replay=True))
        forget_acknowledged(file)
    else:
        migrate(log)
        with _opened(str(backup)) as source, open_store(log) as target:
            if target.rankers() or target.keys():
                raise InvalidInput(f"{said} must be empty: nothing is overwritten.")
            _must_be_whole(backup, shortened(backup), replay=True)
            with progress_bar("Copied", n_missing(source, target), False, "events") as advance:
                transfer(source, target, advance)
    say(f"{said} has been restored from {shortened(backup)}.")


@db_commands.command(name="export")
@command(of_service=True)
def export_command(
    log: Log,
    ranker: Annotated[str, typer.Argument(metavar="RANKER", help="The ranker.")],
    out: Annotated[Path, "The file: .ndjson for all events, .parquet for a table of impressions."],
    after: Annotated[int, "Skip events up to this number."] = 0,
) -> None:
    """Export the events of a ranker.

    A .ndjson file has a line per event, as the events endpoint of the service. A .parquet file
    has a row for each of the first k items of every list, joined with the feedback; columns have
    the names of the Open Bandit Pipeline: action, position, pscore, reward, context.

        keyhole db export service.db shop --out shop.parquet
    """
    check_choice(out.suffix, "The ending of --out", _WRITERS)
    check_file(out, "--out")
    with _opened(log) as store:
        check_choice(ranker, "RANKER", store.rankers() or ["(there is none)"])
        with writing_atomically(out) as target:
            n_rows = _WRITERS[out.suffix](store, ranker, after, target)
    say(f"{counted(n_rows, 'event' if out.suffix == '.ndjson' else 'row')} in {shortened(out)}.")


@db_commands.command(name="outbox")
@command(of_service=True)
def outbox_command(
    log: Log,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the copy.")],
    every: Annotated[float | None, "Go on, and copy what is new every so many seconds."] = None,
) -> None:
    """Copy new events to hive-partitioned Parquet, for polars, DuckDB or Spark.

    Writes FOLDER/ranker=NAME/day=YYYY-MM-DD/FIRST-LAST.parquet, also while the service runs. Every
    event is in one file, without gaps, however often the copy is interrupted and run again. The
    column `body` has what belongs to the kind of an event, as JSON.

        keyhole db outbox service.db copy/ --every 60
    """
    from keyhole.service.store.integrity import n_events
    from keyhole.service.store.outbox import copy_events, held, n_copied

    if every is not None:
        check_number(every, "--every", at_least=1.0)
    with _opened(log) as store, held(folder):
        while True:
            total = sum(n_events(store).values()) - n_copied(store, folder)
            with progress_bar("Events", total, every is not None, "events") as advance:
                n_new = copy_events(store, folder, advance)
            if every is None:
                say(f"{counted(n_new, 'new event')} in {shortened(folder)}.")
                return
            if n_new:
                say(f"{counted(n_new, 'new event')} in {shortened(folder)}.")
            sleep(every)


# --------------------------------------------------------------------------- check


def _opened(log: str) -> "Store":
    from keyhole.service.store import open_store

    return open_store(log, read_only=True)


def _checked(log: str, *, quiet: bool, replay: bool = True) -> dict[str, Any]:
    """Return the result of a check as plain data."""
    from keyhole.service.errors import StoreDamaged
    from keyhole.service.replay import check
    from keyhole.service.store.addresses import shown_address
    from keyhole.service.store.integrity import check_log, n_events

    result: dict[str, Any] = {"file": shown_address(log), "problems": [], "rankers": []}
    try:
        with _opened(log) as store:
            total = sum(n_events(store).values())
            with progress_bar("Links", total, quiet, "events") as advance:
                check_log(store, advance)
            if replay:
                with progress_bar("Replay", total, quiet, "events") as advance:
                    for found in check(store, on_progress=_counted(advance)):
                        result["rankers"].append(found._asdict())
                        result["problems"] += found.problems
    except StoreDamaged as error:
        result["problems"].append(str(error))
    return result


def _counted(advance: Callable[[int], None]) -> Callable[[str, int], None]:
    """Adapt ``advance`` of a progress bar to cumulative counts per ranker."""
    seen: dict[str, int] = {}

    def on_progress(ranker: str, n_events: int) -> None:
        advance(n_events - seen.get(ranker, 0))
        seen[ranker] = n_events

    return on_progress


def _must_be_whole(copy: Path, named: str, *, replay: bool) -> None:
    problems = _checked(str(copy), quiet=False, replay=replay)["problems"]
    if problems:
        raise VerdictIsNo(f"{named} is damaged: {problems[0]}")


def _show(result: dict[str, Any]) -> None:
    for ranker in result["rankers"]:
        n_events, n_snapshots = ranker["n_events"], ranker["n_snapshots"]
        word = "[bold red]NO[/]  " if ranker["problems"] else "[green]PASS[/]"
        OUT.print(
            f"{word} {escape(ranker['ranker'])}: {counted(n_events, 'event')}, "
            f"{counted(n_snapshots, 'snapshot')}, "
            f"state {ranker['sha256'][:16] or 'unknown'}",
            soft_wrap=True,
            highlight=False,
        )
    for problem in result["problems"]:
        say(problem, first="Damaged: ", style="bold red")
    if not result["problems"]:
        say(f"{shortened(result['file'])} is intact.")


# --------------------------------------------------------------------------- export


def _write_ndjson(store: "Store", ranker: str, after: int, target: IO[bytes]) -> int:
    from keyhole.service.recovery import outcome_in
    from keyhole.service.store.export import event_records, write_ndjson

    outcome = outcome_in(store, ranker)
    return write_ndjson(event_records(store, ranker, after=after, outcome=outcome), target)


def _write_parquet(store: "Store", ranker: str, after: int, target: IO[bytes]) -> int:
    from keyhole.service.recovery import outcome_in
    from keyhole.service.store.export import impressions, write_parquet

    outcome = outcome_in(store, ranker)
    return write_parquet(impressions(store, ranker, after=after, outcome=outcome), target)


_WRITERS: dict[str, Callable[["Store", str, int, IO[bytes]], int]] = {
    ".ndjson": _write_ndjson,
    ".parquet": _write_parquet,
}
