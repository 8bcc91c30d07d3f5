"""The game that every contender plays: RTop-kF (k=1) with FTPL, flipped relevance, DCG."""

from dataclasses import dataclass
from functools import cached_property

from keyhole import Flips, RTopK, Top, Trace, play
from keyhole.base.errors import FloatArray, IntArray
from keyhole.game.play import checkpoints_of

N_POINTS = 200


@dataclass(frozen=True)
class Setup:
    """One game: its size, its length and its seed."""

    n_items: int
    rounds: int
    seed: int = 0

    @cached_property
    def ranker(self) -> RTopK:
        return RTopK(self.n_items, horizon=self.rounds, k=1, seed=self.seed)

    @cached_property
    def world(self) -> Flips:
        return Flips(self.n_items, n_relevant=max(1, self.n_items // 4), flip=0.1)

    @cached_property
    def weights(self) -> FloatArray:
        return self.ranker.measure.weights(self.n_items)

    @cached_property
    def checkpoints(self) -> IntArray:
        return checkpoints_of(self.rounds, N_POINTS)

    def play(self) -> Trace:
        """Play it with keyhole, on one thread."""
        return play(
            self.ranker,
            self.world,
            reveal=Top(1),
            measure="DCG",
            rounds=self.rounds,
            seed=self.seed,
            n_points=N_POINTS,
            n_threads=1,
        )
