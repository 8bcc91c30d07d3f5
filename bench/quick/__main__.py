"""``make quick``: the tests that a change since the last commit can break, closest first."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.quick.plugin import VARIABLE
from bench.quick.selection import changed_files, choose

ROOT = Path(__file__).parents[2]
SECONDS = 230.0
"""After so many seconds no test begins: the last ones, and what they compile, take a while too."""
PARTS = {"1": "interpreted and not compiled", "0": "not interpreted or compiled"}
NONE_COLLECTED = 5


def main() -> int:
    """Run the tests and return pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="when to begin no more")
    parser.add_argument("--list", action="store_true", help="only say which tests")
    given = parser.parse_args()
    start, changed = time.time(), changed_files(ROOT)
    chosen = choose(ROOT, changed)
    n_others = len(list((ROOT / "tests").rglob("test_*.py"))) - len(
        [path for path in chosen.files if path.startswith("tests/")]
    )
    print(f"Changed: {', '.join(map(str, changed)) or 'nothing'}.")
    for path in chosen.files:
        only = chosen.words.get(path)
        print(f"  {path}{'' if only is None else ' of ' + ', '.join(only)}")
    if chosen.unknown:
        print(f"No test is known to read {', '.join(chosen.unknown)}.")
    print(f"Left out: {n_others} files of tests; make test runs all.", flush=True)
    if given.list or not chosen.files:
        return 0
    settings = {"words": chosen.words, "until": start + given.seconds}
    worst = 0
    for interpreted, expression in PARTS.items():
        code = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "bench.quick.plugin"),
                *("-n", "auto", "--dist", "load", "--maxschedchunk", "1"),
                *("-m", expression, *chosen.files),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "NUMBA_DISABLE_JIT": interpreted,
                VARIABLE: json.dumps(settings),
            },
            check=False,
        ).returncode
        worst = max(worst, 0 if code == NONE_COLLECTED else code)
    return worst


if __name__ == "__main__":
    sys.exit(main())
