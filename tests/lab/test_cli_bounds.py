"""The command keyhole bound."""

import json

import pytest
from typer.testing import CliRunner

from keyhole.bounds.guarantees import Problem, guarantees
from keyhole.bounds.regrets import regret_bounds
from keyhole.cli.app import app


def bound(*options):
    return CliRunner().invoke(app, ["bound", *options])


ASKED = ["--surrogate", "listnet", "--queries", "10000", "--items", "100", "--radius", "1",
         "--norm", "1", "--confidence", "0.95"]  # fmt: skip


def test_all_bounds_are_printed_and_the_smallest_named():
    result = bound(*ASKED)
    assert result.exit_code == 0
    for word in ("Theorem 35", "Theorem 36", "Theorem 38", "says nothing", "a convex loss"):
        assert word in result.stdout
    assert "Smallest: descent, averaged, tight, 0.02." in result.stdout
    assert "Not applicable: least mean loss, smooth loss, which needs the loss of the best" in (
        result.stdout.replace("\n", " ")
    )


def test_json_holds_the_same_numbers():
    record = json.loads(bound(*ASKED, "--json", "--optimal-loss", "0.1", "--safe").stdout)
    found = guarantees(Problem("listnet", 10_000, 100, optimal_loss=0.1), safe=True)
    assert [row["value"] for row in record["bounds"]] == [row.value for row in found]
    assert record["smallest"] == found[0].name
    assert (record["lipschitz"], record["smoothness"]) == (2.0, 1.0)
    assert record["bounds"][0]["says_something"] is True


def test_options_reach_their_surrogates():
    record = json.loads(bound("--surrogate", "smooth_dcg", "--epsilon", "0.5", "--grade", "2",
                              "--json").stdout)  # fmt: skip
    assert record["lipschitz"] == 3.0  # G_max / (2 eps)
    assert all(not row["applies"] for row in record["bounds"] if row["source"] == "Theorem 35")
    record = json.loads(bound("--surrogate", "ordinal", "--grade", "3", "--json").stdout)
    assert record["lipschitz"] == 300.0
    record = json.loads(bound("--ball", "l1", "--features", "50", "--json").stdout)
    assert "Theorem 40" in {row["source"] for row in record["bounds"]}
    record = json.loads(bound("--loss-bound", "2.5", "--json").stdout)
    assert record["loss_range"] == 2.5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--surrogate", "listne"], "Did you mean 'listnet'?"),
        (["--ball", "l1"], "Error: --features must be given for the l1 ball."),
        (["--queries", "1"], "Error: --queries must be an integer of at least 3, got 1."),
        (["--confidence", "1"], "Error: --confidence must be a number above 0 and below 1"),
        (["--items", "0"], "Error: --items must be an integer of at least 1, got 0."),
        (["--grade", "-1"], "Error: --max-grade must be a number of at least 1e-09"),
        (["--loss-bound", "-1"], "Error: --loss-bound must be a number above 0"),
        (["--epsilon", "0.5"], "--epsilon must be omitted for listnet"),
        (["--surrogate", "smooth_dcg", "--epsilon", "0"], "Error: --epsilon must be a number"),
        (["--optimal-loss", "-1"], "Error: --optimal-loss must be a number of at least 0"),
    ],
)
def test_bad_input_is_one_sentence(options, sentence):
    result = bound(*options)
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output


GAME = ["--rounds", "100000000", "--items", "20", "--top", "2", "--measure", "DCG"]


def test_regret_of_rankers_of_one_list():
    result = bound(*GAME)
    assert result.exit_code == 0
    found = regret_bounds("DCG", 20, 100_000_000, 2)
    averages = [f"{row.value / 1e8:.4g}" for row in found]
    for word in ("keystone", "rtopk", "ftpl", "top 2", "2.047 per round", *averages):
        assert word in result.stdout
    assert "says nothing" not in result.stdout
    assert "says nothing" in bound("--rounds", "1000", "--items", "20").stdout
    record = json.loads(bound(*GAME, "--json").stdout)
    assert [row["value"] for row in record["bounds"]] == [row.value for row in found]
    assert all(row["says_something"] for row in record["bounds"])
    graded = json.loads(bound(*GAME, "--grade", "2", "--json").stdout)
    assert graded["largest_regret"] == pytest.approx(3 * record["largest_regret"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--rounds", "0"], "Error: --rounds must be an integer of at least 1, got 0."),
        (["--rounds", "9", "--items", "3", "--top", "4"], "Error: --top must be an integer betw"),
        (["--rounds", "9", "--measure", "NDCG"], "Error: measure must have gains per item"),
    ],
)
def test_games_without_a_bound(options, sentence):
    result = bound(*options)
    assert result.exit_code == 2
    assert sentence in result.stderr.replace("\n", " ")
