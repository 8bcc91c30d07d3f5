"""Every number of an evaluation, computed a second time from the log."""

from dataclasses import replace
from typing import Any

import pytest

from keyhole.base.errors import InvalidInput
from keyhole.measures import measure
from keyhole.service.commands import EvaluationRequest
from keyhole.service.evaluations import _least_chance, evaluate
from keyhole.service.events import Ranked
from tests.service.games import GAMES, asked
from tests.service.judging import judgement_of
from tests.service.played import ANIMALS, NAME, Game, played
from tests.service.references import History
from tests.service.test_numbers import alike

pytestmark = pytest.mark.interpreted

FROZEN = ("keystone, gains of grades", "frozen in the end, late and lost")
NEVER_DRAWN = "apprentice without a share"
OF_SETS = "apprentice that knows the chances of sets"
JUDGED = {
    **{name: game for name, game in GAMES.items() if name not in (*FROZEN, NEVER_DRAWN, OF_SETS)},
    **{f"{name}, not frozen": replace(GAMES[name], changes={}) for name in FROZEN},
    "not its own lists in the end": Game(
        asked(ranker="random", k=2), 120, seed=21, changes={70: {"mode": "apprentice"}}
    ),
    "frozen, all seen": Game(
        asked(ranker="random", k=5, max_grade=3.0, mode="frozen"), 60, seed=22, excluding=0.3
    ),
    "a least chance that is not known": Game(
        asked(ranker="iw-onlinerank", settings={"horizon": 200}), 80, seed=23
    ),
    "blocks, in a share of rounds, late": Game(
        asked(ranker="rtopk", mode="apprentice", apprentice_share=0.7, settings={"horizon": 90}),
        150, seed=28, delay=9.0,
    ),
    "a cutoff": Game(asked(ranker="random", k=2, measure="DCG@2", max_grade=2.0), 90, seed=24),
}  # fmt: skip


def judged(crowd, **asked):
    live = crowd.engine.ranker(NAME)
    best = tuple(str(name) for name in live.learner.best())
    return evaluate(live.store, NAME, live.config, best, EvaluationRequest(**asked))


@pytest.fixture(scope="module", params=JUDGED, ids=str)
def log(request):
    crowd = played(JUDGED[request.param])
    return crowd, History(crowd.engine.store)


def questions(history):
    names = list(history.config.catalogue)
    yield {}
    yield {"policy": names[::-1], "confidence": 0.8, "bound": "student-t"}
    yield {"policy": "uniform", "baseline": names, "bound": "empirical-bernstein"}
    yield {"policy": "best", "baseline": "uniform", "confidence": 0.6, "after": history.seq // 4}
    yield {"policy": names, "baseline": "best", "confidence": 0.5, "bound": "student-t"}


def test_every_number_of_an_evaluation(log):
    crowd, history = log
    for question in questions(history):
        said = judged(crowd, **question)
        alike(said, judgement_of(history, **question), str(question))
        bound = question.get("bound", "betting")
        assert said["decided_by"] == f"{bound} bound on the doubly-robust difference"
        assert said["measure"] == history.config.measure


def test_a_list_that_is_better_is_promoted_and_the_same_one_is_not():
    crowd = played(Game(asked(ranker="random"), 300, seed=31, lost=0.0))
    likes = sorted(ANIMALS[:5], key=lambda name: -crowd.likes[name])
    verdicts = {
        (policy[0], baseline[0]): judged(crowd, policy=policy, baseline=baseline)["verdict"]
        for policy in (likes, likes[::-1])
        for baseline in (likes, likes[::-1])
    }
    best, worst = likes[0], likes[-1]
    assert verdicts.pop((best, worst)) == "promote"
    assert set(verdicts.values()) == {"keep"}


@pytest.mark.parametrize("k", [2, 5])
def test_frozen_rounds_judge_other_lists_only_where_all_was_seen(k):
    """Of five items two are seen: nothing is known of the others, until it is no longer frozen."""
    game = asked(ranker="random", k=k, mode="frozen")
    crowd = played(Game(game, 90, seed=25, changes={40: {"mode": "online"}}))
    history = History(crowd.engine.store)
    thawed = max(history.configs)
    frozen = [one for one in history.rounds if one.ranked.mode == "frozen"]
    assert {one.ranked.least_chance for one in frozen} == {1.0 if k == 5 else 0.0}
    if k == 5:
        alike(judged(crowd), judgement_of(history))
        return
    with pytest.raises(InvalidInput, match="every item had a chance to be seen"):
        judged(crowd)
    alike(judged(crowd, after=thawed), judgement_of(history, after=thawed))


def test_chances_of_sets_alone_judge_nothing():
    with pytest.raises(InvalidInput, match=r"got \d+ rounds of one that does not"):
        judged(played(GAMES[OF_SETS]))


def test_lists_that_are_never_its_own_judge_nothing():
    crowd = played(GAMES[NEVER_DRAWN])
    with pytest.raises(InvalidInput, match="got 0 rounds"):
        judged(crowd)
    shares = replace(GAMES[NEVER_DRAWN], asked=GAMES[NEVER_DRAWN].asked | {"apprentice_share": 0.9})
    crowd = played(shares)
    alike(judged(crowd), judgement_of(History(crowd.engine.store)))


@pytest.mark.parametrize("n_answered", [9, 10])
def test_ten_answered_rounds_are_enough(n_answered):
    crowd = played(Game(asked(ranker="random"), 0, seed=26))
    for _ in range(n_answered):
        crowd._ask(0)
    for event_id in list(crowd.shown):
        crowd.draws.seed(5)  # whose first draw is one of an answer
        crowd._tell(event_id, crowd.shown[event_id][1])
    if n_answered == 10:
        assert judged(crowd)["rows"] == 10
        return
    with pytest.raises(InvalidInput, match=r"at least 10 answered rounds .* got 9 rounds"):
        judged(crowd)


@pytest.mark.parametrize(
    ("name", "says"), [("SumLoss", False), ("InversionLoss", True), ("PairwiseLoss", True)]
)
def test_scores_of_losses_of_pairs_say_what_they_leave_out(name, says):
    """Each loss differs from that of positions by what no order changes."""
    crowd = played(Game(asked(ranker="random", k=2, measure=name), 60, seed=27))
    said = judged(crowd, policy="best", baseline=list(ANIMALS[:5]))
    assert any(name in note for note in said["notes"]) == says
    alike(said, judgement_of(History(crowd.engine.store), baseline=list(ANIMALS[:5])))
    relevance = [1.0, 0.0, 1.0, 0.0, 0.0]
    orders = ([0, 1, 2, 3, 4], [3, 1, 4, 2, 0])
    apart = [measure(name)(relevance, order) for order in orders]
    positions = [measure("SumLoss")(relevance, order) for order in orders]
    assert apart[1] - apart[0] == positions[1] - positions[0]
    assert (apart != positions) == says


def test_notes_say_what_the_numbers_rest_on():
    crowd = played(JUDGED["a cutoff"])
    flatters, stays = "has learnt from these rounds", "does not change"
    for question, flattered, rests in (
        ({}, True, True),
        ({"after": 1}, False, True),
        ({"baseline": "uniform"}, True, False),
        ({"policy": "uniform", "baseline": "best"}, False, False),
    ):
        notes = " ".join(judged(crowd, **question)["notes"])
        assert ((flatters in notes), (stays in notes)) == (flattered, rests)


def test_where_draws_of_a_block_depend_on_each_other_nothing_is_said_to_be_proved():
    for game, is_proved in (({"ranker": "random"}, True), ({"ranker": "rtopk"}, False)):
        settings = {} if is_proved else {"settings": {"horizon": 60}}
        crowd = played(Game(asked(**game, **settings), 60, seed=29))
        notes = " ".join(judged(crowd)["notes"])
        assert ("nothing is proved" in notes) is not is_proved


@pytest.mark.parametrize(
    ("told", "least"),
    [(((0.5, 0.2), (0.5, 0.3)), 0.2), (((0.5, 0.2), (0.5, None)), None), (((None, None),), None),
     (((0.5, 0.2), (None, None)), 0.2)],
)  # fmt: skip
def test_a_least_chance_is_that_of_all_rounds_that_count_or_is_not_known(told, least):
    rows: list[Any] = []
    for chance, known in told:
        chances = None if chance is None else (chance,)
        ranked = Ranked(0, 1, (0, 1), False, "online", 1, chances=chances, least_chance=known)
        rows.append((ranked, None))
    assert _least_chance(rows) == least
