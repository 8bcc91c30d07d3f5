"""What a new user waits for: CPU seconds from an empty code cache, beside another version's.

python -m bench.cold --against REV             four first lines, this tree and REV in turns
python -m bench.cold --against REV --speed     games and lists of both, compiled: as fast?
python -m bench.cold --wheel dist/….whl        three commands in a new environment with the wheel
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.report import Report

ROOT = Path(__file__).parents[1]
SHARE = 0.55
"""The most of the other version's CPU seconds that a first line may take."""
SLOWER = 1.03
WHEEL_BARS = {"play": 5.0, "learn": 6.0, "serve": 4.0}

_LISTS = """
import numpy as np
numbers = np.random.default_rng(0)
features = numbers.random((1_600, 4))
lists = keyhole.Queries(features, np.floor(3 * features[:, 0]), np.arange(0, 1_601, 8))
"""
ROWS = {
    "play RTopK": "trace = keyhole.play(keyhole.RTopK(20, k=1, horizon=1_000), keyhole.Flips(20),"
    " measure='DCG', rounds=1_000, runs=2); print(trace.average_regret.mean)",
    "play Keystone": "trace = keyhole.play(keyhole.Keystone(20, k=1), keyhole.Flips(20),"
    " measure='DCG', rounds=1_000, runs=2); print(trace.average_regret.mean)",
    "keystone, one round": "ranker = keyhole.ranker('keystone', items=['a', 'b', 'c'], k=1,"
    " seed=3); shown = ranker.rank(); ranker.update(shown, 1); print(shown.items)",
    "play Recall": _LISTS + "print(keyhole.play(keyhole.Recall(4, 8, k=1), lists,"
    " measure='NDCG@10', rounds=500).average_score)",
}
_TIMED = """
import time
def timed(name, make, world, rounds, **options):
    game = lambda n: keyhole.play(make, world, rounds=n, n_threads=1, **options)
    game(100)
    best = min((began := time.process_time(), game(rounds), time.process_time() - began)[-1]
               for _ in range(3))
    print(name, best / rounds * 1e9)
timed("rtopk 20", keyhole.RTopK(20, horizon=10**5, k=1), keyhole.Flips(20), 400_000)
timed("rtopk 1000", keyhole.RTopK(1000, horizon=10**4, k=1), keyhole.Flips(1000), 20_000)
timed("keystone 20", keyhole.Keystone(20, k=1), keyhole.Flips(20), 200_000)
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.top_k import ContextualRTopK
numbers = np.random.default_rng(0)
rows = numbers.random((20_000, 46)).astype(np.float32)
data = keyhole.Queries(rows, np.floor(3 * rows[:, 0]).astype(float), np.arange(0, 20_001, 20))
timed("contextual-rtopk", ContextualRTopK(46, 20, mix=0.3), data, 40_000)
timed("listnet", Descent(46, 20), data, 40_000)
timed("recall", keyhole.Recall(46, 20, k=1), data, 20_000)
"""


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """Give a checkout of another version."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), revision],
                       cwd=ROOT, check=True)  # fmt: skip
        try:
            yield tree
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True
            )


def ran(command: list[str], environment: Mapping[str, str], cwd: Path = ROOT) -> tuple[float, str]:
    """Return the CPU seconds of a command with all processes it starts, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def first_line(tree: Path, script: str) -> tuple[float, str]:
    """Return the CPU seconds of a script from an empty cache, and what it printed."""
    with tempfile.TemporaryDirectory() as cache:
        where = {"PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": cache}
        return ran([sys.executable, "-c", f"import keyhole\n{script}"], where)


def compare_cold(other: Path, turns: int, report: Report) -> None:
    """Judge the first lines of this tree against another's."""
    for name, script in ROWS.items():
        ours, theirs = [], []
        for _ in range(turns):
            seconds, printed = first_line(other, script)
            theirs.append(seconds)
            seconds, own = first_line(ROOT, script)
            ours.append(seconds)
            if own != printed:
                sys.exit(f"{name}: the results differ, {own!r} and {printed!r}.")
        measured = f"{median(ours):.1f} of {median(theirs):.1f} CPU s"
        report.at_most(
            f"{name}, from an empty cache", measured, median(ours) / median(theirs), SHARE
        )


def _speeds(tree: Path, cache: str) -> dict[str, float]:
    where = {"PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": cache}
    _, printed = ran([sys.executable, "-c", f"import keyhole, numpy as np\n{_TIMED}"], where)
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in printed.splitlines()
    }


def compare_speed(other: Path, turns: int, report: Report) -> None:
    """Judge how fast compiled games of this tree are against another's, in turns."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        _speeds(ROOT, ours), _speeds(other, theirs)  # compiles
        rounds = [(_speeds(other, theirs), _speeds(ROOT, ours)) for _ in range(turns)]
    for name in rounds[0][0]:
        before, now = (min(turn[side][name] for turn in rounds) for side in (0, 1))
        measured = f"{now:,.0f} for {before:,.0f} ns a round"
        report.at_most(f"{name}, compiled", measured, now / before, SLOWER)


_SERVED = """
import json, pathlib, re, signal, subprocess, sys, time, urllib.request
server = subprocess.Popen([sys.argv[1], "serve", "--db", "cold.db", "--port", "0"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
found = (re.search(r"http://[^ ]+:[0-9]+", line) for line in server.stdout)
address = next(each[0] for each in found if each)
def ask(method, path, body):
    request = urllib.request.Request(address + path, json.dumps(body).encode(), method=method,
                                     headers={"content-type": "application/json"})
    for _ in range(600):
        try:
            with urllib.request.urlopen(request) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise SystemExit(error.read().decode())
            time.sleep(0.1)
ask("PUT", "/v1/rankers/books", {"items": ["a", "b", "c", "d"]})
shown = ask("POST", "/v1/rankers/books/rank", {})
print(ask("PUT", f"/v1/rankers/books/events/{shown['event_id']}/feedback", {"relevance": [1]}))
server.send_signal(signal.SIGTERM)
server.wait()
"""


def measure_wheel(wheel: Path, lists: Path, report: Report) -> None:
    """Judge three commands in a new environment with the wheel and an empty cache."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python, keyhole = folder / "env/bin/python", folder / "env/bin/keyhole"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        ran([*pip, "--require-hashes", "-r", str(ROOT / "requirements.lock")], {})
        ran([*pip, "--no-deps", str(wheel)], {})
        # Which fonts there are is found out once, at the first figure.
        ran([str(python), "-c", "import matplotlib.pyplot, keyhole, numba"], {}, folder)
        commands = {
            "play": [str(keyhole), "play"],
            "learn": [str(keyhole), "learn", str(lists), "--rounds", "1000"],
            "serve": [str(python), "-c", _SERVED, str(keyhole)],
        }
        for command, line in commands.items():
            with tempfile.TemporaryDirectory() as cache:
                where = {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": ""}
                seconds, _ = ran(line, where, folder)
                n_files = sum(1 for _ in Path(cache).rglob("*.code"))
            measured = f"{seconds:.1f} CPU s, {n_files} functions compiled"
            report.at_most(f"wheel: {command}", measured, seconds, WHEEL_BARS[command])


def main() -> int:
    """Measure what was asked for; return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.cold", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--against", metavar="REV", help="another version, by git's name for it")
    parser.add_argument("--turns", type=int, default=1, help="times that each is measured (1)")
    parser.add_argument(
        "--speed", action="store_true", help="compiled games in place of first lines"
    )
    parser.add_argument("--wheel", type=Path, help="a wheel that carries compiled code")
    parser.add_argument("--lists", type=Path, help="a LETOR file for `keyhole learn`")
    options = parser.parse_args()
    report = Report(quick=False)
    if options.wheel:
        measure_wheel(options.wheel.resolve(), options.lists.resolve(), report)
    elif options.against:
        with tree_of(options.against) as other:
            compare = compare_speed if options.speed else compare_cold
            compare(other, options.turns, report)
    else:
        parser.error("one of --against and --wheel must be given")
    for bar in report.bars:
        verdict = "kept" if bar.passed else "BROKEN"
        print(f"{bar.promise}: {bar.measured}, {bar.figure:.3f}, {bar.bar}: {verdict}")
    print(json.dumps({bar.promise: bar.figure for bar in report.bars}))
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
