"""The command line, as a user meets it."""

import csv
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keyhole.base.errors import InvalidInput
from keyhole.cli.app import app
from keyhole.cli.terminal import short_name
from keyhole.measures import MEASURES
from keyhole.rankers import RANKERS
from keyhole.reveals import REVEALS
from keyhole.worlds import WORLDS
from tests.lab.running import said

PLAY = (
    "play --ranker rtopk --subroutine ftpl --items 20 --rounds 10000 --top 1 --measure DCG "
    "--world flips --runs 10 --seed 0 --json"
)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


@pytest.fixture(scope="module")
def played():
    return json.loads(run(*PLAY.split()).stdout)


def test_play_prints_what_the_contract_names(played):
    assert 0.2 < played["average_regret"] < 0.3
    assert played["average_regret"] == pytest.approx(
        played["best_fixed_score"] - played["average_score"], abs=1e-12
    )
    assert 0 < played["slope"] < 0.7
    assert played["slope_interval"][0] <= played["slope"] <= played["slope_interval"][1]
    assert played["curve"][-1] == [10000, pytest.approx(played["average_regret"])]
    assert [t for t, _ in played["curve"]] == sorted({t for t, _ in played["curve"]})


def test_play_is_reproducible(played):
    again = json.loads(run(*PLAY.split()).stdout)
    for changing in ("seconds", "rounds_per_second"):
        again.pop(changing), played.get(changing)
    assert again == {key: played[key] for key in again}


def test_play_writes_figure_and_results(tmp_path):
    out = tmp_path / "new" / "folder"
    result = run("play", "--items", 20, "--runs", 2, "--against", "random", "--out", out)
    assert "average regret" in result.stdout
    assert sorted(p.name for p in out.iterdir()) == [
        "curves.csv", "regret.png", "regret.svg", "results.json",
    ]  # fmt: skip
    record = json.loads((out / "results.json").read_text())
    assert record["against"][0]["spec"]["ranker"] == "random"
    assert record["against"][0]["average_regret"] > record["average_regret"]
    with (out / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["curve"] for row in rows} == {"keystone, top(1)", "random, top(1)"}
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.interpreted
def test_play_on_a_csv_of_people_by_items(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("tea,coffee,milk\n" + "5,1,3\n4,2,\n5,4,1\n" * 5)
    result = run(
        "play", "--world", path, "--threshold", 3, "--missing", "drop", "--rounds", 500, "--json"
    )
    record = json.loads(result.stdout)
    assert record["item_names"] == ["tea", "coffee", "milk"]
    assert "5 people left out: a rating is missing" in record["notes"]
    graded = json.loads(
        run("play", "--world", path, "--missing", "drop", "--rounds", 500, "--json").stdout
    )
    assert graded["spec"]["world_options"] == {"missing": "drop"}
    assert graded["average_regret"] is not None


@pytest.mark.interpreted
def test_every_command_on_people_reads_long_ratings(tmp_path):
    """Rows of user, item and rating are the game of the wide file with the same ratings."""
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    ratings = [(5, 1, 3), (4, 2, 1), (5, 4, 1)] * 4
    wide.write_text("tea,coffee,milk\n" + "".join(f"{a},{b},{c}\n" for a, b, c in ratings))
    rows = [
        f"u{u},{item},{rating}\n"
        for u, row in enumerate(ratings)
        for item, rating in zip(("tea", "coffee", "milk"), row, strict=True)
    ]
    long.write_text("user,item,rating\n" + "".join(rows))
    how = ("--threshold", 3, "--rounds", 200, "--runs", 2, "--json")
    one, other = (json.loads(run("play", "--world", file, *how).stdout) for file in (wide, long))
    assert one["average_regret"] == other["average_regret"]
    assert "rows are user, item and rating" in other["notes"]
    renamed = tmp_path / "other.csv"
    renamed.write_text("who,what,liking\n" + "".join(rows))
    named = json.loads(run("play", "--world", renamed, "--set", "world.long=true", *how).stdout)
    assert named["average_regret"] == one["average_regret"]
    compared = [
        run("compare", "--world", file, "--rankers", "random,keystone", *how).stdout
        for file in (wide, long)
    ]
    regrets = [
        [(each["ranker"], each["by_run"]) for each in json.loads(text)["rankers"]]
        for text in compared
    ]
    assert regrets[0] == regrets[1]


@pytest.mark.interpreted
def test_how_a_csv_is_written_is_told_by_set(tmp_path):
    path = tmp_path / "ratings.tsv.xz"
    path.write_bytes(lzma.compress(("8|1,5|3\n9|4|2,5\n" * 5).encode()))
    layout = ["delimiter=|", "decimal=,", "header=false", "index=true"]
    settings = [argument for each in layout for argument in ("--set", f"world.{each}")]
    result = run("play", "--world", path, *settings, "--grades", 2, "--rounds", 50, "--json")
    record = json.loads(result.stdout)
    assert record["item_names"] == ["0", "1"]
    assert "the first column names the people and is no item" in record["notes"]


@pytest.mark.interpreted
def test_measures_without_a_comparator_say_so():
    record = json.loads(
        run("play", "--measure", "ERR", "--items", 20, "--rounds", 300, "--json").stdout
    )
    assert record["average_regret"] is None
    assert record["average_score"] > 0
    assert any("regret is not known" in note for note in record["notes"])
    assert any("tuned for DCG" in note for note in record["notes"])


@pytest.mark.interpreted
def test_formulas_of_measures_are_printed_whole():
    game = ["--measure", "AP", "--items", 5, "--rounds", 50]
    assert "AP (gain; item 1[r > 0]; position" in " ".join(run("play", *game).stdout.split())


@pytest.mark.interpreted
def test_results_without_a_figure_are_not_called_one(tmp_path):
    game = ["--measure", "ERR", "--items", 20, "--rounds", 300, "--out", tmp_path]
    assert f"Results are in {tmp_path}." in run("play", *game).stdout.replace("\n", "")
    assert not list(tmp_path.glob("*.png"))
    game[1] = "DCG"
    shown = run("play", *game).stdout.replace("\n", "")
    assert f"Figure and results are in {tmp_path}." in shown
    assert list(tmp_path.glob("*.png"))


def test_the_title_of_a_long_path_fits(tmp_path, monkeypatch):
    titles: list[str] = []
    monkeypatch.setattr("keyhole.cli.play.save_figure", lambda *given: titles.append(given[2]))
    names = ["ratings.csv", "r" * 30 + "s" * 60 + ".csv"]
    for name in names:
        path = tmp_path / ("deep" * 30) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("tea,coffee,milk\n5,1,3\n4,2,0\n")
        run("play", "--world", path, "--threshold", 3, "--rounds", 50, "--out", tmp_path / "out")
    assert titles[0] == "DCG, 3 items, ratings.csv"
    assert titles[1] == f"DCG, 3 items, {'r' * 20}…{'s' * 15}.csv"


@pytest.mark.interpreted
@pytest.mark.parametrize("n_letters", [1, 39, 40, 41, 42, 90])
def test_a_name_in_a_title_has_at_most_40_letters(n_letters):
    name = "".join(chr(ord("a") + place % 26) for place in range(n_letters))
    shown = short_name(name)
    assert len(shown) == min(n_letters, 40)
    first, cut, last = shown.partition("…")
    assert bool(cut) == (n_letters > 40)
    assert name.startswith(first)
    assert name.endswith(last)


@pytest.mark.interpreted
def test_regret_against_what_a_search_found_is_called_a_lower_bound():
    record = json.loads(
        run("play", "--measure", "AP", "--items", 20, "--rounds", 300, "--json").stdout
    )
    assert record["average_regret"] > 0
    assert any("regret is a lower bound" in note for note in record["notes"])


def test_the_papers_algorithm_is_played_beside_the_default_and_sees_as_much():
    record = json.loads(run("play", "--rounds", 300, "--top", 2, "--json").stdout)
    assert record["spec"]["ranker"] == "keystone"
    assert [(one["spec"]["ranker"], one["reveal"]) for one in record["against"]] == [
        ("rtopk", "top(2)")
    ]
    full = run("play", "--rounds", 300, "--top", 2, "--against", "ftpl", "--json").stdout
    assert [one["reveal"] for one in json.loads(full)["against"]] == ["full"]
    inside = json.loads(run("play", "--rounds", 300, "--subroutine", "ftpl", "--json").stdout)
    assert (inside["spec"]["ranker"], inside["against"]) == ("rtopk", [])


@pytest.mark.interpreted
def test_options_may_follow_the_name_of_a_contender():
    game = ["play", "--items", 6, "--rounds", 40, "--seed", 3, "--ranker", "ftpl"]
    bold = "ftpl eps_scale=0.01"
    both = json.loads(run(*game, "--against", bold, "--against", "ftpl", "--json").stdout)
    alone = json.loads(run(*game, "--set", "ranker.eps_scale=0.01", "--json").stdout)
    told, usual = both["against"]
    assert told["spec"]["ranker_options"] == {"eps_scale": 0.01}
    assert told["curve"] == alone["curve"] != usual["curve"] == both["curve"]
    assert f"{bold} would now show: items" in said(run(*game, "--against", bold))
    refused = run(*game, "--against", "ftpl epsscale=1", code=2)
    assert "An option of FTPL must be one of eps_scale" in said(refused)


def test_warnings_become_notes():
    record = json.loads(
        run("play", "--ranker", "rtopk", "--items", 50, "--rounds", 30, "--json").stdout
    )
    assert any("will not explore" in note for note in record["notes"])


def test_the_best_fixed_ranking_has_no_regret():
    record = json.loads(run("play", "--ranker", "fixed", "--items", 20, "--json").stdout)
    assert record["average_regret"] == pytest.approx(0.0, abs=1e-12)


def test_options_reach_the_objects():
    record = json.loads(
        run(
            "play", "--ranker", "rtopk", "--items", 20, "--set", "ranker.n_blocks=100",
            "--set", "world.flip=0.3", "--set", "ranker.subroutine=plackett-luce", "--json",
        ).stdout
    )  # fmt: skip
    assert record["spec"]["ranker_options"] == {"n_blocks": 100, "subroutine": "plackett-luce"}
    assert record["spec"]["world_options"] == {"flip": 0.3}


BAD = [
    (["--items", 5, "--top", 6], "top must be an integer between 1 and items=5, got 6."),
    (["--ranker", "rtopk", "--items", 20, "--set", "ranker.n_blocks=501"], "must be at most 500"),
    (["--rounds", 0], "rounds must be an integer of at least 1, got 0."),
    (["--runs", 0], "--runs must be an integer of at least 1, got 0."),
    (["--ranker", "rtopkk"], "Did you mean 'rtopk'?"),
    (["--measure", "NDGC"], "Did you mean 'NDCG'?"),
    (["--measure", "NDCG@x"], "must be a whole number after the @"),
    (["--measure", "SumLoss@3"], "SumLoss takes no cutoff"),
    (["--world", "flip"], "Did you mean 'flips'?"),
    (["--world", "absent.csv"], "absent.csv must be a readable CSV file"),
    (["--reveal", "topp"], "Did you mean 'top'?"),
    (["--subroutine", "quick"], "Did you mean 'quicksort'?"),
    (["--ranker", "ftpl", "--top", 1], "FTPL needs the relevance of the first 20 of 20"),
    (["--set", "ranker.blocks=3"], "An option of Keystone must be one of"),
    (["--ranker", "rtopk", "--set", "ranker.blocks=3"], "An option of RTopK must be one of"),
    (["--set", "n_blocks=3"], "--set must look like"),
    (["--set", "crowd.flip=1"], "what to set must be one of"),
    (["--set", "world.flip=2"], "`flip` of Flips must be a number"),
    (["--ranker", "hedge", "--items", 8], "`n_items` of Hedge must be an integer between"),
    (["--ranker", "forecaster", "--items", 3, "--measure", "NDCG"], "cannot be estimated"),
    (["--seed", -1], "--seed must be an integer between"),
    (["--comparator", "best"], "--comparator must be one of final, prefix"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=lambda v: str(v)[:40])
def test_bad_input_is_one_sentence_and_nothing_is_written(arguments, sentence, tmp_path):
    out = tmp_path / "out"
    result = run("play", *arguments, "--out", out, "--json", code=2)
    assert sentence in result.stderr.replace("\n", " ")
    assert result.stdout == ""
    assert "Traceback" not in result.output
    assert result.stderr.strip().count("\n") == 0
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2,3\n", "line 2: a row must have 2 cells"),
        ("a,b\n1,\n", "a rating is missing"),
        ("a,b\n1,-3\n", "a rating is negative"),
        ("a,b\n1,two\n", "a rating must be a number"),
        ("4,5\n1,2\n", "--set world.header=true or false"),
        ("id,a\n1,2\n", "--ids id leaves it out, index=False keeps it"),
        ("a,b,user_id\n1,2,7\n", "the column 'user_id' must be ratings of an item"),
        ("a,b,c\n1,2,ann\n", "got 'ann'; --ids c leaves the column out"),
        ("a;b\n1,5;2.5\n", "must have one decimal mark, got '1,5' and '2.5'"),
        ("a;b,c\n1;2,3\n2;5,3\n", "got what may be a comma or a semicolon"),
        ("a,b\n1,2\n3,\n", "a rating is missing; --missing drop leaves such people out."),
    ],
)
def test_bad_csv_is_one_sentence(text, sentence, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    assert sentence in run("play", "--world", path, code=2).stderr.replace("\n", " ")


def test_without_matplotlib_nothing_is_played_or_written(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for command in (["play"], ["reproduce", "top1-fig1"]):
        result = run(*command, "--out", tmp_path / "out", code=2)
        assert "Figures need matplotlib" in result.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_out_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    result = run("play", "--out", tmp_path / "file", code=2)
    assert "must be a folder to write to" in result.stderr.replace("\n", " ")


def test_list_names_every_row():
    record = json.loads(run("list", "--json").stdout)
    both = {*record["rankers"], *record["rankers of query-document lists"]}
    assert both == set(RANKERS)
    assert set(record["measures"]) == set(MEASURES)
    assert set(record["worlds"]) == set(WORLDS)
    assert set(record["reveals"]) == set(REVEALS)
    assert all(row["summary"] for rows in record.values() for row in rows.values())
    shown = run("list").stdout
    assert all(name in shown for rows in record.values() for name in rows)


def test_reproductions_do_not_overwrite_each_other(tmp_path, monkeypatch):
    folders = []

    def reproduced(study, folder, progress):
        folders.append((study.key, folder))
        raise InvalidInput("enough")

    monkeypatch.setattr("keyhole.cli.reproduce.reproduce", reproduced)
    run("reproduce", "thesis-fig3.1", code=2)
    run("reproduce", "thesis-fig3.2", code=2)
    run("reproduce", "thesis-fig3.2", "--out", tmp_path, code=2)
    assert folders == [
        ("thesis-fig3.1", Path("out/thesis-fig3.1")),
        ("thesis-fig3.2", Path("out/thesis-fig3.2")),
        ("thesis-fig3.2", tmp_path),
    ]


def test_unknown_paper():
    result = run("reproduce", "thesis-fig3", code=2)
    assert "Did you mean 'thesis-fig3." in result.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pla"], "No such command 'pla'. Did you mean 'play'? See: keyhole --help"),
        (["xyzzy"], "No such command 'xyzzy'. See: keyhole --help"),
        (
            ["play", "--rounds", "x"],
            "parse string as an integer. See: keyhole play --help",
        ),
    ],
)
def test_what_is_not_there_is_one_sentence_with_one_stop(words, sentence):
    assert run(*words, code=2).stderr.strip().endswith(sentence)


@pytest.mark.parametrize("command", [[], ["play"], ["list"], ["reproduce"]])
def test_help_teaches(command):
    shown = run(*command, "--help").stdout
    assert "Usage: keyhole" in shown
    assert len(shown.splitlines()) > 10


def test_the_installed_command_and_missing_extras():
    command = [str(Path(sys.executable).parent / "keyhole"), "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("keyhole ")
    code = "import sys; sys.modules['typer'] = None\nfrom keyhole.__main__ import main\nmain()"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert ran.returncode == 2
    assert "pip install -e '.[all]' in a checkout" in ran.stderr
    assert "Traceback" not in ran.stderr
