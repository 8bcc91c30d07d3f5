"""keyhole doctor and keyhole completion, and help without the compiler."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata

import pytest
import typer.main
from typer.testing import CliRunner

from keyhole.cli import doctor
from keyhole.cli.app import COMMANDS, app
from keyhole.cli.completion import commands_of
from keyhole.kernels.code_cache import code_folder
from keyhole.lab.study import list_studies
from keyhole.rankers import RANKERS
from keyhole.worlds import WORLDS


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


# --------------------------------------------------------------------------- help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_the_command_itself_says(name):
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert command.name == name
    assert command.help.split("\n\n")[0].replace("\n", " ") == COMMANDS[name].summary
    assert COMMANDS[name].summary in " ".join(run("--help").stdout.split())


def test_help_needs_no_compiler_and_less_than_a_second():
    code = (
        "import sys, time\n"
        "sys.argv = ['keyhole', '--help']\n"
        "from keyhole.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert ended.code == 0\n"
        "print('numba' in sys.modules, time.process_time() < 1.0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False True"
    assert "Play a game and see regret fall." in ran.stdout


def test_a_command_whose_library_is_missing_says_so(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="scipy")

    monkeypatch.setattr("keyhole.cli.app.named", missing)
    said = run("bound", code=2).stderr
    assert said.startswith("Error: keyhole bound needs scipy: pip install")
    assert said.count("\n") == 1


# --------------------------------------------------------------------------- doctor


def test_the_doctor_tells_all_and_learns_what_it_should():
    report = json.loads(run("doctor", "--json").stdout)
    assert report["versions"]["numba"] == metadata.version("numba")
    assert report["versions"]["python"].startswith("3.")
    assert all(report["versions"].values())
    assert report["cores"]["usable"] >= 1
    assert report["self_test"]["passed"]
    assert report["self_test"]["average_regret"] == pytest.approx(doctor.KNOWN_REGRET, abs=1e-9)
    shown = run("doctor").stdout
    for word in ("keyhole", "numba", "llvmlite", "processor", "cores", "compiled code", "data"):
        assert re.search(rf"^{word} ", shown, re.MULTILINE)
    assert "self-test passed in" in shown


@pytest.mark.parametrize("wrong", [doctor.KNOWN_REGRET + 1e-4, float("nan"), -1.0])
def test_another_number_is_a_loud_no(monkeypatch, wrong):
    monkeypatch.setattr(doctor, "play_known_game", lambda: wrong)
    result = run("doctor", code=1)
    assert "The self-test failed: the average regret must be 0.071156201, got" in result.stderr
    assert "passed" not in result.stdout
    report = json.loads(run("doctor", "--json", code=1).stdout)
    assert report["self_test"]["passed"] is False
    assert "average regret must be" in report["self_test"]["why"]


def test_who_does_not_learn_does_not_pass(monkeypatch):
    random = lambda n_items, **_: RANKERS.make("random", n_items=n_items)  # noqa: E731
    monkeypatch.setattr("keyhole.rankers.fixed.epsilon_greedy.EpsilonGreedyRanker", random)
    assert "self-test failed" in run("doctor", code=1).stderr


def test_a_broken_compiler_is_told(monkeypatch):
    def broken():
        raise ImportError("libLLVM.so: cannot open shared object file")

    monkeypatch.setattr(doctor, "play_known_game", broken)
    assert "The self-test failed: ImportError: libLLVM.so" in run("doctor", code=1).stderr


def test_extras_that_are_missing_and_how_to_have_them(monkeypatch):
    monkeypatch.setattr(
        "importlib.metadata.requires",
        lambda _: [
            "numpy>=2.0",
            'rich>=13; extra == "cli"',
            'notthere>=1; extra == "figures"',
            "matplotlib>=3.9; extra == 'figures'",
            'keyhole[cli]; extra == "all"',
            'pytest>=8; extra == "dev"',
        ],
    )
    report = json.loads(run("doctor", "--json").stdout)
    assert list(report["extras"]) == ["cli", "figures"]
    assert report["extras"]["cli"]["missing"] == []
    assert report["extras"]["figures"]["missing"] == ["notthere"]
    shown = run("doctor").stdout
    assert (
        "extra figures lacks notthere: install with pip install -e '.[figures]' in a checkout"
        in shown
    )
    assert "extra cli installed: rich" in shown

    def absent(_):
        raise metadata.PackageNotFoundError("keyhole")

    monkeypatch.setattr("importlib.metadata.requires", absent)
    assert "extras unknown" in run("doctor").stdout


def test_a_cache_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "kernels_0").mkdir()
    (tmp_path / "kernels_0" / "a.code").write_bytes(b"x" * 2**20)
    monkeypatch.setattr(doctor, "play_known_game", lambda: doctor.KNOWN_REGRET)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for kept, can in (("kernels_0", True), ("new", True), ("file", False), (None, False)):
        where = None if kept is None else tmp_path / kept
        monkeypatch.setattr(doctor, "kept_in", lambda where=where: where)
        cache = json.loads(run("doctor", "--json").stdout)["cache"]
        assert cache["folder"] == (None if kept is None else str(tmp_path))
        assert (cache["writable"], cache["files"]) == (can, int(kept is not None))
        shown = run("doctor").stdout
        assert ("NOT writable" in shown) != can
        assert ("1 file, 1 MiB" in shown) == (kept is not None)
        assert ("cannot be used" in shown) == (kept is None)
    elsewhere = tmp_path / "else" / "where"
    monkeypatch.setattr(doctor, "kept_in", lambda: elsewhere)
    assert f"{elsewhere}, writable; NUMBA_CACHE_DIR={tmp_path}" not in run("doctor").stdout
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    shown = run("doctor").stdout
    assert f"{elsewhere}, writable; NUMBA_CACHE_DIR={tmp_path / 'file'} cannot be" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "kernels_0"]


def test_compiled_code_is_counted_where_it_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "play_known_game", lambda: doctor.KNOWN_REGRET)
    assert doctor.kept_in() == code_folder()
    kept = tmp_path / "keyhole-0"
    kept.mkdir()
    monkeypatch.setattr("keyhole.kernels.code_cache.code_folder", lambda: kept)
    (kept / "a.code").write_bytes(b"x")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert f"compiled code {tmp_path}, writable; 1 file, 0 MiB" in run("doctor").stdout


def test_data_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "play_known_game", lambda: doctor.KNOWN_REGRET)
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "absent"))
    assert "absent, which does not exist" in run("doctor").stdout
    monkeypatch.delenv("KEYHOLE_DATA")
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(tmp_path)
        said = run("doctor").stdout
    assert "data none: set KEYHOLE_DATA to the folder of data sets\n" in said
    (tmp_path / "jester").mkdir()
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path))
    assert json.loads(run("doctor", "--json").stdout)["data"]["sets"] == ["jester"]


# --------------------------------------------------------------------------- completion


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    """Return what bash completes after some words, with no program to be found anywhere."""
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash on this machine")
    script = tmp_path_factory.mktemp("bash") / "keyhole.bash"
    script.write_text(run("completion", "bash").stdout)
    body = (
        'source "$1"; shift; COMP_WORDS=(keyhole "$@"); COMP_CWORD=$#; COMPREPLY=(); _keyhole; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )

    def complete(*words):
        ran = subprocess.run(
            [shell, "-c", body, "bash", str(script), *words],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PATH": ""},
        )
        assert ran.stderr == ""
        return ran.stdout.split()

    return complete


def test_bash_completes_commands_options_and_names(bash):
    assert bash("") == list(COMMANDS)
    assert bash("pl") == ["play"]
    assert bash("--v") == ["--version"]
    assert bash("play", "--ranker", "key") == ["keystone"]
    assert bash("play", "--ranker", "recal") == []
    assert bash("learn", "train.txt", "--ranker", "recal") == ["recall"]
    assert bash("learn", "train.txt", "--ranker", "key") == []
    assert bash("check", "--ranker", "key") == ["keystone"]
    assert bash("play", "--world", "=", "fl") == ["flips"]
    assert bash("play", "--world", "=") == list(WORLDS)
    assert bash("classify", "NDC") == ["NDCG", "NDCGLoss"]
    assert bash("reproduce", "") == sorted(list_studies(), key=list(list_studies()).index)
    assert bash("rank", "m.npz", "--format", "t") == ["tsv", "trec"]
    assert bash("play", "--same") == ["--same-users"]
    assert bash("keys", "") == ["create", "list", "remove"]
    assert bash("keys", "create", "--sc") == ["--scope"]
    assert bash("completion", "z") == ["zsh"]


def test_bash_leaves_files_and_numbers_to_the_shell(bash):
    for words in (
        ("play", "--out", ""), ("play", "--rounds", ""), ("learn", ""), ("evaluate", "l"),
        ("simulate-users", "url", "--ranker", ""), ("reproduce", "thesis-fig3.1", "x"),
    ):  # fmt: skip
        assert bash(*words) == []
    last = run("completion", "bash").stdout.splitlines()[-1]
    assert last == "complete -o bashdefault -o default -F _keyhole keyhole"


def test_every_option_of_every_command_is_in_every_script():
    commands = list(commands_of(typer.main.get_command(app)))
    assert {each.words[0] for each in commands} == set(COMMANDS)
    assert ("db", "check") in [each.words for each in commands]
    fish = run("completion", "fish").stdout
    for each in commands:
        own = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in each.words)
        for option in (*each.options, *each.flags):
            assert f"complete -c keyhole -n '{own}' -l {option[2:]} " in fish
    assert f"-l world -x -a '{' '.join(WORLDS)}'" in fish
    for line in fish.splitlines()[1:]:
        assert re.fullmatch(
            r"complete -c keyhole( -f)?( -[nad] ('([^'\\]|\\.)*'|[\w-]+)| -l [\w-]+| -x| -r| -F)+",
            line,
        ), line
    zsh, bash_script = run("completion", "zsh").stdout, run("completion", "bash").stdout
    assert zsh.endswith(bash_script)
    assert "bashcompinit" in zsh


def test_other_shells_are_refused():
    said = run("completion", "tcsh", code=2).stderr
    assert said == "Error: SHELL must be one of bash, fish, zsh, got 'tcsh'. Did you mean 'zsh'?\n"
