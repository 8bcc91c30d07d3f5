"""Code that ships with the package: used where it fits, passed over where it does not."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bench.wheel import pack
from keyhole.kernels.shipped import BASELINES, baseline_target, host_features
from keyhole.kernels.whole_program import Program

MACHINE = platform.machine()
pytestmark = pytest.mark.skipif(
    MACHINE not in BASELINES
    or not all(host_features().get(each) for each in BASELINES[MACHINE].needed),
    reason=f"this {MACHINE} is no baseline processor",
)
MEASURED = """
import json, sys
from contextlib import nullcontext
from pathlib import Path
from keyhole.kernels import code_cache, shipped
archive, how, alone = sys.argv[1:]
if archive:
    shipped.ARCHIVE = Path(archive)
exec(how)
from keyhole.measures import measure
within = code_cache.only_from_disk() if alone else nullcontext()
relevance, rankings = [[0, 1, 2], [2, 1, 0]], [[2, 0, 1], [0, 1, 2]]
try:
    with within:
        found = [measure(name).many(relevance, rankings).tolist() for name in ("DCG", "ERR")]
except code_cache.NotCompiled as error:
    found = str(error)
print(json.dumps(found))
"""
LACKS_FMA = "shipped.host_features = lambda: {'avx2': True}"


def measured(cache, archive="", how="", alone=True, **environment):
    """Return what a process of its own measures, with compiled code alone unless told otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(archive), how, "alone" if alone else ""],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An archive with code for the baseline, and what native code computes."""
    folder = tmp_path_factory.mktemp("shipped")
    native = measured(folder / "native", alone=False)
    assert measured(folder / "code", alone=False, **BASELINES[MACHINE].environment) == native
    archive = folder / "shipped.zip"
    pack(sorted((folder / "code").rglob("*.code")), archive)
    return archive, native


def files(cache):
    return sorted(cache.rglob("*.code"))


def test_nothing_is_compiled_where_the_code_came_with_the_package(made, tmp_path):
    archive, native = made
    assert measured(tmp_path, archive) == native
    assert files(tmp_path) == []
    assert "no compiled code" in measured(tmp_path)  # without the archive


def test_native_code_that_is_there_is_preferred(made):
    archive, native = made
    broken = "shipped.read_shipped = code_cache.read_shipped = None"
    assert measured(archive.parent / "native", archive, broken) == native


@pytest.mark.parametrize(
    ("how", "environment"),
    [
        (LACKS_FMA, {}),
        ("", {"NUMBA_CPU_NAME": "generic"}),
        ("", {"NUMBA_OPT": "1"}),
        ("from keyhole.kernels import whole_program; whole_program.stamp_of = lambda *_: 'x'", {}),
    ],
    ids=["a processor without it", "told what to compile for", "other settings", "other sources"],
)
def test_where_it_does_not_fit_it_is_passed_over(how, environment, made, tmp_path):
    archive, native = made
    assert "no compiled code" in measured(tmp_path, archive, how, **environment)
    if how == LACKS_FMA:
        assert measured(tmp_path, archive, how, alone=False) == native
        assert files(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_archive_costs_only_time(damage, made, tmp_path):
    archive, native = made
    content = bytearray(archive.read_bytes())
    if damage == "flipped":  # in the middle of every file
        for place in range(200, len(content) - 5_000, 2_000):
            content[place] ^= 0x40
    bad = tmp_path / "bad.zip"
    bad.write_bytes({"cut": content[: len(content) // 2], "empty": b""}.get(damage, content))
    assert measured(tmp_path / "cache", bad, alone=False) == native


def test_the_host_is_asked_for_every_feature_of_the_baseline(monkeypatch):
    needed = BASELINES[MACHINE].needed
    shipped = sys.modules["keyhole.kernels.shipped"]
    for missing in (None, *needed):
        monkeypatch.setattr(
            shipped, "host_features", lambda m=missing: dict.fromkeys(set(needed) - {m}, True)
        )
        baseline_target.cache_clear()
        assert (baseline_target("triple") is None) == (missing is not None)
    baseline_target.cache_clear()


NATIVE = """
import json, sys, time
from pathlib import Path
from keyhole.kernels import native, shipped
shipped.ARCHIVE, native.PAYS_AFTER = Path(sys.argv[1]), float(sys.argv[2])
from keyhole.kernels.compiled import _assembled
from keyhole.measures import measure
call = lambda: measure("ERR").many([[0, 1, 2], [2, 1, 0]], [[2, 0, 1], [0, 1, 2]]).tolist()
first = call()
loop = next(f for f in _assembled if f._cache.on_baseline)
watch = native.NativeCode(loop, 10**9)
for _ in range(2_000):
    watch.after(1)
    if watch._compiler is None or watch._is_settled:
        break
    time.sleep(0.05)
watch.close()
print(json.dumps([first, call(), bool(loop._cache.on_baseline), len(loop._cache._retired)]))
"""


def upgraded(cache, archive, pays_after):
    done = subprocess.run(
        [sys.executable, "-c", NATIVE, str(archive), str(pays_after)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_native_code_is_taken_up_when_it_is_ready_and_computes_the_same(made, tmp_path):
    archive, native = made
    first, then, on_baseline, n_retired = upgraded(tmp_path, archive, 0.0)
    assert first == then == native[1]
    assert not on_baseline
    assert n_retired == 1
    assert files(tmp_path)  # by the other process


def test_short_games_have_nothing_compiled(made, tmp_path):
    _, _, on_baseline, _ = upgraded(tmp_path, made[0], 60.0)
    assert on_baseline
    assert files(tmp_path) == []


def test_where_numba_compiles_in_its_own_way_nothing_is_watched():
    from keyhole.kernels.native import NativeCode

    watch = NativeCode(lambda: None, 10)
    watch._began -= 100.0
    watch.after(1)
    watch.close()
    assert watch._compiler is None
    assert not Program.native_only


def test_a_wheel_carries_the_archive_and_a_plain_one_does_not(made, tmp_path, monkeypatch):
    import zipfile

    from bench.wheel import build

    plain = build(tmp_path / "plain", None)
    assert plain.name.endswith("py3-none-any.whl")
    assert not [n for n in zipfile.ZipFile(plain).namelist() if n.endswith("shipped.zip")]
    carrying = build(tmp_path / "carrying", made[0])
    assert carrying.name.endswith(f"{MACHINE}.whl")
    inside = zipfile.ZipFile(carrying).read("keyhole/kernels/shipped.zip")
    assert inside == Path(made[0]).read_bytes()
