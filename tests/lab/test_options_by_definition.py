"""Options that several commands share, over all their combinations, and what follows from them."""

import itertools
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from keyhole.base.errors import InvalidInput, KeyholeError, LibraryMissing
from keyhole.cli.app import app
from keyhole.cli.atlas import _numbers
from keyhole.cli.compare import _names, _where
from keyhole.cli.data_options import RatingsOptions, Reading
from keyhole.cli.learn_report import _after
from keyhole.cli.rank import _told_apart
from keyhole.cli.simulate import _items_of
from keyhole.cli.terminal import shown_number
from tests.lab.running import run

pytestmark = pytest.mark.interpreted


def test_reading_options_are_those_that_differ_from_the_usual():
    for groups, raw, keep, shuffle, share in itertools.product(
        (None, (Path("a"), Path("b/c"))), (False, True), (False, True), (False, True), (None, 0.25)
    ):
        reading = Reading(groups, raw, keep, shuffle, share)
        how: dict[str, Any] = {}
        if groups:
            how["groups"] = ["a", "b/c"]
        how |= {"raw": True} if raw else {}
        how |= {"keep_empty": True} if keep else {}
        assert reading.how == how
        how |= {"document_seed": 6} if shuffle else {}
        how |= {"permute_at": 3} if share else {}
        assert reading.world_options(11, 6) == how
    assert Reading(shuffle=True).world_options(11, 0) == {"document_seed": 0}
    assert Reading(permute_at=1.0).world_options(1, 0) == {"permute_at": 1}
    assert Reading() == Reading(None, False, False, False, None)
    for wrong in (0.0, 1.5):
        with pytest.raises(InvalidInput, match="--permute-at"):
            Reading(permute_at=wrong).world_options(11, 0)
    with pytest.raises(InvalidInput, match="rounds"):
        Reading(permute_at=0.5).world_options(0, 0)


def test_options_of_ratings_are_those_that_were_given():
    assert RatingsOptions().given == {}
    given: dict[str, Any] = {"threshold": 0.0, "grades": 3, "missing": "drop", "ids": ""}
    assert RatingsOptions(**given).given == given
    for name, value in given.items():
        assert RatingsOptions(**{name: value}).given == {name: value}


@pytest.mark.parametrize("change", [None, 0, 3, 4, 5, 8, 9, 10, 30])
def test_the_score_after_a_change_is_the_mean_of_the_lists_since(change):
    rounds = np.array([2, 4, 5, 9, 10])
    scores = np.array([[1.0, 2.5, 3.0, 7.0, 7.25], [0.0, 1.0, 1.5, 2.0, 4.0]])
    trace: Any = SimpleNamespace(rounds=rounds, scores=scores)
    found = _after(trace, change)
    if change is None:
        assert found == {}
        return
    since = [place for place, round in enumerate(rounds.tolist()) if round >= change]
    if len(since) < 2:
        assert found == {"average_score_after": None}
        return
    n = 10 - int(rounds[since[0]])
    means = [(row[-1] - row[since[0]]) / n for row in scores.tolist()]
    assert found["average_score_after"] == pytest.approx(sum(means) / 2)


def test_numbers_of_the_atlas_are_numbers_and_ranges():
    assert _numbers(["2-4", "7", "3-3", "4"], "--items") == [2, 3, 4, 7]
    for wrong in ("4-2", "a", "2-", "-2", "12345", "2-3-4", "²"):
        with pytest.raises(InvalidInput, match="--items must"):
            _numbers([wrong], "--items")


def test_rankers_to_compare_are_names_with_commas():
    assert _names(None) is None
    assert _names("keystone, random") == ["keystone", "random"]
    for wrong in ("keystone,keystone", "keystone,", "", "keyston"):
        with pytest.raises(KeyholeError, match="must be"):
            _names(wrong)
    assert _where("flips") == "flips"
    assert _where(["a/x.txt", "y.txt"]) == "x, y"
    assert _where(["a/x.txt", "y.txt", "z.txt"]) == "x, y, …"


def test_items_are_a_length_or_names():
    assert _items_of(None) == (None, None)
    assert _items_of("7") == (7, None)
    assert _items_of("tea") == (1, ["tea"])
    assert _items_of("tea , 7") == (2, ["tea", "7"])


def test_a_number_has_four_digits_and_its_error_if_it_is_known():
    assert [shown_number(0.25), shown_number(None), shown_number(0.25, None)] == [
        "0.2500", "not known", "0.2500",
    ]  # fmt: skip
    assert shown_number(-1.0, 0.0).split() == ["-1.0000", "±", "0.0000"]


def test_a_shell_offers_what_comes_after_the_words_there_are():
    lines = run("completion", "fish").stdout.splitlines()
    assert any(line.startswith(
        "complete -c keyhole -f -n '__fish_use_subcommand' -a play -d "
    ) for line in lines)  # fmt: skip
    assert any(line.startswith(
        "complete -c keyhole -f -n '__fish_seen_subcommand_from keys' -a create -d "
    ) for line in lines)  # fmt: skip
    both = "__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create"
    assert any(line.startswith(f"complete -c keyhole -n '{both}' -l scope") for line in lines)


def test_scores_that_are_too_large_for_a_run_are_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match=r"scores between -3\.4e38 and 3\.4e38, got 1e\+39"):
            _told_apart(np.array([1e39, 1.0]))
        told = _told_apart(np.array([2.0, 2.0, 2.0, 1.0]))
    assert told.dtype == np.float32
    least = np.nextafter(np.float32(2.0), np.float32(0.0))
    assert told.tolist() == [2.0, least, np.nextafter(least, np.float32(0.0)), 1.0]


def test_an_evaluation_needs_what_draws_where_it_draws_alone(monkeypatch, tmp_path):
    def missing():
        raise LibraryMissing("Figures need matplotlib", "figures")

    monkeypatch.setattr("keyhole.cli.evaluate.check_figures", missing)
    rows = "\n".join(f"{n % 2},0.5,{int(n % 3 == 0)}" for n in range(20))
    log = tmp_path / "log.csv"
    log.write_text(f"action,propensity,reward\n{rows}\n")
    run("evaluate", log, "--policy", "uniform", code=1)  # it is no better than what was shown
    done = run("evaluate", log, "--policy", "uniform", "--out", tmp_path / "out", code=2)
    assert "Figures need matplotlib" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("group", "names"), [("db", "check backup restore export"),
                                              ("keys", "create list remove")])  # fmt: skip
def test_a_group_of_commands_alone_names_them(group, names):
    done = CliRunner().invoke(app, [group])
    told = done.stdout + done.stderr
    assert "Usage" in told
    assert all(f" {name} " in told for name in names.split())
