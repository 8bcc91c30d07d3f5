"""What commands print for people has the numbers of their JSON, rounded and in their units."""

import csv
import json
import shlex

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from keyhole.cli import simulate
from keyhole.cli.app import app
from keyhole.cli.simulated_users import Crowd, Results, judge
from keyhole.measures import measure as named_measure
from keyhole.offline.bounds import BOUNDS
from keyhole.worlds.flips import Flips
from tests.lab.effects_files import write_texts
from tests.lab.running import run

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_texts(folder)
    return folder


@pytest.fixture(autouse=True)
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("keyhole.cli.terminal.OUT", Console(width=250))  # pytest-xdist has its own


def both(line, code=0):
    """Return the JSON of a command, and what it prints without."""
    record = json.loads(run(*shlex.split(line), "--json", code=code).stdout)
    printed = CliRunner().invoke(app, shlex.split(line))
    assert printed.exit_code == code
    return record, printed.stdout


def cells_of(text):
    """Return the rows of tables that have lines between their columns."""
    rows = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row.strip("│").split("│")] for row in rows]


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("measure", ["DCG", "SumLoss", "ERR"])
def test_play(measure, tmp_path, monkeypatch):
    monkeypatch.setattr("keyhole.cli.play.save_figure", lambda *_: None)  # which takes longest
    game = "--items 9 --rounds 60 --runs 3 --seed 2 --ranker epsilon-greedy --against random"
    line = f"play {game} --measure {measure}"
    record, text = both(line)
    rows = []
    for each in (record, *record["against"]):
        regret, error = each["average_regret"], each["average_regret_error"]
        best, slope = each["best_fixed_score"], each["slope"]
        rows.append([
            each["spec"]["ranker"], each["reveal"],
            "not known" if regret is None else f"{regret:.4f}\u00a0±\u00a0{error:.4f}",
            f"{each['average_score']:.4f}",
            "not known" if best is None else f"{best:.4f}",
            "not known" if slope is None else f"{slope:.2f}",
        ])  # fmt: skip
        first = ", ".join(map(str, each["learnt_ranking"][:6]))
        said = f"{each['spec']['ranker']} would now show: items {first} and 3 more."
        assert said in words(text)
    assert cells_of(text) == rows
    assert ("; lower is better" in text) == (measure == "SumLoss")
    for note in {*record["notes"], *record["against"][0]["notes"]}:
        assert f"Note: {note}." in words(text)
    assert (measure == "ERR") == (record["average_regret"] is None)
    run(*shlex.split(line), "--out", tmp_path)
    with (tmp_path / "curves.csv").open() as file:
        found = [
            (row["curve"], int(row["round"]), float(row["average_regret"]))
            for row in csv.DictReader(file)
        ]
    assert [row for row in found if row[2] == row[2]] == [
        (f"{each['spec']['ranker']}, {each['reveal']}", x, y)
        for each in (record, *record["against"]) for x, y in each["curve"] if y is not None
    ]  # fmt: skip


def numbers_in(line):
    return [word for word in line.split() if word.replace(".", "").replace("-", "").isdigit()]


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [("betting", "promote"), ("student-t", "promote"), ("empirical-bernstein", "keep")],
)
def test_evaluate(bound, verdict):
    line = f"evaluate log.csv --policy uniform --confidence 0.9 --bound {bound}"
    record, text = both(line, code=int(verdict == "keep"))
    compared = [record["policy"]["estimates"], record["baseline"]["estimates"],
                record["difference"]]  # fmt: skip
    expected = []
    for lines in compared:
        for name, each in lines.items():
            known = [each["bounds"][key] for key in BOUNDS if each["bounds"][key] is not None]
            expected.append([name, *(f"{value:.5f}" for value in (each["value"], *known))])
    rows = [line.split() for line in text.splitlines() if line.split()]
    found = [row for row in rows if row[0] in compared[0] and len(row) > 1]
    assert [[row[0], *numbers_in(" ".join(row[1:]))] for row in found] == expected
    names = list(dict.fromkeys([bound, "student-t"]))
    decisive = "importance-weighted"
    for title, lines in zip(("uniform", "logged", "uniform minus logged"), compared, strict=True):
        each = lines[decisive]
        ends = [end for name in names for end in each["intervals"][name]]
        row = " ".join([title, *(f"{value:.5f}" for value in (each["value"], *ends))])
        assert row in words(text)
    for each in (record["policy"], record["baseline"]):
        found = each["diagnostics"]
        assert (
            f"{each['name']}: {found['effective_rows']:,.0f} effective rows of "
            f"{found['n_rows']:,}, acts in {100 * found['overlap']:.1f}% of them "
            f"({found['n_rewarded']} rewarded), largest weight {found['largest_weight']:.4g}, "
            f"mean weight {found['mean_weight']:.3f}."
        ) in words(text)
    assert "Reward per row of 90 rows, with lower confidence bounds at 0.9." in text
    assert (
        f"{verdict}: the {bound} bound on the difference is {record['lower_bound']:.5f}; above 0 "
        f"means promote."
    ) in words(text)


def test_train_policy():
    """The file of the policy is written anew: nothing of it is read."""
    line = (
        "train-policy log.csv --out p.npz --model classifiers --folds 2 --penalty 0.1 --penalty 9 "
        "--hold-out 0.4 --seed 3"
    )
    record, text = both(line)
    train, rest = record["training_rows"], record["held_out_rows"]
    assert (train + rest, rest) == (90, 36)
    assert f"Trained classifiers on {train} rows of 90 (at random): 3 actions, 2 features" in text
    rows = [line.split() for line in text.splitlines()]
    for each in record["penalties"]:
        row = [f"{each['penalty']:g}", f"{each['score']:.5f}"]
        row += ["chosen"] if each["penalty"] == record["penalty"] else []
        assert row in rows
    assert f"Judged on the {record['evaluation']['rows']} rows held out" in text


def test_bound():
    record, text = both("bound --surrogate squared --queries 1000 --items 10 --radius 0.1")
    rows = cells_of(text)
    known = [each for each in record["bounds"] if each["value"] is not None]
    told = [row[1] for row in rows if row[1] and row[1] != "says nothing"]
    assert told == [f"{each['value']:.4g}" for each in known]
    assert sum(row[1] == "says nothing" for row in rows) == sum(
        each["value"] >= record["loss_range"] for each in known
    )
    assert [each["says_something"] for each in known] == [
        each["value"] < record["loss_range"] for each in known
    ]
    least = min(known, key=lambda each: each["value"])
    assert record["smallest"] == least["name"]
    assert f"Smallest: {least['name']}, {least['value']:.4g}." in text
    assert (
        f"Losses range over {record['loss_range']:.4g}; G = {record['lipschitz']:.4g}, H = "
        f"{record['smoothness']:.4g} for the largest change of a score."
    ) in words(text)
    left_out = [each for each in record["bounds"] if each["value"] is None]
    assert [each["applies"] for each in record["bounds"]] == [
        each["value"] is not None for each in record["bounds"]
    ]
    for each in left_out:
        assert f"Not applicable: {each['name']}, which needs {each['needs']}." in words(text)


@pytest.mark.parametrize("rounds", [100, 10**9])
def test_bound_of_regret(rounds):
    record, text = both(f"bound --rounds {rounds} --items 6 --top 2")
    expected = []
    for each in record["bounds"]:
        per_round = f"{each['value'] / rounds:.4g}"
        expected += [[f"{each['value']:.4g}", per_round]]
        expected += [] if each["value"] < record["largest_regret"] else [["", "says nothing"]]
        assert each["says_something"] == (each["value"] < record["largest_regret"])
    rows = [row[1:3] for row in cells_of(text)]
    assert [row for row in rows if any(row)] == expected
    assert (
        f"The regret of any ranker is at most {record['largest_regret'] / rounds:.4g} per round"
        in text
    )


@pytest.mark.parametrize("measure", ["DCG", "SumLoss"])
def test_simulate_users(measure, capsys):
    crowd, judged = Crowd(Flips(4), 3), named_measure(measure)
    relevance = {place: crowd.relevance(place) for place in range(30)}
    shown = np.array([2, 0, 1, 3])
    seen = Results(
        {place: float(judged(each, shown)) for place, each in relevance.items()}, relevance, 12.0,
        4, {"pending": 20, "now": 6}, 2.0,
    )  # fmt: skip
    record = judge(seen, judged, 3)
    score = np.mean(list(seen.scores.values()))
    totals = sum(relevance.values())
    order = np.argsort(-totals, kind="stable")  # gains are per item: the best list sorts them
    best = np.mean([judged(each, order) for each in relevance.values()])
    assert record["average_score"] == pytest.approx(score)
    assert record["best_fixed_score"] == pytest.approx(best)
    assert record["average_regret"] == pytest.approx(abs(score - best))
    assert (record["rounds"], record["mean_relevance"]) == (30, 0.4)
    assert (record["rounds_per_second"], record["seconds"]) == (15.0, 2.0)
    assert record["feedback"] == {"lost": 4, "pending": 20, "now": 6}
    simulate._print_table({**record, "ranker": "crowd"})
    text = capsys.readouterr().out
    informed = record["full_information"]
    assert cells_of(text) == [
        ["crowd, served", f"{abs(score - best):.4f}", f"{score:.4f}"],
        ["ftpl with the noise of its theorem, full information",
         f"{informed['average_regret']:.4f}", f"{informed['average_score']:.4f}"],
        ["best fixed list", "0.0000", f"{best:.4f}"],
    ]  # fmt: skip
    assert "Feedback: 4 lost, 20 pending, 6 now. 15 rounds per second." in text


@pytest.mark.parametrize(
    ("game", "forced"), [("NDCG --items 3 --top 1", True), ("DCG --items 3 --top 1", False)]
)
def test_classify(game, forced):
    record, text = both(f"classify {game}")
    assert f"class {record['class']}: " in words(text)
    assert f"rate {record['rate']}: the growth of the best algorithm's regret" in words(text)
    assert words(record["reason"]) in words(text)
    assert words("advice " + " ".join(record["advice"]).replace("`", "")) in words(text)
    run(*shlex.split(f"classify {game}"), "--certificate", "proof.json")
    proof, said = both("classify --check proof.json")
    assert (proof["class"], proof["rate"]) == (record["class"], record["rate"])
    assert (", at least 0.0440923 T" in said) == forced
