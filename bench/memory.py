"""How the memory of one game grows with its horizon, measured in a process of its own.

python -m bench.memory ITEMS SHORT LONG
"""

import json
import subprocess
import sys
import tracemalloc
from typing import NamedTuple

from bench.setup import Setup

SHORT, LONG = 10**5, 10**7


class Growth(NamedTuple):
    """Peaks of the Python and NumPy heaps, and by how much the long game raised the RSS peak."""

    peak_short: int
    peak_long: int
    rss_growth: int


def _peak_rss() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def _peak_heap(setup: Setup) -> int:
    tracemalloc.start()
    setup.play()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _measure(n_items: int, n_short: int, n_long: int) -> Growth:
    short, long = Setup(n_items, n_short), Setup(n_items, n_long)
    for setup in (short, short):  # compiled, and the allocator warm
        setup.play()
    peaks = [_peak_heap(short), _peak_heap(short)]
    before = _peak_rss()
    long.play()
    growth = _peak_rss() - before
    return Growth(peaks[1], _peak_heap(long), growth)


def growth(n_items: int = 20, short: int = SHORT, long: int = LONG) -> Growth:
    """Measure it in a fresh process, whose peak nothing else has raised."""
    command = [sys.executable, "-m", "bench.memory", *map(str, (n_items, short, long))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Growth(*json.loads(done.stdout))


def main() -> int:
    """Print the growth for a number of items and two horizons."""
    print(json.dumps(_measure(*map(int, sys.argv[1:]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
