"""Build the wheel with compiled code for a baseline processor, or without: ``make wheel``."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from keyhole.kernels.shipped import baseline_of_this_machine

ROOT = Path(__file__).parents[1]
LARGEST = 60 * 2**20
"""Bytes a wheel may take."""


def compile_all(folder: Path, rankers: list[str]) -> None:
    """Fill a folder with code for the baseline."""
    subprocess.run(
        [sys.executable, "-m", "keyhole", "warm", "--baseline", *rankers],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        check=True,
    )


def pack(files: list[Path], archive: Path) -> None:
    """Write code files into one archive, the same bytes for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for path in files:
            entry = zipfile.ZipInfo(path.name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, path.read_bytes())


def digests(**environment: str) -> dict[str, Any]:
    """Return the digest of a game of every example of the contract suite."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.test_digests"],
        env={**os.environ, **environment}, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def check_bits(folder: Path) -> None:
    """Exit unless games on code for the baseline are those that Python plays, to the last bit."""
    baseline = baseline_of_this_machine().environment
    played = digests(**baseline, NUMBA_CACHE_DIR=str(folder))
    expected = digests(NUMBA_DISABLE_JIT="1")
    wrong = [name for name in expected if played[name] != expected[name]]
    if wrong:
        sys.exit(f"Games on code for the baseline differ: {', '.join(wrong)}.")
    print(f"{len(played)} games on code for {baseline['NUMBA_CPU_NAME']}: the same bits.")


def build(out: Path, archive: Path | None) -> Path:
    """Build a wheel into a folder and return it."""
    environment = {**os.environ, **({"KEYHOLE_SHIPPED_CODE": str(archive)} if archive else {})}
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(ROOT)],
        env=environment, check=True,
    )  # fmt: skip
    return max(out.glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)


def main(argv: list[str] | None = None) -> None:
    """Build a wheel, and say what is in it."""
    parser = argparse.ArgumentParser(prog="python -m bench.wheel", description=__doc__)
    parser.add_argument("rankers", nargs="*", help="ship the code of these alone (all)")
    parser.add_argument("--plain", action="store_true", help="build a wheel without compiled code")
    parser.add_argument(
        "--unchecked", action="store_true", help="play no games to compare the bits (minutes)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="its folder (dist)")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    archive = None
    if not options.plain:
        work = ROOT / "build" / "code"
        shutil.rmtree(work, ignore_errors=True)  # code of older sources would only take room
        work.mkdir(parents=True)
        compile_all(work, options.rankers)
        files = sorted(work.rglob("*.code"))
        archive = work.parent / "shipped.zip"
        pack(files, archive)
        print(f"{len(files)} files of code, {archive.stat().st_size / 2**20:.1f} MB packed.")
        if not options.unchecked:
            check_bits(work)
    wheel = build(options.out, archive)
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 2**20:.1f} MB")
    if size > LARGEST:
        sys.exit(f"The wheel must be under {LARGEST // 2**20} MB.")


if __name__ == "__main__":
    main()
