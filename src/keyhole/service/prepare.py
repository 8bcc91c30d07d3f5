"""Compiles what a ranker needs, in a process of its own: ``python -m keyhole.service.prepare``.

The code is left on disk, where the service finds it. With ``-`` an order comes as a line on
standard input; the end of that input is the end of whoever ordered it, and so of this process.
Without it, what the service takes by default is compiled, which is for building images.
"""

import os
import sys
import threading
from contextlib import suppress
from typing import Any

import msgspec

from keyhole.errors import KeyholeError
from keyhole.service.commands import RankerRequest
from keyhole.service.events import Config
from keyhole.service.specs import config_of
from keyhole.service.warming import warm_up

NICENESS = 19
_DEFAULTS: tuple[dict[str, Any], ...] = (
    {"items": ["tea", "coffee", "milk"]},
    {"n_features": 2, "max_items": 2},
)


class Order(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to prepare: all that a ranker does, or where there is none yet, only to make it."""

    config: Config | None = None
    request: RankerRequest | None = None


def carry_out(order: Order) -> None:
    """Compile what an order asks for."""
    if order.request is not None:
        with suppress(KeyholeError):  # what is wrong with it, the service says
            config_of(order.request, "ranker", b"")
    if order.config is not None:
        warm_up(order.config)


def _end_with(number: int) -> None:
    """End this process once what it reads from ends, whatever it is doing.

    It reads beside Python's own streams, which must not be in use when the process ends by itself.
    """
    while os.read(number, 1):
        pass
    os._exit(1)


def main(arguments: list[str]) -> None:
    """Carry out the order on standard input, or prepare the defaults."""
    if arguments != ["-"]:
        for asked in _DEFAULTS:
            warm_up(config_of(msgspec.convert(asked, RankerRequest), "ranker", b""))
        return
    with suppress(OSError):  # where it may not, it competes with the service as others do
        os.nice(NICENESS)
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    carry_out(order)


if __name__ == "__main__":
    main(sys.argv[1:])
