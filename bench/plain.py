"""The same game as a NumPy loop over the rounds, as one would write it without a compiler.

It draws from NumPy's generator, so its curve is another sample of the same law.
"""

import numpy as np

from bench.setup import Setup
from bench.tight import Curves


def play_plain(setup: Setup) -> Curves:
    """Play the game and return its curves."""
    m, rounds, n_blocks = setup.n_items, setup.rounds, setup.ranker.n_blocks
    rate, flip = setup.ranker.rate, setup.world.flip
    truth, discounts = setup.world.truth.astype(bool), setup.weights
    rng = np.random.default_rng(setup.seed)
    checkpoints = setup.checkpoints.tolist()
    curves = Curves(np.empty(len(checkpoints)), np.empty(len(checkpoints)))
    scores, sums, total, cursor = np.zeros(m), np.zeros(m), 0.0, 0
    for block in range(n_blocks):
        # Blocks differ in length by at most one round, the longer ones first.
        first = block * (rounds // n_blocks) + min(block, rounds % n_blocks)
        end = first + rounds // n_blocks + (1 if block < rounds % n_blocks else 0)
        times = first + rng.choice(end - first, size=m, replace=False)
        shown = dict(zip(times.tolist(), rng.permutation(m).tolist(), strict=True))
        leaders, seen = rate * scores, np.zeros(m)
        for t in range(first, end):
            gains = ((rng.random(m) < flip) ^ truth).astype(float)
            # 1 - u is as uniform as u, and saves a pass that would turn the order around.
            ranking = (rng.random(m) - leaders).argsort()
            item = shown.get(t)
            if item is not None:
                place = int((ranking == item).argmax())
                ranking[1 : place + 1] = ranking[:place].copy()
                ranking[0] = item
                seen[item] += gains[item]
            total += discounts @ gains[ranking]
            sums += gains
            if t + 1 == checkpoints[cursor]:
                curves.scores[cursor] = total
                curves.best[cursor] = discounts @ np.sort(sums)[::-1]
                cursor += 1
        scores += seen
    return curves
