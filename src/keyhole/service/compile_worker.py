"""The compile worker, ``python -m keyhole.service.compile_worker``: fills the disk cache.

It reads one order, a line of JSON, from standard input. When standard input closes, the service
has gone, and the worker exits.
"""

import os
import sys
import threading
from contextlib import suppress

import msgspec

from keyhole.base.errors import KeyholeError
from keyhole.service.commands import RankerRequest
from keyhole.service.configuration import check_learnable, config_of
from keyhole.service.events import Config
from keyhole.service.warm_up import warm_up

NICENESS = 19


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to compile: a ranker's code, or before it exists, the code that checks its request."""

    config: Config | None = None
    request: RankerRequest | None = None


def carry_out(order: Order) -> None:
    """Compile the code of an order."""
    if order.request is not None:
        with suppress(KeyholeError):  # the service reports the error
            config_of(order.request, "ranker", b"")
        with suppress(KeyholeError):
            check_learnable(order.request)
    if order.config is not None:
        warm_up(order.config)


def _end_with(number: int) -> None:
    """Exit as soon as standard input closes, even during compilation.

    Reads the file descriptor directly: at a normal exit no thread may hold the lock of ``stdin``.
    """
    while os.read(number, 1):
        pass
    os._exit(1)


def _be_modest() -> None:
    """Lower the scheduling priority, so that the service preempts the worker."""
    with suppress(OSError):
        os.nice(NICENESS)
        if hasattr(os, "SCHED_IDLE"):  # preempted at once, not at the end of a time slice
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Carry out the order on standard input."""
    _be_modest()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    carry_out(order)


if __name__ == "__main__":
    main()
