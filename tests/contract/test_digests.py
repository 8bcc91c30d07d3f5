"""The games of every ranker are those of the version before this one, ranking by ranking.

``digests.json`` holds a digest of the rankings that every example of the contract suite shows, the
total of their scores and a sum over the state it ends with. What changes on purpose is written
anew (``python -m tests.contract.test_digests --write``) and named in the changelog. Interpreted
kernels play the same games to the last bit.
"""

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keyhole.contracts.rankers import Ranker
from keyhole.contracts.worlds import World
from keyhole.game.play import play
from keyhole.worlds.flips import Flips
from tests.contract import test_contextual, test_contracts
from tests.contract.few_lists import EQUAL
from tests.contract.test_contextual import EXAMPLES as LIST_EXAMPLES, _make
from tests.contract.test_contracts import RANKER_EXAMPLES

FILE = Path(__file__).with_name("digests.json")
ROUNDS = 60


def fingerprint(ranker: Ranker, world: World) -> list[Any]:
    """Return a digest of the rankings of a game, its total score and a sum over its last state."""
    run = ranker.run
    trace = play(
        ranker, world, rounds=ROUNDS, seed=ranker.seed, runs=run + 1, record=True,
        measure=getattr(ranker, "measure", None),
    )  # fmt: skip
    rankings = np.ascontiguousarray(trace.logs[run].rankings)
    arrays = [a for n, a in trace.states[run].items() if n not in ("next_round", "spec")]
    weighted = sum(float(a.ravel() @ np.arange(1, a.size + 1)) for a in arrays)
    digest = hashlib.sha256(rankings.tobytes()).hexdigest()[:16]
    return [digest, float(trace.scores[run, -1]), weighted]


def games() -> dict[str, tuple[Ranker, World]]:
    """Return a game for every example of the contract suite."""
    fixed = {
        f"{row}, {label}": (make(), world or Flips(make().n_items, n_relevant=1))
        for row, examples in RANKER_EXAMPLES.items()
        if row not in test_contracts.UNDIGESTED
        for label, make, world in examples
    }
    lists: dict[str, tuple[Ranker, World]] = {
        f"{row}, {json.dumps(options)}": (_make(row, options), EQUAL)
        for row, many in LIST_EXAMPLES.items()
        if row not in test_contextual.UNDIGESTED
        for options in many
    }
    return {**fixed, **lists}


@pytest.fixture(scope="module")
def known():
    return json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def interpreted():
    """Return what a process without compiled code makes of all games, in seconds."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.contract.test_digests"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=FILE.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_every_example_has_a_digest(known):
    assert set(known) == set(games())


@pytest.mark.parametrize("name", games())
def test_games_are_those_of_before(name, known, interpreted):
    digest, total, weighted = fingerprint(*games()[name])
    assert digest == known[name][0]
    # The C library's exp and log differ by the last bit between processors.
    assert [total, weighted] == pytest.approx(known[name][1:], rel=1e-9, abs=1e-9)
    assert interpreted[name] == [digest, total, weighted]


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning)
    found = {name: fingerprint(*game) for name, game in games().items()}
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.write(json.dumps(found) + "\n")
