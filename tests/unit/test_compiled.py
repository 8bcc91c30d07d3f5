"""The cache of compiled code never hands out code for something else."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import keyhole
from keyhole.kernels import code_cache
from keyhole.kernels.code_cache import NotCompiled, only_from_disk
from keyhole.kernels.compiled import _assembled, _lasting_name, assemble, function_of
from keyhole.kernels.draw import stream_of
from keyhole.kernels.whole_program import compile_program
from keyhole.measures import measure
from keyhole.rankers.fixed.hedge import Hedge

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


COUNTED = """
import json, sys
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        function = happened.data["dispatcher"].py_func
        if function.__module__.startswith("keyhole."):
            compiled.append(function.__qualname__)
    def on_end(self, happened): ...
event.register("numba:compile", Listener())
from keyhole.measures import measure
values = [float(measure(name).many([[0, 1]], [[0, 1]])[0]) for name in sys.argv[1:]]
print(json.dumps([values, compiled]))
"""


def start(cache: Path, *measures: str, package: Path = PACKAGE) -> subprocess.Popen[str]:
    """Start a process that measures one list, and tells what it had to compile."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", COUNTED, *measures]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def told(process: subprocess.Popen[str]) -> tuple[list[float], list[str]]:
    out, _ = process.communicate()
    assert process.returncode == 0
    values, compiled = json.loads(out)
    return values, compiled


def changed(file: Path, before: str, after: str) -> None:
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, after))


def test_a_change_makes_cold_what_depends_on_it_and_nothing_else(tmp_path):
    package, cache = tmp_path / "keyhole", tmp_path / "cache"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    both = ("SumLoss", "RR")
    values, compiled = told(start(cache, *both, package=package))
    assert values == [2.0, 0.5]
    assert len(compiled) > 6
    assert told(start(cache, *both, package=package)) == (values, [])  # all of it is on disk
    # A comment, a docstring and a line further down change no code.
    changed(
        package / "measures" / "linear.py",
        "    return (lane_0 + lane_1) + (lane_2 + lane_3)\n",
        "    # so that lanes are independent\n\n    return (lane_0 + lane_1) + (lane_2 + lane_3)\n",
    )
    assert told(start(cache, *both, package=package)) == (values, [])
    changed(
        package / "measures" / "linear.py",
        "    return (lane_0 + lane_1) + (lane_2 + lane_3)\n",
        "    return (lane_0 + lane_1) + (lane_2 + lane_3) + 100.0\n",
    )
    assert told(start(cache, "RR", package=package)) == ([0.5], [])
    values, again = told(start(cache, *both, package=package))
    assert values == [102.0, 0.5]
    assert 0 < len(again) < len(compiled)
    assert "weighted_sum" in again


def test_processes_that_want_the_same_code_compile_it_once(tmp_path):
    _, alone = told(start(tmp_path / "alone", "ERR", "AP"))
    crowd = [start(tmp_path / "shared", *names) for names in (("ERR", "AP"), ("AP", "ERR")) * 2]
    answers = [told(process) for process in crowd]
    assert all(sorted(values) == sorted(answers[0][0]) for values, _ in answers)
    together = [name for _, compiled in answers for name in compiled]
    assert sorted(together) == sorted(alone)
    assert sum(1 for _, compiled in answers if compiled) > 1  # the work was shared


def test_code_is_asked_for_from_disk_alone_by_one_thread_only(tmp_path, monkeypatch):
    monkeypatch.setattr(code_cache, "code_folder", lambda: tmp_path)

    def twice(x):
        return x + x

    first, second = (compile_program(twice, "tests.twice", {}) for _ in range(2))
    with only_from_disk():
        with pytest.raises(NotCompiled, match="no compiled code of"):
            first(3)
        with ThreadPoolExecutor(1) as pool:  # a thread of its own may compile
            assert pool.submit(first, 3).result() == 6
        assert second(3) == 6  # which left its code


def test_a_function_is_found_again_by_its_identity():
    for function, identity in list(_assembled.items()):
        assert function_of(identity) is function
    loop = Hedge(3, measure="AP").kernel.update
    assert function_of(_assembled[loop]) is loop
    assert function_of("keyhole.kernels.draw.stream_of") is stream_of


WHOEVER_CALLS = """
import sys
import numba, numpy as np
from keyhole.kernels.checking import all_finite, first_bad_list
from keyhole.kernels.compiled import kernel, rare_kernel

def check(numbers, starts, rankings, taken):
    return all_finite(numbers), first_bad_list(starts, rankings, taken)

callers = {
    "kernel": kernel(check),
    "rare": rare_kernel(check),
    "njit": numba.njit(check),
    "fastmath": numba.njit(fastmath=True)(check),
}
lists = np.array([0, 2, 5]), np.array([1, 0, 2, 0, 2]), np.zeros(3, bool)
for name in sys.argv[1:]:
    for numbers in ([1.0, 2.0], [1.0, np.nan], [np.inf, 2.0]):
        print(*callers[name](np.array(numbers), *lists))
"""


@pytest.mark.parametrize(
    "processes",
    [
        (["fastmath"], ["kernel", "njit"]),
        (["kernel"], ["rare"], ["fastmath"]),
        (["rare", "fastmath"], ["kernel"], ["njit"]),
        (["njit"], ["rare", "kernel"]),
    ],
    ids=lambda processes: ", ".join(" ".join(names) for names in processes),
)
def test_a_kernel_is_the_same_whoever_has_it_compiled_first(tmp_path, processes):
    for callers in processes:
        ran = subprocess.run(
            [sys.executable, "-c", WHOEVER_CALLS, *callers],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.splitlines() == ["True 1", "False 1", "False 1"] * len(callers)
