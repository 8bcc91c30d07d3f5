"""Compiles what a ranker needs: ``python -m keyhole.service.compile_worker``, its own process.

The code is left on disk, where the service finds it. An order comes as a line on standard input;
the end of that input is the end of whoever ordered it, and so of this process.
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
    """What to prepare: all that a ranker does, or where there is none yet, to judge and make it."""

    config: Config | None = None
    request: RankerRequest | None = None


def carry_out(order: Order) -> None:
    """Compile what an order asks for."""
    if order.request is not None:
        with suppress(KeyholeError):  # what is wrong with it, the service says
            config_of(order.request, "ranker", b"")
        with suppress(KeyholeError):
            check_learnable(order.request)
    if order.config is not None:
        warm_up(order.config)


def _end_with(number: int) -> None:
    """End this process once what it reads from ends, whatever it is doing.

    It reads beside Python's own streams, which must not be in use when the process ends by itself.
    """
    while os.read(number, 1):
        pass
    os._exit(1)


def _be_modest() -> None:
    """Let the service have a processor as soon as it wants one, where the system can do that."""
    with suppress(OSError):
        os.nice(NICENESS)
        if hasattr(os, "SCHED_IDLE"):  # gives way at once, not only at the end of its turn
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main() -> None:
    """Carry out the order on standard input."""
    _be_modest()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    carry_out(order)


if __name__ == "__main__":
    main()
