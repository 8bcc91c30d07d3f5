"""Kill commands at random moments, let them go on, and compare with one that was left alone.

    python -m bench.kills              # 100 interrupts and 100 kills, about twenty minutes
    python -m bench.kills --times 10   # ten of each

Every interrupt must end in one sentence and exit code 130, and leave no temporary file. After a few
of either, the same command must give the very files of an undisturbed run. Commands are killed
while they reproduce a study, make an atlas, learn a model, and compile into an empty cache.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
STARTING = 0.25
"""Seconds that Python may take to start before anything of Keyhole runs."""
IN_A_ROW = 5
"""Kills before a command may finish."""
NO_RESULTS = (".code",)
"""Compiled code is compared by what it computes."""
COMMANDS = {
    "reproduce": "reproduce top1-fig1 --quick --out {out} --json",
    "atlas": "atlas --items 2-4 --grades 2 --out {out} --json",
    "learn": "learn {lists} --surrogate kl --top 1 --rounds 1000000 --model {out}/model.npz --json",
    "cache": "learn {lists} --ranker random-lists --rounds 100 --measure DCG --json",
}


@dataclass
class Tally:
    """What came of the signals sent to one command."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Victim:
    """A command in a folder of its own, which can be killed and go on."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.out, self.cache = name, folder / name, folder / f"cache-{name}"
        lists = folder / "lists.txt"
        numbers = random.Random(0)
        lines = [
            f"{i % 3} qid:{i // 5} 1:{numbers.random():.3f} 2:{i % 3 + numbers.random():.3f}\n"
            for i in range(200)
        ]
        lists.write_text("".join(lines))
        self.command = COMMANDS[name].format(out=self.out, lists=lists).split()

    def start(self) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SOURCE_DATE_EPOCH": "0"}
        if self.name == "cache":
            environment["NUMBA_CACHE_DIR"] = str(self.cache)
        return subprocess.Popen(
            [sys.executable, "-m", "keyhole", *self.command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # its whole group can be interrupted, as a terminal does
        )

    def clear(self) -> None:
        for folder in (self.out, self.cache):
            shutil.rmtree(folder, ignore_errors=True)

    def files(self) -> dict[str, bytes]:
        """Return everything that was written but what a kill may leave and nobody reads."""
        return {
            str(path.relative_to(self.out)): path.read_bytes()
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and path.suffix not in NO_RESULTS and not path.name.startswith(".")
        }

    def temporary(self) -> list[Path]:
        return [p for f in (self.out, self.cache) for p in f.rglob(".*") if p.is_file()]

    def finish(self) -> tuple[int, object, dict[str, bytes]]:
        """Let the command end by itself; return its code, what it learnt and all its files."""
        process = self.start()
        printed, _ = process.communicate()
        curve = json.loads(printed).get("curve") if self.name in ("learn", "cache") else None
        return process.returncode, curve, self.files()


def _interrupted_well(process: "subprocess.Popen[str]", errors: str) -> str:
    """Return what is wrong with the way a command ended that was interrupted, if anything."""
    lines = [line for line in errors.splitlines() if line.strip()]
    if process.returncode != 130:
        return f"exit code {process.returncode}: {errors[-400:]}"
    if len(lines) != 1 or not lines[0].startswith("Interrupted"):
        return f"said {errors[-400:]!r}"
    return ""


def attack(
    victim: Victim, kind: signal.Signals, times: int, chance: random.Random, tally: Tally
) -> None:
    """Send a command so many signals, and see it finish after every few of them."""
    # A shell lets its background jobs ignore interrupts, and so would what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    victim.clear()
    begun = time.perf_counter()
    expected = victim.finish()
    longest = time.perf_counter() - begun
    victim.clear()
    n_sent = 0
    while n_sent < times:
        process = victim.start()
        delay = chance.uniform(STARTING, longest)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            to_group = chance.random() < 0.5
            (os.killpg if to_group else os.kill)(process.pid, kind)
        _, errors = process.communicate()
        if process.returncode == expected[0]:  # it was faster than the signal
            tally.counts["finished before"] += 1
            victim.clear()
            continue
        n_sent += 1
        tally.counts[kind.name] += 1
        if kind == signal.SIGINT:
            wrong = _interrupted_well(process, errors)
            left = "" if not victim.temporary() else f"left {victim.temporary()[0].name}"
            if wrong or left:
                tally.faults.append(f"{victim.name} after {delay:.3f} s: {wrong} {left}")
        if n_sent % IN_A_ROW == 0 or n_sent == times:
            if victim.finish() != expected:
                tally.faults.append(f"{victim.name}: other files after {n_sent} {kind.name}")
            tally.counts["resumed"] += 1
            victim.clear()


def main() -> None:
    """Kill every command, print what came of it, and exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--times", type=int, default=100, help="signals of each kind in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=COMMANDS, nargs="+", default=list(COMMANDS))
    given = parser.parse_args()
    chance, tally = random.Random(given.seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(given.only):
            share = len(range(place, given.times, len(given.only)))
            for kind in (signal.SIGINT, signal.SIGKILL):
                attack(Victim(name, Path(folder)), kind, share, chance, tally)
                counts, n_faults = dict(tally.counts), len(tally.faults)
                print(
                    f"{name}: {share} {kind.name}; in all {counts}, {n_faults} faults", flush=True
                )
    for fault in tally.faults:
        print(fault)
    print(f"{len(tally.faults)} faults.")
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
