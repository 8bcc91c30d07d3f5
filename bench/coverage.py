"""``python -m bench.coverage``: how often each lower bound holds, on 2,000 simulated logs each."""

import argparse
import sys

from bench.theory.coverage import SETTINGS, measure_coverage
from keyhole.offline.bounds import BOUNDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description=__doc__)
    parser.add_argument("--logs", type=int, default=2000, help="simulated logs for each bound")
    n_logs = parser.parse_args().logs
    for name, setting in SETTINGS.items():
        print(f"{name}: {setting.about}, {setting.n_rows} rows, true value {setting.truth:g}")
        for bound in BOUNDS:
            if bound == "clopper-pearson" and setting.compare:
                continue  # it is not for differences
            print(f"  {measure_coverage(name, bound, n_logs=n_logs)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
