"""The command that compiles rankers in advance."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import typer

from keyhole.base.errors import InvalidInput, check_integer
from keyhole.base.threads import n_cores
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.terminal import ERR, Json, print_json, progress_bar, say
from keyhole.kernels.code_cache import code_folder
from keyhole.kernels.shipped import baseline_of_this_machine
from keyhole.lab.warming import Case, cases, first_accepted
from keyhole.rankers import RANKERS
from keyhole.rankers.fixed.base import FixedListRanker

_CASES_OF_A_PROCESS = 12
"""Cases per process: its memory grows with the code it loads."""


@command()
def warm_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Rankers of 'keyhole list rankers'; default: all."),
    ] = None,
    jobs: Annotated[int | None, "The number of compiling processes. Default: one per core."] = None,
    baseline: Annotated[
        bool, "Compile for all processors of the last ten years instead of this one."
    ] = False,
    quiet: Annotated[bool, "Hide the progress bar."] = False,
    as_json: Json = False,
) -> None:
    """Compile rankers in advance.

    Compiles each ranker for its usual games, round by round, and for the service. The code is
    cached on disk, and cached code is not compiled again. All rankers take some minutes on all
    cores, one takes some seconds.

        keyhole warm

        keyhole warm keystone recall
    """
    began, found = time.perf_counter(), _all_cases(names or [])
    n_jobs = check_integer(n_cores() if jobs is None else jobs, "--jobs", at_least=1)
    if baseline:
        os.environ.update(baseline_of_this_machine().environment)  # for the child processes
    n_before = _n_files()
    failed = []
    with progress_bar("compiling", len(found), quiet or as_json, "cases") as advance:
        for name, error in _run(found, n_jobs, alone=n_jobs == 1 and not baseline):
            advance(1)
            if error is not None:
                failed.append(f"{name}: {error}")
    report = {
        "cases": len(found),
        "failed": failed,
        "new_files": _n_files() - n_before,
        "folder": None if code_folder() is None else str(code_folder()),
        "seconds": round(time.perf_counter() - began, 3),
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    if failed:
        raise SystemExit(ExitCode.FAULT)


def _print(report: dict[str, Any]) -> None:
    for line in report["failed"]:
        say(f"Not compiled: {line}", console=ERR)
    say(
        f"{report['cases']} cases in {report['seconds']:.0f} s: {report['new_files']} new files of "
        f"compiled code in {report['folder']}."
    )


def _n_files() -> int:
    folder = code_folder()
    return 0 if folder is None else sum(1 for _ in folder.glob("*.code"))


def _all_cases(names: list[str]) -> list[Case]:
    """Return the cases of the library, and those of the service for each ranker."""
    found = cases(names)
    with suppress(ModuleNotFoundError):  # the service is an extra
        from keyhole.service.warm_up import warm_up  # noqa: F401, PLC0415

        found += [(f"{name}, in the service", partial(_serve, name)) for name in names or RANKERS]
    return found


def _serve(name: str) -> None:
    """Call the functions of a ranker that the service uses."""
    from keyhole.service.commands import RankerRequest  # noqa: PLC0415
    from keyhole.service.configuration import config_of  # noqa: PLC0415
    from keyhole.service.warm_up import warm_up  # noqa: PLC0415

    is_fixed = issubclass(RANKERS[name], FixedListRanker)
    items = ["a", "b", "c", "d"]
    kind: dict[str, Any] = {"items": items} if is_fixed else {"n_features": 3, "max_items": 4}
    settings = {"ranking": [0, 1, 2, 3]} if name == "fixed" else {}

    def config(measure: str, k: int) -> Any:
        request = RankerRequest(
            **kind, ranker=name, settings=settings, measure=measure, k=k, accept_linear_regret=True
        )
        return config_of(request, "warm", b"")

    def with_enough_feedback(measure: str) -> Any:
        try:
            return config(measure, 1)
        except InvalidInput:  # it needs feedback on every item
            return config(measure, len(items))

    warm_up(with_enough_feedback(first_accepted(with_enough_feedback)))


def _end_with_the_parent() -> None:
    """End this process when the command is killed."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcome(name: str, call: Callable[[], Any]) -> tuple[str, str | None]:
    try:
        call()
    except Exception as error:
        return name, f"{type(error).__name__}: {error}"
    return name, None


def _run(found: list[Case], n_jobs: int, *, alone: bool) -> Iterator[tuple[str, str | None]]:
    """Yield finished cases with their errors, as they end."""
    if alone:
        yield from (_outcome(*case) for case in found)
        return
    # Forked processes would inherit loaded code and locks. There are new executors for every few
    # cases because executors that replace their own processes can deadlock.
    several = n_jobs * _CASES_OF_A_PROCESS
    for begin in range(0, len(found), several):
        some = found[begin : begin + several]
        with ProcessPoolExecutor(
            min(n_jobs, len(some)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_end_with_the_parent,
        ) as pool:
            futures = {pool.submit(_outcome, *case): case[0] for case in some}
            for future in as_completed(futures):
                try:
                    yield future.result()
                except Exception as error:  # the process has died
                    yield futures[future], f"{type(error).__name__}: {error}"
