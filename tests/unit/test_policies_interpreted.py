"""Interpreted rankers and forests give the bits that compiled ones give."""

LOGS = """
import hashlib
import numpy as np
from keyhole.policies.online import OnlineRankers
from keyhole.policies.pairs import fit_pairs
from keyhole.policies.training import fit_forests
digest, rng = hashlib.sha256(), np.random.default_rng(0)
for n_features in (1, 3, 8, 13):
    positives, negatives = rng.normal(size=(5, n_features)) + 0.5, rng.normal(size=(9, n_features))
    for options in ({}, {"l1": 0.05}, {"l1": 0.05, "l2": 0.0}, {"loss": "hinge"}):
        digest.update(fit_pairs(positives, negatives, n_steps=500, seed=3, **options).tobytes())
visitors = rng.normal(size=(300, 3))
ads, clicks = rng.integers(2, size=(2, 300))
rankers = OnlineRankers(2, 3, reservoir=10)
rankers.learn(visitors, ads, clicks)
for array in rankers.state:
    digest.update(array.tobytes())
digest.update(fit_forests(visitors, ads, clicks, n_trees=3).scores(visitors).tobytes())
print(digest.hexdigest())
"""


def test_interpreted_and_compiled_policies_are_the_same(digest_of):
    compiled = digest_of(LOGS)
    assert digest_of(LOGS, NUMBA_DISABLE_JIT="1") == compiled
