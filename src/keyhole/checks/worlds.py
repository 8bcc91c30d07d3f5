"""What every world must do."""

import numpy as np

from keyhole.checks.base import SEED, a_relabelling, name_of, require
from keyhole.contracts.worlds import World
from keyhole.kernels.draw import WORLD_STREAM, Draw, RelabelledDraw, stream_of


def check_world(world: World, rounds: int = 100) -> None:
    """Check one world: valid relevance, pure draws, items exchangeable."""
    labels = a_relabelling(world.n_items)
    renamed_world = world.relabelled(labels)
    rounds = min(rounds, world.length or rounds)
    for t in range(rounds):
        relevance = world.relevance(t, seed=SEED)
        require(
            bool(np.isfinite(relevance).all() and (relevance >= 0.0).all()),
            f"{name_of(world)} must give finite relevance that is not negative.",
        )
        require(
            float(relevance.max()) <= world.max_grade,
            f"{name_of(world)} must keep to its max_grade={world.max_grade:g}.",
        )
        require(
            not world.is_binary or bool(np.isin(relevance, (0.0, 1.0)).all()),
            f"{name_of(world)} says it is binary but gave {relevance.tolist()}.",
        )
        require(
            np.array_equal(relevance, world.relevance(t, seed=SEED)),
            f"{name_of(world)} must give the same relevance when a round is asked for again.",
        )
        draw = RelabelledDraw(*Draw(SEED, stream_of(WORLD_STREAM, 0), t), labels)
        renamed = np.empty(world.n_items)
        renamed_world.kernel.relevance(renamed_world.params, draw, renamed)
        require(
            np.array_equal(renamed, relevance[labels]),
            f"Relabelling items must relabel the relevance that {name_of(world)} gives.",
        )
