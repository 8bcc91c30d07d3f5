"""What the code of ``numbers.toml`` can use, and the process that runs it.

    python -m bench.numbers_tools FOLDER < code > values

FOLDER is for what studies write. The code fills the dictionary ``values``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.numbers_quoted import CLAIM
from keyhole.base.files import plain
from keyhole.experiment.description import Experiment
from keyhole.lab.run import Reproduction, reproduce
from keyhole.lab.study import find_study

FOLDER = Path(sys.argv[1]) if len(sys.argv) == 2 else Path("out/numbers")


def keyhole(*arguments: str) -> dict[str, Any]:
    """Return what a command prints with ``--json``."""
    command = [sys.executable, "-m", "keyhole", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def reproduced(key: str) -> Reproduction:
    """Run ``keyhole reproduce KEY`` at its full horizon, and return what it left in its folder."""
    folder = FOLDER / key
    command = [sys.executable, "-m", "keyhole", "reproduce", key, "--out", str(folder)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    result = reproduce(find_study(key), folder)
    if result.n_resumed != len(result.curves):
        raise RuntimeError(f"{key} must have been played by its command, and was not.")
    return result


def of_study(result: Reproduction) -> dict[str, float]:
    """Return where curves end, with standard errors, which claims hold, and how many."""
    values = {}
    for label, curve in result.curves.items():
        values[label], values[f"{label} ±"] = curve.at()
    for verdict in result.verdicts:
        if verdict.holds is not None:
            values[f"{CLAIM}{verdict.claim}"] = float(verdict.holds)
    for word, outcome in {"hold": True, "fail": False, "not judged": None}.items():
        values[f"claims that {word}" if outcome is not None else "claims not judged"] = sum(
            verdict.holds is outcome for verdict in result.verdicts
        )
    return values


def mean_of_lists(ranker: str, world: str, options: dict[str, Any], **more: Any) -> float:
    """Return the mean score of the lists that a ranker showed, on a shape or on ``data:``."""
    if world.startswith("data:"):
        where: dict[str, Any] = {"world": world}
    else:
        where = {"world": "graded", "world_options": {"shape": world}}
    usual: dict[str, Any] = {"rounds": 100_000}
    told = Experiment(ranker=ranker, ranker_options=options, **{**usual, **where, **more})
    return told.play().average_score.mean


def main() -> int:
    names: dict[str, Any] = {
        "values": {},
        "np": np,
        "keyhole": keyhole,
        "reproduced": reproduced,
        "of_study": of_study,
        "mean_of_lists": mean_of_lists,
    }
    code = compile(sys.stdin.read(), "numbers.toml", "exec")
    shown = os.dup(1)
    os.dup2(2, 1)  # what the code prints is no part of the values
    exec(code, names)  # noqa: S102 - the code is this project's own table
    with os.fdopen(shown, "w") as output:
        json.dump(plain(names["values"]), output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
