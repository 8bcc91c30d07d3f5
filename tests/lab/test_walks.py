"""A walk from a command down to what it prints: no file twice, and all are on the map."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.cli.app import app

for name in keyhole.__all__:  # what is imported now is no step of a walk
    getattr(keyhole, name)
PACKAGE = Path(keyhole.__file__).parent
MAP = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
WALKED = ("cli", "lab", "experiment", "game", "offline", "monitoring", "bounds", "batch")
"""Packages that lead from a command to its result; the others are what these reach for."""
REACHED_FOR = ("cli/", "lab/figures/", "bounds/")
"""What is not counted: the command line, drawing, and bounds by which rankers are tuned."""
MOST_FILES = 12

NO_STEPS = ("<lambda>", "advance", "<module>")
"""How progress is told to whoever asked for the work; to be imported is no part of a walk."""

LOG = "action,reward,propensity,x_0\n" + "0,1,0.5,0.1\n1,0,0.5,0.2\n1,1,0.5,0.4\n" * 30
LISTS = "".join(f"1 qid:{query} 1:0.7\n0 qid:{query} 1:0.1\n" for query in range(9))
COMMANDS = {
    "play": ["play", "--items", "4", "--rounds", "200", "--out", "out"],
    "learn": ["learn", "lists.txt", "--rounds", "50"],
    "compare": ["compare", "--items", "4", "--rounds", "50", "--runs", "2", "--out", "out"],
    "reproduce": ["reproduce", "thesis-fig3.1", "--quick", "--out", "out"],
    "evaluate": ["evaluate", "log.csv", "--policy", "best-fixed", "--baseline", "logged"],
    "classify": ["classify", "NDCG", "--items", "3", "--top", "1"],
}


class Walk:
    """The files of the package that a call goes through, and the stacks that enter one twice."""

    def __init__(self):
        self.files: set[str] = set()
        self.steps: dict[tuple[str, ...], None] = {}
        self.twice: set[tuple[str, ...]] = set()

    def __call__(self, frame, event, _argument):
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        entered, stack = self._name(frame), list[str]()
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                if frame.f_code.co_name in NO_STEPS:
                    return
                name = self._name(frame)
                if name.startswith(WALKED) and (not stack or stack[-1] != name):
                    stack.append(name)
            frame = frame.f_back
        self.files.add(entered)
        self.steps.setdefault(tuple(reversed(stack)))
        if len(set(stack)) < len(stack):
            self.twice.add(tuple(reversed(stack)))

    @property
    def counted(self) -> set[str]:
        """The files between a command and its result."""
        walked = {name for name in self.files if name.startswith(WALKED)}
        return {name for name in walked if not name.startswith(REACHED_FOR)}

    def drawn(self) -> str:
        """Return the walk as a tree, each file below the one that first enters it."""
        lines, seen = [], set[str]()
        for step in self.steps:
            for depth, name in enumerate(step):
                if name not in seen:
                    seen.add(name)
                    lines.append(f"{'  ' * depth}{name}{' *' if name in self.counted else ''}")
        return "\n".join([f"{len(self.counted)} files counted (*), of {len(self.files)}", *lines])

    @staticmethod
    def _name(frame):
        return Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()


def is_on_the_map(name: str) -> bool:
    """Return whether the map names a file, or its folder as one of files of one kind."""
    folder = name.rpartition("/")[0]
    return f"`{name}`" in MAP or bool(folder and re.search(rf"`{re.escape(folder)}/\*`", MAP))


@pytest.mark.parametrize("command", COMMANDS)
def test_walk(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lists.txt").write_text(LISTS)
    (tmp_path / "log.csv").write_text(LOG)
    walk = Walk()
    sys.setprofile(walk)
    try:
        result = CliRunner().invoke(app, COMMANDS[command])
    finally:
        sys.setprofile(None)
    assert result.exit_code in (0, 1), result.output
    assert not walk.twice, walk.drawn()
    assert [name for name in sorted(walk.files) if not is_on_the_map(name)] == []
    assert len(walk.files) > 8
    assert len(walk.counted) <= MOST_FILES, walk.drawn()
