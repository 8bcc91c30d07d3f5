"""Interpreted kernels give the bits that compiled ones give."""

GAMES = """
import hashlib, warnings
import numpy as np
warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
from keyhole import *
from keyhole.game.play import play
from keyhole.rankers.lists.gradient import Descent
from keyhole.rankers.lists.perceptron import SLAMPerceptron
from keyhole.rankers.lists.top_k import ContextualRTopK
from keyhole.worlds.queries import Queries
crowd = Flips(6, n_relevant=2)
games = [
    (RTopK(6, horizon=60, k=2, subroutine=name), crowd, "DCG") for name in SUBROUTINES
] + [
    (FTPL(6, horizon=60, measure="SumLoss"), Switching(6, n_relevant=2, period=9), "SumLoss"),
    (OnlineRank(6, horizon=60, n_chosen=1, sampler="quicksort"), Choices(6), "InversionLoss"),
    (RTopK(60, horizon=90, k=7), Gaussian(60), "NDCG@10"),
    (Hedge(3, horizon=60, measure="AP"), Flips(3), "AP"),
    (Forecaster(3, horizon=60), Hopeless(), "DCG"),
]
digest = hashlib.sha256()
for ranker, world, measure in games:
    trace = play(ranker, world, measure=measure, rounds=60, record=True)
    for array in (trace.scores, trace.best, *trace.states[0].values(), *trace.logs[0][2:]):
        digest.update(np.ascontiguousarray(array).tobytes())
numbers = np.random.default_rng(0)
for kind in (np.float32, np.float64):
    features = numbers.normal(size=(300, 21)).astype(kind)
    world = Queries(features, numbers.integers(3, size=300).astype(float), np.arange(0, 301, 30))
    for ranker in (ContextualRTopK(21, 30, mix=0.3), Descent(21, 30), SLAMPerceptron(21, 30)):
        learning = play(ranker, world, rounds=40)
        for array in (learning.scores, learning.greedy, *learning.states[0].values()):
            digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest())
"""


def test_interpreted_and_compiled_games_are_the_same(digest_of):
    compiled = digest_of(GAMES)
    assert digest_of(GAMES, NUMBA_DISABLE_JIT="1") == compiled
    assert digest_of(GAMES, NUMBA_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1") == compiled
