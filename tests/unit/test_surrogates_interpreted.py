"""Interpreted surrogates give the bits that compiled ones give."""

LISTS = """
import hashlib
import numpy as np
from keyhole.surrogates import SURROGATES, surrogate
from keyhole.surrogates.base import surrogate_work
from keyhole.surrogates.estimators import top_one, top_two
from keyhole.surrogates.inclusion import inclusion_kernel
digest, rng = hashlib.sha256(), np.random.default_rng(0)
for name in SURROGATES:
    loss = surrogate(name, **({"max_grade": 3} if name in ("logistic", "ordinal") else {}))
    for m in [1, 2, 3, 5, 8, 13, 80] * 5:
        s, R = rng.normal(0, 3, m), rng.integers(0, 4, m).astype(float)
        ranking = rng.permutation(m)
        shown = dict(scores=s, ranking=ranking, values=R[ranking], gamma=0.3)
        digest.update(np.array(loss.value(s, R)).tobytes() + loss.gradient(s, R).tobytes())
        if loss.order == 1:
            digest.update(top_one(loss, **shown).tobytes())
            digest.update(top_one(loss, **shown, guess=R / 2).tobytes())
        elif loss.order == 2:
            digest.update(top_two(loss, **shown).tobytes())
        if loss.order is not None:
            out, law = np.empty(m), (5, 0.3, 1.0)
            inclusion_kernel(loss)(
                loss.params(m), s, ranking, R[ranking], ranking, *law, out, surrogate_work(m)
            )
            digest.update(out.tobytes())
print(digest.hexdigest())
"""


def test_interpreted_and_compiled_surrogates_are_the_same(digest_of):
    compiled = digest_of(LISTS)
    assert digest_of(LISTS, NUMBA_DISABLE_JIT="1") == compiled
