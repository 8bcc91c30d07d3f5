"""An adversary: the worst of thousands of switching crowds, for keystone and for what breaks.

    python -m bench.adversary [--items M ...] [--rounds N] [--tries N]

Crowds of up to five phases of any lengths, which follow each other in a cycle, are tried at random
and then changed little by little: those with the largest regret survive. The worst one found for
each ranker is played again with other draws, and its regret is printed beside the bound of RTop-kF
(the smaller one, with tight constants) and beside the most that any ranker can lose. Exits with 1
if keystone loses more than RTop-kF may, or if the search is too weak to find a crowd for which one
who follows the leader loses more, where so much can be lost.
"""

import argparse
import sys
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import track

from keyhole.bounds import blocks, ftpl, keystone
from keyhole.rankers import Keystone, RTopK
from keyhole.theory.leader import Leader
from keyhole.theory.sabotage import Sabotaged
from keyhole.theory.search import regret_per_round, worst_crowd

FRESH_RUNS = 100


def contenders(m, rounds):
    """Return whom a crowd is searched against, by name."""
    return {
        "keystone": Keystone(m),
        "keystone, reversed": Sabotaged(Keystone(m)),
        "RTop-1F": RTopK(m, horizon=rounds, tight=True),
        "leader": Leader(m),
    }


def bound_per_round(m, rounds):
    """Return the bound of RTop-1F with tight constants."""
    c = ftpl.constants("DCG", m, tight=True)
    return ftpl.top_k_bound(c, blocks.n_cells(m, 1), rounds) / rounds


def described(crowd):
    rows = "; ".join(
        f"{n:,}: {' '.join(f'{p:.2f}' for p in row)}"
        for n, row in zip(crowd.lengths, crowd.chances, strict=True)
    )
    return rows if crowd.chances.shape[1] <= 5 else f"phases of {crowd.lengths}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.adversary", description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[2, 3, 5, 20])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--tries", type=int, default=1200)
    chosen = parser.parse_args(arguments)
    failed = False
    print("| items | ranker | found | again ± | of the bound | of all there is | rounds: chances |")
    print("|---|---|---|---|---|---|---|")
    for m in chosen.items:
        bound = bound_per_round(m, chosen.rounds)
        most = keystone.constants("DCG", m).reach
        for name, ranker in contenders(m, chosen.rounds).items():
            title = f"{name}, {m} items"
            crowd = worst_crowd(
                ranker,
                chosen.rounds,
                tries=chosen.tries,
                progress=partial(
                    track, description=title, total=chosen.tries, console=Console(stderr=True)
                ),
            )
            again = [
                regret_per_round(ranker, crowd.world(), chosen.rounds, runs=4, seed=seed)
                for seed in range(1, FRESH_RUNS // 4 + 1)
            ]
            mean, error = np.mean(again), np.std(again, ddof=1) / np.sqrt(len(again))
            print(
                f"| {m} | {name} | {crowd.regret:.4f} | {mean:.4f} ± {error:.4f} | "
                f"{mean / bound:.3f} | {mean / most:.3f} | {described(crowd)} |",
                flush=True,
            )
            loses = mean > bound
            failed |= loses if name.startswith("keystone") else False
            failed |= name == "leader" and bound < 0.95 * most and not loses
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
