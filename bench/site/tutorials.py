"""The six tutorials, word for word, in a new environment with the built wheel and no clone.

python -m bench.site.tutorials
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OF_THE_CLONE = ("PYTHONPATH", "NUMBA_CACHE_DIR", "VIRTUAL_ENV")
"""Variables by which a new environment would find what is in this one."""


def main() -> int:
    """Build, install, and follow each tutorial; return 1 if one of them does not work."""
    argparse.ArgumentParser(prog="python -m bench.site.tutorials", description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        built = folder / "dist"
        subprocess.run(
            [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", built, ROOT],
            check=True,
        )
        (wheel,) = built.glob("*.whl")
        print(f"built {wheel.name}, {wheel.stat().st_size / 1000:.0f} kB")
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        commands = folder / "venv" / "bin"
        subprocess.run([commands / "pip", *pip[3:], "install", f"{wheel}[all]"], check=True)
        pages = shutil.copytree(ROOT / "docs" / "tutorials", folder / "tutorials")
        follower = shutil.copy(ROOT / "bench" / "site" / "pages.py", folder)
        environment = {k: v for k, v in os.environ.items() if k not in _OF_THE_CLONE}
        environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
        return subprocess.run(
            [commands / "python", follower, *sorted(pages.glob("*.md"))],
            cwd=folder,
            env=environment,
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
