"""The cache of compiled code never hands out code for something else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import keyhole
from keyhole.kernels.compiled import _assembled, _lasting_name, assemble
from keyhole.measures import measure
from keyhole.rankers import Hedge

PACKAGE = Path(keyhole.__file__).parent


def test_functions_assembled_from_other_kernels_have_other_names():
    first, second = (Hedge(3, measure=name).kernel.update for name in ("AP", "NDCG"))
    assert first is not second
    assert _lasting_name(first) != _lasting_name(second)
    assert "average_precision" in _assembled[first]


def outside_factory(score):
    def scorer(params):
        return score(params)

    return scorer


def test_what_comes_from_outside_is_not_cached():
    score = measure("DCG").kernel.score
    assert _lasting_name(score) == "keyhole.measures.linear.linear_score"
    assert _lasting_name(outside_factory) is None
    assert assemble(outside_factory, score) not in _assembled


def _shifted(package: Path, cache: Path) -> float:
    """Return SumLoss of one list as a process of its own computes it."""
    code = (
        "from keyhole.measures import measure;print(measure('SumLoss').many([[0, 1]], [[0, 1]])[0])"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(ran.stdout)


def test_changing_a_callee_recompiles_its_callers(tmp_path):
    package, cache = tmp_path / "keyhole", tmp_path / "cache"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert _shifted(package, cache) == 2.0
    assert _shifted(package, cache) == 2.0
    callee = package / "measures" / "linear.py"
    source = callee.read_text()
    line = "    return (lane_0 + lane_1) + (lane_2 + lane_3)\n"
    assert source.count(line) == 1
    callee.write_text(source.replace(line, line.rstrip() + " + 100.0\n"))
    assert _shifted(package, cache) == 102.0
