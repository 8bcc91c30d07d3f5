"""``python -m bench.copying``: copy a log from a file to PostgreSQL and back; every hash stays.

    python -m bench.copying --events 1000000

Exits with 1 if a hash differs, or if fewer than 20,000 events a second are copied either way.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from keyhole.service.store import open_store
from keyhole.service.store.base import Store
from keyhole.service.store.integrity import n_events
from keyhole.service.store.transfer import transfer
from tests.service.addresses import address_of, as_owner
from tests.service.chains import more

N_RANKERS = 10
SIZE = 400
"""Bytes of the body of an event, about those of a list of a dozen items."""
PROMISED = 20_000
"""Events a second."""
_AT_ONCE = 2_000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, there, back = (
            f"sqlite:{folder / 'first.db'}",
            as_owner(address_of("postgresql", folder)),
            f"sqlite:{folder / 'back.db'}",
        )
        with open_store(first) as store:
            for number in range(N_RANKERS):
                for begin in range(0, asked.events // N_RANKERS, _AT_ONCE):
                    n_more = min(_AT_ONCE, asked.events // N_RANKERS - begin)
                    more(store, n_more, ranker=f"ranker {number}", size=SIZE)
        kept = True
        for source, target in ((first, there), (there, back)):
            with open_store(source, read_only=True) as old, open_store(target) as new:
                kept &= copied(old, new)
        return 0 if kept else 1


def copied(source: Store, target: Store) -> bool:
    """Copy a log, and return whether that was fast enough and kept every hash."""
    began, worked = time.perf_counter(), _cpu()
    transfer(source, target, lambda _: None)
    seconds, worked = time.perf_counter() - began, _cpu() - worked
    n_copied = sum(n_events(target).values())
    names = source.rankers()
    same = names == target.rankers() and all(
        source.last(name) == target.last(name) for name in names
    )
    print(
        f"{type(source).__name__} to {type(target).__name__}: {n_copied} events in {seconds:.1f} s "
        f"({worked:.1f} s of CPU here), {n_copied / seconds:,.0f} a second; "
        f"{'every hash is the same' if same else 'HASHES DIFFER'}"
    )
    return same and n_copied / seconds >= PROMISED


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
