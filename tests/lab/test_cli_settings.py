"""Settings from a TOML file, people from a CSV file, and one vocabulary."""

import json

import pytest
import typer.main
from typer.testing import CliRunner

from keyhole.cli.app import app

pytestmark = pytest.mark.interpreted

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
RATINGS = "user;tea;coffee;milk\n7;5,5;1;3\n7;4;2,5;1\n9;5;4;1\n"


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture
def settings(tmp_path):
    def write(text):
        path = tmp_path / "game.toml"
        path.write_text(text)
        return path

    return write


def play(*arguments):
    return json.loads(run("play", *arguments).stdout)


def test_every_kind_of_option_is_taken_from_the_file(settings):
    path = settings(
        'ranker = "rtopk"\nitems = 8\nrounds = 60\nruns = 2\nsame-users = true\n'
        'against = ["random", "ftpl"]\njson = true\nset = ["world.flip=0.2"]\n'
    )
    told = play("--settings", path)
    options = [
        "--ranker", "rtopk", "--items", 8, "--rounds", 60, "--runs", 2, "--same-users", "--against",
        "random", "--against", "ftpl", "--json", "--set", "world.flip=0.2",
    ]  # fmt: skip
    by_hand = play(*options)
    for record in (told, by_hand):
        for one in (record, *record["against"]):
            del one["seconds"], one["rounds_per_second"]
    assert told == by_hand
    assert told["spec"]["same_users"] is True
    assert [one["spec"]["ranker"] for one in told["against"]] == ["random", "ftpl"]


def test_the_command_line_wins(settings):
    path = settings('items = 8\nrounds = 60\nagainst = ["random", "ftpl"]\njson = true\n')
    record = play("--rounds", 40, "--settings", path, "--against", "random")
    assert (record["spec"]["items"], record["spec"]["rounds"]) == (8, 40)
    assert len(record["against"]) == 1


def test_set_may_be_tables(settings):
    path = settings(
        'ranker = "rtopk"\nitems = 8\nrounds = 60\njson = true\n'
        '[set.ranker]\nn_blocks = 5\nsubroutine = "plackett-luce"\n[set.world]\nflip = 0.2\n'
    )
    spec = play("--settings", path)["spec"]
    assert spec["ranker_options"] == {"n_blocks": 5, "subroutine": "plackett-luce"}
    assert spec["world_options"] == {"flip": 0.2}


def test_learn_and_compare_take_the_same_files(settings, tmp_path):
    lists = tmp_path / "train.txt"
    lists.write_text("1 qid:1 1:2\n0 qid:1 1:1\n0 qid:2 1:1\n1 qid:2 1:3\n")
    path = settings(f'files = ["{lists}"]\nsurrogate = "kl"\nrounds = 40\n')
    record = json.loads(run("learn", "--settings", path, "--json").stdout)
    assert (record["rounds"], record["queries"]) == (40, 2)
    path = settings('rankers = "keystone,random"\nrounds = 300\nruns = 2\nitems = 20\n')
    record = json.loads(run("compare", "--settings", path, "--json").stdout)
    assert {row["ranker"] for row in record["rankers"]} == {"keystone", "random"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("itemz = 8\n", "must be one of against, comparator, grades, ids, items, json, log-log"),
        ("itemz = 8\n", "got 'itemz'. Did you mean 'items'?"),
        ("same_users = true\n", "Did you mean 'same-users'?"),
        ('settings = "x.toml"\n', "got 'settings'."),
        ("rounds = 1.5\n", "rounds of game.toml cannot be 1.5: "),
        ('rounds = "many"\n', "rounds of game.toml cannot be 'many': "),
        ("rounds = true\n", "rounds of game.toml must be a text or a number, got True."),
        ("rounds = [1, 2]\n", "rounds of game.toml must be a text or a number, got [1, 2]."),
        ("json = 1\n", "json of game.toml must be true or false, got 1."),
        ("against = [true]\n", "against of game.toml must be a text or a number, got True."),
        ("[set]\nflip = 0.2\n", "must have a table for each owner, such as [set.world], got flip"),
        ("rounds = \n", "game.toml must be a TOML file of settings: Invalid value"),
        ("rounds = 1\nrounds = 2\n", "game.toml must be a TOML file of settings: Cannot overwrite"),
        ("rounds = 0\n", "rounds must be an integer of at least 1, got 0."),
    ],
)
def test_wrong_settings_are_one_sentence(settings, monkeypatch, tmp_path, text, sentence):
    settings(text)
    monkeypatch.chdir(tmp_path)
    result = run("play", "--settings", "game.toml", code=2)
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_files_that_are_no_settings(tmp_path):
    assert (
        "must be a readable TOML file: No such file"
        in run("play", "--settings", tmp_path / "absent.toml", code=2).stderr
    )
    (tmp_path / "latin.toml").write_bytes(b'world = "caf\xe9"\n')
    assert (
        "line 1 is not UTF-8" in run("play", "--settings", tmp_path / "latin.toml", code=2).stderr
    )
    assert "readable TOML file" in run("play", "--settings", tmp_path, code=2).stderr


# --------------------------------------------------------------------------- people by items


@pytest.mark.parametrize("separator", [";", "\t"])
def test_what_was_learnt_is_told_by_name(tmp_path, separator):
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS.replace(";", separator))
    shown = run("play", "--world", path, "--ids", "user", "--rounds", 300).stdout
    assert "keystone would now show: tea, coffee, milk." in shown
    assert "Note: the column 'user' names the people and is no item." in shown
    record = json.loads(
        run("play", "--world", path, "--ids", "user", "--rounds", 300, "--json").stdout
    )
    assert record["learnt_ranking"] == ["tea", "coffee", "milk"]
    compared = ["--rankers", "keystone,random", "--rounds", 100, "--runs", 2, "--json"]
    record = json.loads(run("compare", "--world", path, "--ids", "user", *compared).stdout)
    assert len(record["rankers"]) == 2
    refused = run("play", "--world", path, "--ids", "usr", code=2).stderr
    assert "--ids of" in refused
    assert "Did you mean 'user'?" in refused


def test_items_without_names_are_numbered_from_0(tmp_path):
    record = play("--items", 8, "--rounds", 300, "--json")
    assert sorted(record["learnt_ranking"]) == list(range(8))
    first = ", ".join(map(str, record["learnt_ranking"][:6]))
    shown = run("play", "--items", 8, "--rounds", 300).stdout
    assert f"keystone would now show: items {first} and 2 more." in shown
    path = tmp_path / "bare.csv"
    path.write_text("5,1,3\n4,2,1\n")
    record = play("--world", path, "--set", "world.header=false", "--rounds", 50, "--json")
    assert record["item_names"] == ["0", "1", "2"]


def test_log_log_axes(tmp_path, monkeypatch):
    panels = []
    monkeypatch.setattr("keyhole.cli.play.save_figure", lambda *given: panels.append(given[3][0]))
    game = ["--items", 8, "--rounds", 300, "--out", tmp_path / "out"]
    run("play", *game)
    run("play", *game, "--log-log")
    assert [(panel.log_x, panel.log_y) for panel in panels] == [(False, False), (True, True)]
    refused = run("play", "--log-log", code=2).stderr
    assert "--log-log is about the figure, and needs the --out" in refused


# --------------------------------------------------------------------------- one vocabulary


def test_grades_are_counted_in_every_command(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("a,b,c,d\n0,1,2,3\n3,2,1,0\n")
    for command in ("play", "compare", "advise", "classify", "simulate-users"):
        (grades,) = [each for each in COMMANDS[command].params if "--grades" in each.opts]
        assert "from 0" in " ".join(grades.help.split())
    for n_grades, top in ((2, 1.0), (4, 3.0)):
        game = ("--world", path, "--grades", n_grades, "--rounds", 400, "--measure", "DCG@1")
        record = play(*game, "--set", "world.order=drawn", "--json")
        assert record["spec"]["world_options"]["grades"] == n_grades
        assert record["best_fixed_score"] <= 2.0**top - 1.0
        assert record["best_fixed_score"] > (2.0**top - 1.0) / 4
    for name in ("play", "compare"):
        refused = run(name, "--world", path, "--grades", 1, code=2).stderr
        assert "--grades must be an integer between 2 and 51, got 1." in refused


def test_an_option_of_one_name_is_told_in_the_same_words():
    """What is shared is one object; what is said of the others may differ by the command."""
    for option in ("--threshold", "--grades", "--missing", "--ids", "--json", "--settings"):
        helps = {
            each.help
            for command in ("play", "compare", "learn")
            for each in COMMANDS[command].params
            if option in each.opts
        }
        assert len(helps) == 1, option


@pytest.mark.parametrize("measure", ["SumLoss", "DCG"])
def test_what_is_a_loss_says_so(measure, tmp_path):
    lists = tmp_path / "train.txt"
    lists.write_text("1 qid:1 1:2\n0 qid:1 1:1\n0 qid:2 1:1\n1 qid:2 1:3\n")
    commands: list[list[object]] = [
        ["play", "--items", 20, "--rounds", 300, "--ranker", "random"],
        ["learn", lists, "--ranker", "random-lists", "--rounds", 20],
        ["compare", lists, "--rankers", "random-lists", "--rounds", 20, "--runs", 2],
    ]
    for command in commands:
        shown = " ".join(run(*command, "--measure", measure).stdout.split())
        assert ("lower is better" in shown) == (measure == "SumLoss"), command
