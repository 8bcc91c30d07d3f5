"""Nonsense on the command line: one sentence and the right exit code, quickly."""

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keyhole
from keyhole.base.errors import CannotWrite
from keyhole.cli import classify as classify_module, evaluate as evaluate_module
from keyhole.cli.app import app
from keyhole.cli.exit_codes import MEANINGS, ExitCode
from keyhole.experiment.description import Experiment
from keyhole.monitoring.classification import classify

pytestmark = pytest.mark.interpreted

ODD = [
    "", "0", "-1", "abc", "1.5", "nan", "inf", "-inf", "1e308", "5e-324", "9" * 30, "1" * 5000,
    "10000000000", "true", "[]", "null", "\udcff", "é…", "x" * 5000, "/", ".", "a\nb", "a\0b", "--",
    "@", ":", "full:3", "top:9", "choice:", "os:system", "NDCG@0", "NDCG@" + "9" * 5000,
]  # fmt: skip


TWO_STOPS = re.compile(r"[?!,;:][.,;]|\.[,;]|\.\.$")


def invoke(*arguments, **how):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **how)


def error_of(*arguments, code=2):
    """Return the one sentence that a command ends with."""
    ended = invoke(*arguments)
    assert ended.exit_code == code, ended.output
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    return ended.stderr


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Be in a folder with some small files of each kind."""
    monkeypatch.chdir(tmp_path)
    numbers = random.Random(0)
    lists = [
        f"{numbers.randint(0, 2)} qid:{query} 1:{numbers.random():.3f} 2:{numbers.random():.3f}"
        for query in range(5) for _ in range(4)
    ]  # fmt: skip
    Path("lists.txt").write_text("\n".join(lists) + "\n")
    rows = [
        f"{row % 3},0.3333,{int(numbers.random() < 0.4)},{numbers.random():.3f}"
        for row in range(60)
    ]
    Path("log.csv").write_text("\n".join(["action,propensity,reward,x_a", *rows]) + "\n")
    Path("loss.csv").write_text("0,1\n1,0\n")
    Path("seen.csv").write_text("a,b\nc,c\n")
    return tmp_path


COMMANDS = {
    "play --rounds 3 --items 3 --ranker random": (
        "--ranker --subroutine --items --top --measure --world --reveal --runs --seed --comparator "
        "--threshold --grades --missing --set --against --ids --settings"
    ),
    "learn lists.txt --rounds 3 --ranker random-lists": (
        "--ranker --surrogate --top --measure --passes --seed --groups --set --label-noise "
        "--permute-at --test --test-groups --settings"
    ),
    "compare --rounds 3 --items 3 --runs 2 --rankers random": (
        "--rankers --against --items --top --measure --world --seed --threshold --grades "
        "--missing --label-noise --set --ids --settings"
    ),
    "advise DCG --items 3": "--items --top --grades --rounds --features",
    "rank lists.txt": "--model --format --tag",
    "evaluate log.csv --policy uniform": (
        "--policy --baseline --confidence --bound --floor --clip --actions --seed"
    ),
    "classify NDCG --items 3 --top 1": "--items --top --grades --method --check",
    "bound": (
        "--surrogate --queries --items --radius --norm --confidence --ball --features --grade "
        "--epsilon --loss-bound --optimal-loss"
    ),
    "check --measure DCG": "--measure --reveal --items",
    "atlas --out atlas --items 2 --measures DCG": "--items --grades --measures",
}
CASES = [(command, option) for command, options in COMMANDS.items() for option in options.split()]


@pytest.mark.parametrize(("command", "option"), CASES)
def test_odd_values_of_every_option_end_in_a_sentence(files, command, option):
    long = ("--passes", "--runs")  # what is large here is asked for, and takes long
    for odd in ODD if option not in long else [odd for odd in ODD if odd != "10000000000"]:
        if option == "--items" and command.startswith("atlas") and odd == "0":
            continue
        ended = invoke(*command.split(), option, odd)
        assert ended.exit_code in (0, 1, 2), f"{odd[:50]}: {ended.output}{ended.stderr}"
        if ended.exit_code == 2:
            assert ended.stderr.count("\n") == 1, f"{odd[:50]}: {ended.stderr}"
            assert len(ended.stderr) < 2500
            assert not TWO_STOPS.search(ended.stderr.strip()), ended.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("play --reveal full:3", "reveal 'full' takes no option, got '3' after the colon."),
        ("play --reveal top:x", "reveal must be top or such as top:3, got 'top:x'."),
        ("play --items 3 --reveal top:9", "`k` of Top must be an integer between 1 and n_items=3"),
        ("play --reveal top:2 --top 1", "top must be given once, got 1 and top:2."),
        ("play --reveal full --top 1", "top must be left out with the reveal full, got 1."),
        (
            "play --ranker rtopk --set ranker.tight=maybe",
            "`tight` of RTopK must be true or false, got 'maybe'.",
        ),
        (
            "play --ranker rtopk --set ranker.rate=[1]",
            "`rate` of RTopK must be a number above 0.0, got [1].",
        ),
        ("play --set ranker.k=1 --set ranker.k=2", "--set must give ranker.k once, got it twice."),
        ("play --measure NDCG --set measure.empty=Infinity", "`empty` of NDCG must be a number"),
        ("play --seed -1", "--seed must be an integer between 0 and 9223372036854775807, got -1."),
        ("play --runs 10000000000 --ranker random", "KEYHOLE_MEMORY_LIMIT raises it."),
        ("play --items 10000000000", "`n_items` of Flips of 10000000000 would take"),
        ("bound --grade 0", "--max-grade must be a number of at least 1e-09 and at most 199"),
        ("evaluate log.csv --policy uniform --seed -1", "--seed must be an integer between 0"),
        ("evaluate log.csv --policy best-fixed --seed -1", "--seed must be an integer between 0"),
        ("evaluate log.csv --policy uniform --actions 3000000000", "KEYHOLE_MEMORY_LIMIT"),
        ("learn lists.txt --seed -1", "--seed must be an integer between 0"),
        ("check --measure NDCG --items 10000000", "--items must be an integer between 1 and 10000"),
        ("play --nonsense 1", "No such option: --nonsense"),
        ("play --rounds many", "Invalid value for '--rounds'"),
        ("plai", "No such command 'plai'. Did you mean 'play'"),
    ],
)  # fmt: skip
def test_what_was_taken_or_ended_in_a_traceback_is_refused(files, arguments, sentence):
    assert sentence in error_of(*arguments.split())


def test_reveals_can_be_told_how_much_they_show():
    played = invoke(
        "play", "--items", 4, "--rounds", 20, "--reveal", "top:2", "--ranker", "random", "--json"
    )  # fmt: skip
    assert json.loads(played.stdout)["reveal"] == "top(2)"


@pytest.mark.parametrize(
    "value",
    ["[" * 100_000, "1" * 5000, '{"a":' * 100_000],
    ids=["brackets", "digits", "braces"],
)
def test_values_without_end_are_one_sentence(value):
    assert len(error_of("play", "--set", f"ranker.rate={value}")) < 1000


def test_numbers_are_known_as_people_write_them():
    played = invoke(
        "play", "--rounds", 3, "--items", 3, "--ranker", "random", "--json",
        "--set", "world.flip=.5",
    )  # fmt: skip
    assert json.loads(played.stdout)["spec"]["world_options"] == {"flip": 0.5}


@pytest.mark.parametrize(
    "number",
    ["1e999999999", "-1e-999999999", "1e9_9_9_9_9_9_9", "1" * 100_000, "1/0", "1e61", "1e", "0x1"],
)
def test_numbers_are_looked_at_before_they_are_computed(files, number):
    Path("loss.csv").write_text(f"0,{number}\n1,0\n")
    sentence = error_of("classify", "--loss", "loss.csv", "--feedback", "seen.csv")
    assert "loss.csv must hold numbers such as 2, 0.25 or 1/3" in sentence
    assert "in row 1, column 2." in sentence


@pytest.mark.parametrize("number", ["1e999999999", "1" * 100_000, "1/0", 1e308, None, [1]])
@pytest.mark.parametrize("field", ["p", "constant"])
def test_numbers_of_certificates_are_looked_at_before_they_are_computed(files, number, field):
    proof = classify("AP", n_items=3, k=1).certificate()
    hopeless = proof["proofs"]["hopeless"]
    hopeless[field] = [number, *hopeless["p"][1:]] if field == "p" else number
    Path("proof.json").write_text(json.dumps(proof))
    assert "proof.json proves nothing: " in error_of(
        "classify", "--check", "proof.json", code=1 if number == 1e308 else 2
    )


@pytest.mark.parametrize("claim", [{"n_items": 10**9}, {"k": -1}, {"k": "1"}])
def test_games_of_certificates_are_looked_at_before_they_are_built(files, claim):
    proof = classify("AP", n_items=3, k=1).certificate()
    proof["game"].update(claim)
    Path("proof.json").write_text(json.dumps(proof))
    assert "proof.json proves nothing: " in error_of("classify", "--check", "proof.json")


def test_grades_that_no_list_has_cost_nothing(files):
    proof = classify("AP", n_items=3, k=1).certificate()
    proof["game"]["grades"] = 10**9
    Path("proof.json").write_text(json.dumps(proof))
    assert invoke("classify", "--check", "proof.json").exit_code == 0  # it has these two as well


@pytest.mark.parametrize("content", ["", "[" * 100_000, "{}", "[]", "1" * 5000, '"x"', "\xff"])
def test_what_is_no_certificate_is_one_sentence(files, content):
    Path("proof.json").write_text(content, encoding="latin-1")
    error_of("classify", "--check", "proof.json")


def test_files_without_end_are_not_read_to_it(files, monkeypatch):
    monkeypatch.setattr(classify_module, "_LARGEST_FILE", 1000)
    Path("large").write_bytes(bytes(1001))
    assert "it is larger than 1000 bytes" in error_of("classify", "--check", "large")
    sentence = error_of("classify", "--loss", "large", "--feedback", "seen.csv")
    assert "it is larger than 1000 bytes" in sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "--check", "x" * 40_000],
        ["rank", "x" * 40_000, "--model", "y" * 40_000],
        ["play", "--world", "x" * 40_000 + ".csv"],
        ["play", "--ranker", "x" * 40_000 + ".py:A"],
        ["play", "--measure", "x" * 40_000],
        ["learn", "x" * 40_000],
        ["evaluate", "x" * 40_000, "--policy", "uniform"],
        ["evaluate", "log.csv", "--policy", "x" * 40_000],
        ["reproduce", "x" * 40_000],
    ],
    ids=lambda arguments: " ".join(a[:12] for a in arguments),
)
def test_names_without_end_are_one_short_sentence(files, arguments):
    assert len(error_of(*arguments)) < 2500


# --------------------------------------------------------------------------- outputs come first


def test_outputs_are_checked_before_work_begins(files, monkeypatch):
    def begin(*_, **__):
        raise AssertionError("work has begun")

    monkeypatch.setattr(Experiment, "build", begin)
    monkeypatch.setattr(evaluate_module, "read_bandit", begin)
    monkeypatch.setattr(classify_module, "classify", begin)
    error_of("play", "--out", "log.csv")
    error_of("evaluate", "log.csv", "--policy", "uniform", "--out", "log.csv")
    error_of(*["classify", "NDCG", "--items", "3", "--top", "1", "--certificate", "."])


def test_an_empty_folder_is_not_left_behind_by_what_fails(files):
    Path("old").mkdir()
    error_of("play", "--out", "new/folder", "--measure", "NDGC")
    error_of("play", "--out", "old", "--measure", "NDGC")
    error_of("learn", "log.csv", "--model", "new/model.npz")
    error_of("evaluate", "log.csv", "--policy", "uniform", "--confidence", 2, "--out", "new")
    assert not Path("new").exists()
    assert Path("old").exists()


# --------------------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (CannotWrite("x cannot be written."), 3, "x cannot be written."),
        (MemoryError(), 3, "There is not enough memory for this."),
        (OSError(28, "No space left on device", "x"), 3, "x cannot be used: No space left on"),
        (RecursionError("deep"), 4, "This is a bug in Keyhole, not in the input: Recursion"),
        (ZeroDivisionError("one\ntwo"), 4, "ZeroDivisionError: one two; KEYHOLE_TRACEBACK=1 shows"),
        (AssertionError(), 4, "the input: AssertionError; KEYHOLE_TRACEBACK=1 shows where."),
    ],
)
def test_what_is_no_fault_of_the_user_has_codes_of_its_own(monkeypatch, error, code, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr(Experiment, "build", fail)
    assert sentence in error_of("play", code=code)
    monkeypatch.setenv("KEYHOLE_TRACEBACK", "1")
    assert "Traceback" in invoke("play").stderr


def test_an_interrupt_has_a_code_of_its_own(monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "build", fail)
    ended = invoke("play")
    assert (ended.exit_code, ended.stderr) == (130, "Interrupted; nothing was written.\n")


def test_the_exit_codes_are_in_the_help_and_in_the_docs():
    told = " ".join(invoke("--help", env={"COLUMNS": "100"}).stdout.split())
    docs = Path(keyhole.__file__).parents[2] / "docs" / "command-line.md"
    table = re.findall(r"^\| (\d+) \| (.*) \|$", docs.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code, _ in table] == list(ExitCode) == list(MEANINGS)
    for code, meaning in MEANINGS.items():
        assert f"{int(code)} {meaning}" in told


def test_no_arguments_teach():
    ended = invoke()
    assert ended.exit_code == 2
    assert "Usage: keyhole" in ended.stdout


def test_names_of_files_that_are_no_text_are_escaped_in_json(files):
    name = "t\udcffable.csv"
    Path(name).write_text("ant,bee\n1,0\n0,1\n")
    arguments = ["play", "--world", name, "--rounds", 3, "--ranker", "random", "--json"]
    played = invoke(*arguments)
    assert played.exit_code == 0, played.stderr
    assert json.loads(played.stdout)["spec"]["world"] == name
