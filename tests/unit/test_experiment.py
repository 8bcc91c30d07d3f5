"""Experiments as data: what is written down is built and played again, by whoever builds it."""

import json

import numpy as np
import pytest

import keyhole
from keyhole import Experiment
from keyhole.base.errors import InvalidInput, KeyholeError
from keyhole.reveals.noisy import Noisy
from keyhole.service.commands import RankerRequest
from keyhole.service.configuration import config_of

pytestmark = pytest.mark.interpreted

GAMES = {
    "a fixed list": Experiment(items=5, top=2, rounds=30, runs=2, seed=3, measure="SumLoss"),
    "another ranker": Experiment(
        ranker="rtopk", world="gaussian", rounds=20, ranker_options={"n_blocks": 2},
        world_options={"sd": 0.2}, reveal="top:3", same_users=True, comparator="final", points=7,
    ),
    "query-document lists": Experiment(
        ranker="contextual-rtopk", world="graded", top=1, rounds=20, noise=0.5,
        ranker_options={"surrogate": {"name": "ordinal"}}, world_options={"max_grade": 3},
    ),
}  # fmt: skip


def test_a_ranker_is_told_the_rounds_the_top_the_measure_and_the_seed():
    built = Experiment(
        ranker="rtopk", items=7, top=2, rounds=1_234, seed=5, measure="SumLoss",
        ranker_options={"n_blocks": 30},
    ).build()  # fmt: skip
    told = {name: built.ranker.settings[name] for name in ("n_items", "horizon", "k", "seed")}
    assert told == {"n_items": 7, "horizon": 1_234, "k": 2, "seed": 5}
    assert built.ranker.settings["n_blocks"] == 30
    assert str(built.ranker.settings["measure"]) == str(built.measure)
    assert built.ranker.settings["max_grade"] == max(built.world.max_grade, 1.0)


def write_lists(path):
    rows = [f"{n % 3} qid:{n // 4} 1:{n % 5} 2:{n % 7}" for n in range(24)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("name", GAMES)
def test_an_experiment_is_what_its_json_says(name):
    given = GAMES[name]
    again = Experiment.from_json(given.to_json())
    assert again == given
    assert Experiment.of(json.loads(json.dumps(given.as_dict())), "here") == given
    first, second = given.play(), again.play()
    assert np.array_equal(first.scores, second.scores)
    assert first.rounds[-1] == given.rounds
    assert given.build().key == again.build().key


def test_what_is_usual_depends_on_the_kind_of_list(tmp_path):
    fixed, lists = Experiment(), Experiment(world="graded")
    assert (fixed.ranker, fixed.measure, fixed.has_queries) == ("keystone", "DCG", False)
    assert (lists.ranker, lists.measure, lists.has_queries) == ("recall", "NDCG@10", True)
    path = write_lists(tmp_path / "train.txt")
    files = Experiment(world=(path,), rounds=9)  # type: ignore[arg-type]
    assert (files.world, files.has_queries) == ([str(path)], True)
    assert files.play().rounds[-1] == 9


def test_plain_data_has_what_its_kind_of_list_has_and_what_was_given():
    assert "noise" not in Experiment().as_dict()
    assert Experiment(noise=0.5).as_dict()["noise"] == 0.5
    assert not {"items", "reveal", "comparator"} & Experiment(world="graded").as_dict().keys()
    assert Experiment(world="graded", reveal="full").as_dict()["reveal"] == "full"


@pytest.mark.parametrize("world", ["flips", "graded"])
def test_noise_is_in_what_is_revealed_of_both_kinds_of_list(world):
    told = Experiment(world=world, rounds=20, top=1, measure="DCG")
    noisy = Experiment(world=world, rounds=20, top=1, measure="DCG", noise=1.0)
    assert isinstance(noisy.build().reveal, Noisy)
    assert not np.array_equal(told.play().scores, noisy.play().scores)


def test_lists_of_files_are_read_once_and_told_apart(tmp_path):
    path = write_lists(tmp_path / "train.txt")
    given = Experiment(ranker="random-lists", world=[str(path)], rounds=5)
    first, second = given.build(), given.build()
    assert first.lists is second.lists
    path.write_text(path.read_text().replace("1:4", "1:3"))
    assert given.build().key["data"] != first.key["data"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"rankers": "rtopk"}, "A field of an experiment must be one of"),
        ({"world": 3}, "world .* must be one of"),
        ({"ranker": "recall"}, "one of a fixed list, got 'recall'"),
        ({"ranker": "rtopk", "world": "graded"}, "Did you mean 'contextual-rtopk'"),
        ({"world": "graded", "items": 4}, "`items` is for fixed lists alone"),
        ({"rounds": 0}, "rounds must be an integer"),
        ({"noise": 2}, "`noise` of Noisy"),
        ({"world_options": "flip"}, "`world_options` must be settings by their names"),
        ({"reveal": 3}, "reveal must be one of"),
        ({"measure": 3}, "measure must be"),
    ],
)
def test_what_cannot_be_built_is_said_in_a_sentence(fields, sentence):
    with pytest.raises(KeyholeError, match=sentence):
        Experiment.of(fields, "an experiment").build()


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_what_is_no_json_of_an_experiment_is_refused(text):
    with pytest.raises(InvalidInput, match="An experiment must be"):
        Experiment.from_json(text)
    with pytest.raises(InvalidInput, match="An experiment must be"):
        keyhole.compare(["random"], text)


@pytest.mark.parametrize("name", ["keystone", "rtopk", "ftpl", "semibandit", "random"])
def test_the_service_makes_the_same_ranker_of_the_same_list(name):
    """Which knows no horizon, and calls items by their names."""
    items, depth = ["tea", "coffee", "milk"], 3 if name == "ftpl" else 1
    request = RankerRequest(
        items=items, k=depth, measure="Precision@1", ranker=name, max_grade=1, seed=4
    )
    served = config_of(request, "shop", b"").spec
    built = Experiment(ranker=name, items=3, top=depth, measure="Precision@1", seed=4).build()
    told = built.ranker.fresh(horizon=None, items=items, measure="Precision@1")
    assert served == told.spec


@pytest.mark.parametrize("name", ["recall", "linucb", "contextual-rtopk", "random-lists"])
def test_the_service_makes_the_same_ranker_of_query_document_lists(name):
    settings = {"row_norm": 1.0, "surrogate": "kl"} if name == "contextual-rtopk" else {}
    request = RankerRequest(
        n_features=20, max_items=20, k=1, measure="NDCG@10", ranker=name, seed=4, settings=settings
    )
    served = config_of(request, "shop", b"").spec
    built = Experiment(
        ranker=name, world="separable", top=None if name == "random-lists" else 1, seed=4,
        ranker_options=settings,
    ).build()  # fmt: skip
    own: dict[str, object] = {}
    own |= {"id_column": 20, "n_features": 21} if name == "recall" else {}
    own |= {"surrogate": "kl"} if "surrogate" in served else {}
    assert served == {**built.ranker.spec, **own}


def test_a_comparison_keeps_what_is_revealed_and_puts_others_beside():
    full = keyhole.compare(["ftpl", "random"], GAMES["a fixed list"], reveal="full", top=None)
    assert {str(each.contender.built.reveal) for each in full.results} == {"full"}
    top = keyhole.compare(
        ["random"], items=3, rounds=9, against=["ftpl"], options={"ftpl": {"eps_scale": 0.1}}
    )
    assert {each.contender.label for each in top.results} == {"random", "ftpl, full"}
    assert len(top.results[0].costs) == 20
    assert json.loads(top.to_json())["sees"] == "top(1)"
