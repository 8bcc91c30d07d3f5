"""Every promise about speed and memory: ``python -m bench``, ``--quick`` for shorter games.

Each part runs in a process of its own, one after the other: ``bench.game``, ``bench.lists``,
``bench.letor``, ``bench.recall``, ``bench.threads``, ``bench.load`` and ``bench.endurance`` are
modules that can be run by themselves.
"""

import argparse
import subprocess
import sys

PARTS = {
    "game": [],
    "lists": ["--peers"],
    "letor": [],
    "recall": [],
    "threads": [],
    "load": [],
    "endurance": [],
}


def main() -> int:
    """Run all parts, and return 1 if one of them broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    chosen, others = parser.parse_known_args()  # the others are for the parts
    failed = [
        part
        for part in chosen.only
        if subprocess.run(
            [sys.executable, "-m", f"bench.{part}", *PARTS[part], *others], check=False
        ).returncode
    ]
    print(f"Not kept: {', '.join(failed)}." if failed else "All promises are kept.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
