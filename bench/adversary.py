"""An adversary: the worst of thousands of switching crowds, for keystone and for what breaks.

    python -m bench.adversary [--items M ...] [--rounds N] [--tries N] [--against NAME ...]

Crowds of up to five phases of any lengths, which follow each other in a cycle, are tried at random
and then changed little by little: those with the largest regret survive. The worst one found for
each ranker is played again with other draws, and its regret is printed beside the bound of RTop-kF
(the smaller one, with tight constants) and beside the most that any ranker can lose. Exits with 1
if keystone loses more than RTop-kF may, or if the search is too weak to find a crowd for which one
who follows the leader loses more, where so much can be lost.
"""

import argparse
import itertools
import sys
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import track

from bench.theory.leader import Leader
from bench.theory.sabotage import Sabotaged
from bench.theory.search import regret_per_round, worst_crowd
from keyhole.bounds import blocks, ftpl, keystone
from keyhole.rankers.fixed.keystone import Keystone
from keyhole.rankers.fixed.rtopk import RTopK

FIRST_FRESH_SEED, FRESH_SEEDS = 100, 25


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
    """Return the phases of a crowd: rounds, and how likely each item is to be relevant."""
    return "; ".join(
        f"{n:,}: {' '.join(f'{p:.2f}' for p in row)}"
        for n, row in zip(crowd.lengths, crowd.chances, strict=True)
    )


def found_out(name, m, rounds, tries):
    """Return the worst crowd found for a ranker, and what it costs when it is played again."""
    ranker = contenders(m, rounds)[name]
    shown = partial(
        track, description=f"{name}, {m} items", total=tries, console=Console(stderr=True)
    )
    crowd = worst_crowd(ranker, rounds, tries=tries, progress=shown)
    again = [
        regret_per_round(ranker, crowd.world(), rounds, seed=seed)
        for seed in range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + FRESH_SEEDS)
    ]
    return crowd, float(np.mean(again)), float(np.std(again, ddof=1) / np.sqrt(len(again)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.adversary", description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[2, 3, 5, 20])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--tries", type=int, default=1200)
    names = list(contenders(2, 1))
    parser.add_argument("--against", nargs="+", choices=names, default=names, metavar="NAME")
    chosen = parser.parse_args(arguments)
    failed = False
    print("| items | ranker | found | again ± | of the bound | of all there is | rounds: chances |")
    print("|---|---|---|---|---|---|---|")
    for m, name in itertools.product(chosen.items, chosen.against):
        bound = bound_per_round(m, chosen.rounds)
        most = keystone.constants("DCG", m).reach
        crowd, mean, error = found_out(name, m, chosen.rounds, chosen.tries)
        print(
            f"| {m} | {name} | {crowd.regret:.4f} | {mean:.4f} ± {error:.4f} | "
            f"{mean / bound:.3f} | {mean / most:.3f} | {described(crowd)} |",
            flush=True,
        )
        if name.startswith("keystone"):
            failed |= mean > bound
        elif name == "leader":
            failed |= mean <= bound < 0.95 * most
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
