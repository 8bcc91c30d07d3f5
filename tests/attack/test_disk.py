"""Disks that are full at any write of any command, folders that are not there, files in the way."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.base.errors import CannotWrite, InvalidInput
from keyhole.base.files import check_file, check_folder, write_atomically
from keyhole.cli.app import app
from keyhole.data.bandit.files import write_bandit_csv
from keyhole.data.bandit.log import BanditLog
from keyhole.kernels import code_cache
from keyhole.kernels.whole_program import compile_program
from keyhole.lab.figures import canvas
from keyhole.lab.study import find_study

WRITER = "keyhole.base.files"
STEPS = (
    (tempfile, "mkstemp"),
    (tempfile, "TemporaryFile"),
    (os, "fdopen"),
    (os, "fsync"),
    (os, "replace"),
)
"""What a write consists of; between the third and the fourth, the bytes."""


class FullDisk:
    """A disk with room for so many steps of writes, and then for none."""

    def __init__(self, monkeypatch):
        self.n_steps, self.room = 0, None
        for module, name in STEPS:
            monkeypatch.setattr(module, name, self._counted(getattr(module, name)))

    def start(self, room=None):
        self.n_steps, self.room = 0, room

    def step(self):
        self.n_steps += 1
        if self.room is not None and self.n_steps > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _counted(self, function):
        def call(*args, **options):
            if sys._getframe(1).f_globals["__name__"] != WRITER:
                return function(*args, **options)
            if function.__name__ != "fdopen":
                self.step()
                return function(*args, **options)
            file = function(*args, **options)
            return Narrow(file, self)

        return call


class Narrow:
    """A file on a full disk: half of what is written may be there."""

    def __init__(self, file, disk):
        self._file, self._disk = file, disk

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, content):
        self._file.write(content[: len(content) // 2])
        self._disk.step()
        self._file.write(content[len(content) // 2 :])


@pytest.fixture
def disk(monkeypatch):
    # What is drawn does not matter here, and drawing takes a second.
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda _, buffer, **__: buffer.write(b"a figure")
    )
    return FullDisk(monkeypatch)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder, numbers = tmp_path_factory.mktemp("inputs"), np.random.default_rng(3)
    (folder / "train.txt").write_text(
        "".join(
            f"{i % 2} qid:{i // 4} 1:{x:.3f} 2:{y:.3f} 3:0.5\n"
            for i, (x, y) in enumerate(numbers.random((20, 2)))
        )
    )
    actions = numbers.integers(2, size=40)
    log = BanditLog.of(numbers.random((40, 1)), actions, actions, np.full(40, 0.5))
    write_bandit_csv(log, folder / "log.csv")
    return folder


COMMANDS = {
    "play": "play --items 5 --rounds 20 --runs 2 --world flips --measure DCG --out {out}",
    "learn": "learn {inputs}/train.txt --surrogate kl --top 1 --rounds 50 --model {out}/m.npz",
    "reproduce": "reproduce top1-fig1 --quick --out {out}",
    "atlas": "atlas --items 2 --grades 2 --measures NDCG --out {out}",
    "classify": "classify NDCG --items 3 --top 1 --certificate {out}/proof.json",
    "evaluate": "evaluate {inputs}/log.csv --policy uniform --out {out}",
}


def short_study(key, quick):
    study = find_study(key, quick=quick)
    specs: list[Any] = [c.spec for c in study.curves]
    curves = tuple(
        replace(c, spec=replace(spec, rounds=50, runs=2))
        for c, spec in zip(study.curves, specs, strict=True)
    )
    return replace(study, curves=curves, claims=())


def contents(folder):
    """Return all files below a folder; of JSON what does not tell of time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".json":
                content = json.loads(content)
                for record in [*content.get("against", []), content]:
                    record.pop("seconds", None)
                    record.pop("rounds_per_second", None)
            found[str(path.relative_to(folder))] = content
    return found


def run(command, out, inputs):
    given = COMMANDS[command].format(out=out, inputs=inputs).split()
    return CliRunner().invoke(app, given, env={"COLUMNS": "200"})


@pytest.mark.interpreted
@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_is_full_at_any_write(command, disk, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.cli.reproduce.find_study", short_study)
    run(command, tmp_path / "first", inputs)  # which may have to compile, and to keep the code
    disk.start()
    good = run(command, tmp_path / "good", inputs)
    n_steps, whole = disk.n_steps, contents(tmp_path / "good")
    assert good.exit_code in (0, 1), good.stderr
    assert n_steps >= 6
    for room in range(n_steps):
        out = tmp_path / str(room)
        disk.start(room)
        result = run(command, out, inputs)
        assert result.exit_code == 3, (room, result.output, result.stderr)
        said = [line for line in result.stderr.splitlines() if "rror" in line]
        assert len(said) == 1
        assert said[0].endswith("cannot be written: No space left on device.")
        kept = contents(out)
        assert kept == {name: whole[name] for name in kept}  # nothing half-written, nothing else
    disk.start()
    again = run(command, out, inputs)
    assert again.exit_code == good.exit_code
    assert contents(out) == whole


@pytest.mark.interpreted
def test_a_full_disk_leaves_what_was_there_before(disk, inputs, tmp_path):
    run("learn", tmp_path, inputs)
    disk.start()
    run("learn", tmp_path, inputs)
    before, n_steps = contents(tmp_path), disk.n_steps
    for room in range(n_steps - 1):  # all but the last, the sync of the folder
        disk.start(room)
        assert run("learn", tmp_path, inputs).exit_code == 3
        assert contents(tmp_path) == before


def test_a_full_disk_for_compiled_code_costs_a_warning(disk, tmp_path, monkeypatch):
    monkeypatch.setattr(code_cache, "code_folder", lambda: tmp_path)

    def twice(x):
        return x + x

    for room, value in enumerate((np.int8(3), np.int16(3), np.int32(3))):
        compiled = compile_program(twice, f"tests.twice{room}", {})
        code_cache.warn_once.cache_clear()
        disk.start(room)
        with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR must name a folder") as caught:
            assert compiled(value) == 6
        assert len(caught) == 1
        assert disk.n_steps == room + 1
        assert not list(tmp_path.glob("*.code"))
    disk.start()
    assert compiled(3.5) == 7.0
    assert len(list(tmp_path.glob("*.code"))) == 1


TMPFS = """
import subprocess, sys
folder, size, *command = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
done = subprocess.run(command, capture_output=True, text=True)
left = subprocess.run(["find", folder, "-type", "f"], capture_output=True, text=True).stdout
print(done.returncode, done.stderr.replace("\\n", " "), left.replace("\\n", " "), sep="|")
"""


def in_a_small_disk(folder, size, *command):
    """Run a command where ``folder`` is a disk of some size; return code, errors, files left."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare to mount a small disk with")
    done = subprocess.run(
        [unshare, "-m", sys.executable, "-c", TMPFS, folder, size, *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no disk may be mounted here: {done.stderr.strip().splitlines()[-1]}")
    code, errors, left = done.stdout.strip("\n").split("|")
    return int(code), errors, {Path(name).name for name in left.split()}


@pytest.mark.interpreted
@pytest.mark.parametrize("size", ["4k", "12k", "60k"])
def test_a_disk_that_is_really_full(size, inputs, tmp_path):
    given = COMMANDS["play"].format(out=tmp_path, inputs=inputs).split()
    code, errors, left = in_a_small_disk(tmp_path, size, sys.executable, "-m", "keyhole", *given)
    assert code == 3
    assert "cannot be written: No space left on device." in errors
    assert "Traceback" not in errors
    assert left <= {"results.json", "curves.csv", "regret.png"}


# ----------------------------------------------------------- what is in the way of a file


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "got the folder"),
        (".", "got the folder"),
        ("file/model.npz", "Not a directory|File exists"),
        ("a" * 300, "File name too long"),
        ("a/" * 20_000 + "m", "File name too long"),
        ("a\0b", "null byte"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(name, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match=why) as caught:
        check_file(Path(name), "--model")
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
    with pytest.raises(CannotWrite, match=r"cannot be written: .*\.$"):
        write_atomically(Path(name), b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_thousand_folders_within_each_other(tmp_path):
    deep = Path(tmp_path, *["a"] * 1500)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        check_folder(deep)
    with pytest.raises(CannotWrite, match="nested too deeply"):
        write_atomically(deep, b"x")


@pytest.mark.parametrize("command", ["learn", "classify"])
def test_commands_ask_before_they_work(command, inputs, tmp_path):
    given = COMMANDS[command].format(out=tmp_path, inputs=inputs).split()
    given[-1] = str(tmp_path)
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert f"{given[-2]} must be a file, got the folder {tmp_path}." in " ".join(
        result.stderr.split("\n")
    )
    assert result.stdout == ""


def test_the_longest_name_that_a_disk_takes_is_taken(tmp_path):
    path = tmp_path / ("a" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    write_atomically(check_file(path, "--model"), b"x")
    assert path.read_bytes() == b"x"


def test_devices_and_pipes_are_written_to_and_never_replaced(tmp_path):
    device = Path(os.devnull)
    write_atomically(check_file(device, "--model"), b"x")
    assert device.is_char_device()
    with pytest.raises(CannotWrite, match="No space left on device"):
        write_atomically(device.with_name("full"), b"x")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(CannotWrite, match="No such device or address"):  # nobody reads
        write_atomically(pipe, b"x")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)
    assert pipe.is_fifo()


# ----------------------------------------------------------- no folder to write to at all


def test_without_any_folder_to_write_to_the_command_runs_with_one_line_of_warning():
    nowhere = f"{os.devnull}/nowhere"
    environment = {
        "HOME": nowhere,
        "XDG_CACHE_HOME": nowhere,
        "TMPDIR": nowhere,
        "MPLCONFIGDIR": nowhere,
        "NUMBA_CACHE_DIR": nowhere,
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    done = subprocess.run(
        [sys.executable, "-m", "keyhole", *["classify", "DCG", "--items", "3", "--top", "1"]],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "T^(2/3)" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "NUMBA_CACHE_DIR must name a folder that can be written" in done.stderr


def test_figures_need_no_temporary_folder(tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setenv("MPLCONFIGDIR", os.devnull)
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    canvas.new_figure(tmp_path, 1.0, 1.0)
    own = Path(os.environ["MPLCONFIGDIR"])
    assert own.parent == tmp_path
    assert own.is_dir()
