"""keyhole classify and keyhole atlas, as a user meets them."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keyhole.cli.app import app
from keyhole.lab import atlas as maps, result_store
from keyhole.lab.atlas import Column, atlas_csv, columns_of, fill_column, make_atlas
from keyhole.monitoring.verify import check_certificate


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + result.stderr
    return result


def error_of(*arguments, code=2):
    """Return the one sentence that a bad call gets on standard error."""
    result = run("classify", *arguments, code=code)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(".\n") or "Did you mean" in result.stderr
    return result.stderr


def answer_to(*arguments):
    return json.loads(run("classify", *arguments, "--json").stdout)


# --------------------------------------------------------------------------- classify


@pytest.mark.parametrize(
    ("arguments", "class_", "rate", "source"),
    [
        ("NDCG --items 4 --top 2 --grades 2", "hopeless", "T", "enumeration"),
        ("NDCG --items 20 --top 1", "hopeless", "T", "rule"),
        ("NDCG --items 4 --top 3 --method rule", "global", "T^(2/3)", "rule"),
        ("NDCG --items 3 --top 2 --grades 3", "hopeless", "T", "enumeration"),
        ("DCG --items 4 --top 3 --method enumeration", "local", "T^(1/2)", "enumeration"),
        ("Precision@4 --items 4 --top 1", "trivial", "0", "enumeration"),
        ("NDCG --items 90000 --top 89999 --grades 3", "unknown", "unknown", None),
    ],
)
def test_classify_prints_what_the_contract_names(arguments, class_, rate, source):
    answer = answer_to(*arguments.split())
    assert (answer["class"], answer["rate"], answer["source"]) == (class_, rate, source)
    shown = run("classify", *arguments.split()).stdout
    assert class_ in shown
    assert answer["reason"] in " ".join(shown.split())
    for sentence in answer["advice"]:
        assert sentence.replace("`", "") in " ".join(shown.split())


def test_what_is_not_known_is_said_plainly():
    shown = run("classify", "NDCG", "--items", 90000, "--top", 89999, "--grades", 3).stdout
    assert "No rule is known for NDCG on 90000 items" in shown
    assert "90000 items are too many to enumerate" in shown


def test_a_thousand_items_take_less_than_a_second_of_work():
    answer_to("DCG", "--items", 20, "--top", 1)  # what is imported once
    for name in ("NDCG", "NDCG@10", "AUC", "ERR", "AP"):
        start = time.process_time()
        answer = answer_to(name, "--items", 1000, "--top", 3)
        assert time.process_time() - start < 1.0
        assert answer["source"] == "rule"


@pytest.mark.parametrize(
    "game", ["NDCG --items 4 --top 2", "AP --items 3 --top 2", "SumLoss --items 3 --top 3"]
)
def test_a_certificate_is_written_checked_and_refused_once_corrupted(game, tmp_path):
    path = tmp_path / "new" / "proof.json"
    answer = json.loads(run("classify", *game.split(), "--certificate", path, "--json").stdout)
    certificate = json.loads(path.read_text())
    assert check_certificate(certificate) == answer["class"]
    assert f"is {answer['class']}" in run("classify", "--check", path).stdout
    checked = json.loads(run("classify", "--check", path, "--json").stdout)
    assert checked["rate"] == answer["rate"]
    assert checked["proves"] is True
    text = json.dumps(certificate["proofs"])
    number = next(x for x in text.split('"') if "/" in x and x.replace("/", "").isdigit())
    certificate["proofs"] = json.loads(text.replace(f'"{number}"', '"1/977"', 1))
    path.write_text(json.dumps(certificate))
    assert f"{path} proves nothing: " in error_of("--check", path, code=1)


def test_an_answer_without_a_certificate_is_still_an_answer(tmp_path):
    path = tmp_path / "proof.json"
    path.write_text("kept")
    result = run("classify", "DCG", "--items", 20, "--top", 1, "--certificate", path, code=2)
    assert "T^(2/3)" in result.stdout
    assert "No certificate was written: a game of 20 items and 2 grades is too large" in (
        result.stderr
    )
    assert path.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [path]


def write_game(folder, end="\n"):
    for name, text in (("loss", "1,1\n0,1\n1, 1/3\n"), ("feedback", "no,yes\n,\n,\n")):
        (folder / f"{name}.csv").write_bytes(text.replace("\n", end).encode())


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n\n"])
def test_lines_of_a_game_may_end_as_any_spreadsheet_ends_them(end, tmp_path):
    files = ("--loss", tmp_path / "loss.csv", "--feedback", tmp_path / "feedback.csv")
    write_game(tmp_path)
    answer = answer_to(*files)
    write_game(tmp_path, end)
    assert answer_to(*files) == answer


def test_a_game_of_ones_own(tmp_path):
    write_game(tmp_path)
    files = ("--loss", tmp_path / "loss.csv", "--feedback", tmp_path / "feedback.csv")
    answer = answer_to(*files, "--certificate", tmp_path / "proof.json")
    assert (answer["class"], answer["exact"], answer["measure"]) == ("global", True, None)
    assert (
        "a game of 3 actions is global"
        in run("classify", "--check", tmp_path / "proof.json").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("NDCG --items 4 --top 5", "`k` of Top must be an integer between 1 and n_items=4, got 5."),
        ("NDCG --items 4 --top 2 --grades 1", "--grades must be an integer between 2 and"),
        ("NDGC --items 4 --top 2", "got 'NDGC'. Did you mean 'NDCG'?"),
        ("NDCG --items 4 --top 2 --method rules", "Did you mean 'rule'?"),
        ("NDCG --items 9 --top 2 --method enumeration", "is too large to enumerate"),
        ("NDCG --items 4", "--items and --top must be given with a measure."),
        ("", "Exactly one of MEASURE, --check and --loss must be given."),
        ("NDCG --check x.json", "Exactly one of MEASURE, --check and --loss must be given."),
        ("--loss x.csv", "--loss and --feedback must be given together."),
        ("--check nowhere.json", "nowhere.json must be a certificate in a JSON file: No such file"),
        ("--check x.json --certificate y.json", "At most one of --certificate and --check"),
        ("NDCG --items 4 --top 2 --certificate .", "--certificate must be a file, got the folder"),
        ("--loss x.csv --feedback y.csv --top 2", "--items and --top need a measure."),
    ],
)  # fmt: skip
def test_a_bad_game_gets_one_sentence(arguments, sentence):
    assert sentence in error_of(*arguments.split())


@pytest.mark.parametrize(
    ("loss", "feedback", "sentence"),
    [
        ("1,0\n0,1\n", "a,b\n", "feedback must have the shape of loss (2 by 2), got 1 by 2."),
        ("1,0\n0\n", "a,b\na,b\n", "must have rows of equal length (2), got 1 in row 2."),
        ("1,x\n0,1\n", "a,b\na,b\n", "got 'x' in row 1, column 2."),
        ("1,nan\n0,1\n", "a,b\na,b\n", "got 'nan' in row 1, column 2."),
        ("", "a,b\n", "loss must be a list of rows of one length, at least one by one."),
    ],
)
def test_matrices_that_do_not_fit_get_one_sentence(loss, feedback, sentence, tmp_path):
    (tmp_path / "loss.csv").write_text(loss)
    (tmp_path / "seen.csv").write_text(feedback)
    files = ("--loss", tmp_path / "loss.csv", "--feedback", tmp_path / "seen.csv")
    assert sentence in error_of(*files)


@pytest.mark.parametrize(
    "content", ["{", "[]", '"text"', "{}", '{"format": 1}', "\x00", "[" * 9999]
)
def test_an_unreadable_certificate_gets_one_sentence(content, tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(content)
    assert str(path) in error_of("--check", path)


# --------------------------------------------------------------------------- atlas


def test_the_atlas_is_a_figure_and_tables(tmp_path):
    """On both cores, with options that take several values, and beyond enumeration."""
    words = "atlas --items 2-3 7 --grades 2 3 --measures NDCG AUC Precision@2"
    arguments = words.split()
    result = run(*arguments, "--out", tmp_path)
    assert "rule and enumeration disagree on 0" in result.stdout
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"cells", "atlas.png", "atlas.svg", "atlas.csv", "atlas.md"}
    with (tmp_path / "atlas.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 2 * (2 + 3 + 7)
    assert list(rows[0]) == [
        "measure", "items", "top", "grades", "class", "rate", "source", "exact", "constant",
    ]  # fmt: skip
    for row in rows:
        assert row["source"] == ("rule" if row["items"] == "7" else "enumeration")
        assert row["exact"] == "true"
        assert bool(row["constant"]) == (row["class"] == "hopeless" and row["items"] != "7")
    found = {tuple(row[n] for n in ("measure", "items", "top", "grades")): row for row in rows}
    assert float(found["NDCG", "3", "1", "2"]["constant"]) == pytest.approx(0.044092, abs=5e-7)
    assert found["NDCG", "7", "5", "2"]["rate"] == "T"
    again = json.loads(run(*arguments, "--out", tmp_path, "--json").stdout)
    assert again["resumed"] == len(again["cells"]) == len(rows)


def test_cells_are_found_again_only_with_the_same_code(tmp_path, monkeypatch):
    columns = columns_of(["AP"], [2, 3], [2])
    first = make_atlas(columns, tmp_path, workers=1)
    assert (first.n_resumed, make_atlas(columns, tmp_path, workers=1).n_resumed) == (0, 5)
    next(iter(tmp_path.iterdir())).write_text("half a fi")
    with pytest.warns(RuntimeWarning, match="was damaged"):
        assert make_atlas(columns, tmp_path, workers=1).n_resumed in (2, 3)
    monkeypatch.setattr(result_store, "package_stamp", lambda: "another")
    changed = make_atlas(columns, tmp_path, workers=1)
    assert changed.n_resumed == 0
    assert atlas_csv(changed) == atlas_csv(first)


def test_a_disagreement_is_printed_and_fails(tmp_path, monkeypatch):
    from keyhole.monitoring.rules import Rule

    monkeypatch.setattr(maps, "rule_for", lambda *_: Rule(2, 2, "a wrong rule"))
    arguments = ("atlas", "--items", "3", "--grades", "2", "--measures", "DCG", "--out", tmp_path)
    result = run(*arguments, code=1)
    assert "disagree on 1" in result.stdout
    assert (
        "Disagreement: DCG on 3 items with 2 grades and the top 1 shown is global by enumeration, "
        "hopeless by rule." in result.stderr
    )
    assert (tmp_path / "atlas.csv").exists()


def test_ctrl_c_leaves_finished_cells(tmp_path):
    source = str(Path(maps.__file__).parents[2])
    command = [sys.executable, "-m", "keyhole", "atlas", "--grades", "2", "--out", str(tmp_path)]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": source}, stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not list((tmp_path / "cells").glob("*.json")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished cells are saved" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "atlas.csv").exists()
    columns = columns_of(maps.MEASURES, [5], [2])
    kept = result_store.ResultStore(tmp_path / "cells")
    assert any(kept.load(asdict(column), list) for column in columns)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--items x", "--items must be numbers or ranges such as 2-5, got 'x'."),
        ("--items 5-2", "--items must have ascending ranges, got '5-2'."),
        ("--items 2-80", "items must add up to at most 150 columns of a figure, got 3239."),
        ("--grades 1", "--grades must be an integer of at least 2, got 1."),
        ("--measures NDGC", "Did you mean 'NDCG'?"),
        ("--items 0", "`n_items` must be an integer of at least 1, got 0."),
    ],
)
def test_a_bad_atlas_gets_one_sentence(arguments, sentence, tmp_path):
    result = run("atlas", *arguments.split(), "--out", tmp_path / "out", code=2)
    assert sentence in result.stderr
    assert not (tmp_path / "out").exists()


def test_cells_without_a_rule_are_marked_not_known(monkeypatch):
    monkeypatch.setattr(maps, "rule_for", lambda *_: None)
    cells = fill_column(Column("NDCG", 7, 2))
    assert {(cell.rate, cell.source, cell.exact) for cell in cells} == {("unknown", None, False)}
    assert "?, ?" in maps.atlas_markdown(maps.Atlas(tuple(cells)))


def test_an_answer_names_its_game_and_where_it_is_from():
    lines = run("classify", "NDCG", "--items", 3, "--top", 1).stdout.splitlines()
    assert lines[0].split() == [
        "game",
        "NDCG,",
        "3",
        "items,",
        "the",
        "top",
        "1",
        "revealed,",
        "2",
        "grades",
    ]
    assert any(line.startswith("source  enumeration, exact") for line in lines)
