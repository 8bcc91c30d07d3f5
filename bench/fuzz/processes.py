"""Commands in processes of their own: started anew, or forked from a worker, which is quicker."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bench.fuzz.scene import ANY, Scene

_LIMIT = 600.0  # seconds on a busy machine; workers notice sooner what does not work at all


def run_command(
    scene: Scene,
    words: Sequence[str],
    label: str = ANY,
    kind: str = "",
    *,
    environment: Mapping[str, str | None] | None = None,
    **streams: Any,
) -> None:
    """Run a command line in a new process, and hold it to its promises."""
    changed = dict(os.environ)
    for name, value in (environment or {}).items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    started = [sys.executable, "-m", "keyhole", *words]
    told = f"keyhole {' '.join(words)}"
    try:
        ended = subprocess.run(
            started, env=changed, stdin=subprocess.DEVNULL, check=False, timeout=_LIMIT,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )  # fmt: skip
    except (ValueError, UnicodeEncodeError):
        return  # words that no process can be started with
    except subprocess.TimeoutExpired:
        scene.fail(f"a process hangs: {kind}", told)
        return
    printed = None if ended.stdout is None else ended.stdout.decode("utf-8", "replace")
    errors = (ended.stderr or b"").decode("utf-8", "replace")
    if ended.returncode < 0:
        scene.fail(f"a process dies of signal {-ended.returncode}: {kind}", f"{told}\n{errors}")
    else:
        scene.judge_command(told, ended.returncode, printed, errors, label, kind)
