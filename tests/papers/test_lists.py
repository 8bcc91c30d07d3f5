"""Papers on query-document lists, on files of one's own, and resumed."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.base.errors import KeyholeError
from keyhole.cli.app import app
from keyhole.experiment.inputs import data_folder
from keyhole.lab.claims import judge
from keyhole.lab.kinds import KINDS
from keyhole.lab.kinds.experiments import ListsSpec, play_lists
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study, on_files, read_study


def test_what_is_said_of_perceptrons_is_not_true_of_listnet():
    study = find_study("thesis-fig2.1", quick=True)
    slow = next(curve for curve in study.curves if curve.label.startswith("ListNet"))
    curves = {slow.label: play_lists(slow.label, slow.spec.build())}  # type: ignore[attr-defined]
    claims = [claim for claim in study.claims if claim["kind"] in ("settles", "band")]
    assert len(claims) == 4
    for claim in claims:
        assert judge({**claim, "curve": slow.label}, curves, {}, {}).holds is False


def test_a_run_does_not_depend_on_how_many_there_are():
    one, two = (
        play_lists(
            "x", ListsSpec.of({"ranker": "listnet", "rounds": 500, "runs": runs}, "").build()
        )
        for runs in (1, 2)
    )
    assert np.array_equal(one.values[0], two.values[0])
    assert not np.array_equal(two.values[0], two.values[1])


def test_greedy_lists_are_not_those_shown():
    shown, greedy = (
        play_lists("x", ListsSpec.of({"rounds": 2000, "greedy": greedy}, "").build())
        for greedy in (False, True)
    )
    assert greedy.at().mean > shown.at().mean + 0.005


# --------------------------------------------------------------------------- files


def write_letor(path, seed):
    numbers = np.random.default_rng(seed)
    lines = []
    for query in range(40):
        for _ in range(6):
            x = numbers.random(3)
            values = " ".join(f"{i + 1}:{v:.4f}" for i, v in enumerate(x))
            lines.append(f"{int(x[0] > 0.6)} qid:{query} {values}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def study(tmp_path):
    """A study of two panels whose curves are compiled elsewhere too."""
    folder = tmp_path / "papers" / "small"
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(
        """
        kind = "lists"
        title = "t"
        paper = "p"
        about = "a"
        [lists]
        world_options = { shape = "yandex" }
        rounds = 300
        runs = 2
        [[panel]]
        name = "one"
        [[panel]]
        name = "two"
        lists = { world = "data:mq2008" }
        [[curve]]
        label = "random"
        ranker = "random-lists"
        [[curve]]
        label = "ListNet"
        ranker = "listnet"
        [[curve]]
        label = "other"
        panel = "two"
        ranker = "random-lists"
        """
    )
    (folder / "expected.toml").write_text(
        """
        [[claim]]
        text = "ListNet learns"
        kind = "order"
        curves = ["random", "ListNet"]
        by = 0.1
        [[claim]]
        text = "random ends where it does"
        kind = "band"
        curve = "random"
        low = 0.5
        high = 0.65
        on_data = "a number of the generated lists"
        [[claim]]
        text = "other"
        kind = "band"
        curve = "other"
        low = 0.0
        high = 1.0
        """
    )
    return read_study(folder)


def invoke(study, monkeypatch, *arguments):
    monkeypatch.setattr("keyhole.cli.reproduce.find_study", lambda *_, **__: study)
    return CliRunner().invoke(app, ["reproduce", "small", *map(str, arguments)])


def test_own_files_take_the_place_of_the_first_panel(study, tmp_path, monkeypatch):
    files = [write_letor(tmp_path / f"{seed}.txt", seed) for seed in (1, 2)]
    out = tmp_path / "out"
    options = [option for path in files for option in ("--data", path)]
    result = invoke(study, monkeypatch, *options, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    record = json.loads((out / "verdicts.json").read_text())
    assert [verdict["holds"] for verdict in record["verdicts"]] == [True, None, None]
    assert record["verdicts"][1]["evidence"] == "a number of the generated lists"
    assert record["verdicts"][2]["evidence"] == "the files of --data take its place"
    assert record["curves"]["ListNet"]["world"] == [str(path) for path in files]
    # the same names with other lists in them are played anew
    again = on_files(study, files)
    assert reproduce(again, out).n_resumed == 2
    write_letor(files[1], 3)
    assert reproduce(again, out).n_resumed == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 qid:1 1:0.5 2:x\n", "bad.txt"),
        (None, "bad.txt"),
    ],
)
def test_a_bad_file_is_one_sentence(text, sentence, study, tmp_path, monkeypatch):
    path = tmp_path / "bad.txt"
    if text is not None:
        path.write_text(text)
    result = invoke(study, monkeypatch, "--data", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    shown = result.stderr.replace("\n", "")
    assert shown.startswith("Error:")
    assert sentence in shown
    assert not (tmp_path / "out").exists()


def test_papers_on_lists_are_resumed(study, tmp_path):
    real = KINDS["lists"]
    played: list[str] = []

    def interrupted(label, lists, report):
        if played:
            raise KeyboardInterrupt
        played.append(label)
        return real.play(label, lists, report)

    first = replace(study, curves=study.curves[:2], claims=study.claims[:2])
    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(first, kind=replace(real, play=interrupted)), tmp_path)
    result, fresh = reproduce(first, tmp_path), reproduce(first, tmp_path / "fresh")
    assert (result.n_resumed, fresh.n_resumed) == (1, 0)
    head = (tmp_path / "curves.csv").read_text().splitlines()[0]
    assert head == "curve,round,average_score,standard_error,runs"
    for label, curve in fresh.curves.items():
        assert np.array_equal(curve.values, result.curves[label].values)


def test_games_have_no_files_of_ones_own(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "top1-fig1", "--data", "x.txt"])
    assert result.exit_code == 2
    expected = "--data needs a paper on query-document lists, which top1-fig1 is not."
    assert expected in result.stderr.replace("\n", " ")


def test_missing_data_is_skipped_with_a_reason(study, tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "nothing"))
    result = reproduce(study, tmp_path / "out")
    assert [verdict.holds for verdict in result.verdicts] == [True, True, None]
    assert "no data: mq2008 is not in" in result.verdicts[2].evidence


def test_a_claim_without_its_data_is_no_success(study, tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "nothing"))
    result = invoke(study, monkeypatch, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert "SKIP  other: no data: mq2008 is not in" in " ".join(result.stdout.split(" "))
    said = " ".join(result.stderr.split())
    assert "KEYHOLE_DATA must name the folder of the data sets that 1 of 3 claims could not" in said
    wrong = replace(study, claims=({**study.claims[1], "low": 0.9, "high": 1.0}, study.claims[2]))
    assert invoke(wrong, monkeypatch, "--out", tmp_path / "wrong").exit_code == 1


def test_a_study_of_which_no_curve_has_its_data_draws_nothing(study, tmp_path, monkeypatch):
    monkeypatch.setenv("KEYHOLE_DATA", str(tmp_path / "nothing"))
    missing = tuple(curve for curve in study.curves if curve.label == "other")
    lacking = replace(study, curves=missing, claims=study.claims[2:])
    result = invoke(lacking, monkeypatch, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert "1 of 1 claim could not be judged" in " ".join(result.stderr.split())
    assert "Curves and verdicts are in" in result.stdout
    assert sorted(path.name for path in (tmp_path / "out").glob("*.*")) == [
        "curves.csv", "verdicts.json",
    ]  # fmt: skip


def test_mq2008_is_played_where_it_is(study, tmp_path):
    if not (data_folder() / "mq2008").is_dir():
        pytest.skip(f"MQ2008 is not in {data_folder()}")
    result = reproduce(study, tmp_path / "out")
    assert [verdict.holds for verdict in result.verdicts] == [True, True, True]
    mean, error = result.curves["other"].at()
    assert abs(mean - 0.4667) < 5 * max(error, 0.01)  # a deviation of .3 over 600 lists


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"rankers": "x"}, "A field of here must be one of"),
        ({"ranker": "rtop"}, "Did you mean 'rtopk'?"),
        ({"world": "gradde"}, "Did you mean 'graded'?"),
        ({"world_options": {"shape": "yaho"}}, "Did you mean 'yahoo'?"),
        ({"world_options": {"flip": 1}}, "An option of Graded must be one of"),
        ({"ranker_options": {"rates": 1}}, "An option of ContextualRTopK must be one of"),
        ({"rounds": 0}, "rounds must be an integer of at least 1"),
    ],
)
def test_bad_fields_are_one_sentence(fields, sentence):
    with pytest.raises(KeyholeError) as caught:
        ListsSpec.of(fields, "here").build()
    assert sentence in str(caught.value)
