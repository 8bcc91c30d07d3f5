"""Which games can be learnt, by ranks of matrices and linear programs, and by no rule."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from tests.unit.references import all_lists, dcg, ndcg, orders


class Game(NamedTuple):
    """Losses by action and outcome, and what is seen: a symbol for each of them."""

    losses: np.ndarray
    seen: list[list[Any]]

    @property
    def n_actions(self) -> int:
        return len(self.losses)

    def same(self, action: int) -> list[int]:
        """Return actions that lose as much as one whatever happens, itself among them."""
        gaps = np.abs(self.losses - self.losses[action]).max(axis=1)
        return np.flatnonzero(gaps < 1e-12).tolist()

    def signals(self, actions: Any) -> np.ndarray:
        """Return a row for each symbol of each action: 1 at the outcomes that show it."""
        return np.array(
            [
                [float(own == symbol) for own in self.seen[action]]
                for action in actions
                for symbol in dict.fromkeys(self.seen[action])
            ]
        )

    def tells(self, actions: Any, one: int, other: int) -> bool:
        """Return whether a difference of losses is a sum of what some actions show."""
        rows, gap = self.signals(actions), self.losses[one] - self.losses[other]
        weights = np.linalg.lstsq(rows.T, gap, rcond=None)[0]
        return bool(np.abs(rows.T @ weights - gap).max() < 1e-9)


def game_of(measure: str, n_items: int, k: int, grades: int) -> Game:
    """Return the game of NDCG or DCG, at a cutoff: losses are less gain, the top k is seen."""
    name, _, cutoff = measure.partition("@")
    value, most = {"NDCG": ndcg, "DCG": dcg}[name], int(cutoff) if cutoff else None
    outcomes = all_lists(n_items, grades)
    losses = [[-value(each, order, most) for each in outcomes] for order in orders(n_items)]
    seen = [[tuple(each[order[:k]]) for each in outcomes] for order in orders(n_items)]
    return Game(np.array(losses), seen)


def neighbours(game: Game) -> list[tuple[int, int]]:
    """Return pairs that are both best, and all others worse, for some distribution of outcomes."""
    found, n = [], game.losses.shape[1]
    firsts = [action for action in range(game.n_actions) if game.same(action)[0] == action]
    for one, other in itertools.combinations(firsts, 2):
        gap = game.losses[one] - game.losses[other]
        rest = [action for action in firsts if action not in (one, other)]
        rows = [[*(game.losses[one] - game.losses[a]), 1.0] for a in rest] or None
        solved = linprog(
            [0.0] * n + [-1.0], A_ub=rows, b_ub=[0.0] * len(rest) or None,
            A_eq=[[*gap, 0.0], [1.0] * n + [0.0]], b_eq=[0.0, 1.0],
            bounds=[(0, None)] * n + [(None, 1.0)],
        )  # fmt: skip
        if solved.success and -solved.fun > 1e-9:
            found.append((one, other))
    return found


def class_of(game: Game) -> str:
    """Return how fast a game can be learnt in which every action is best somewhere."""
    every = range(game.n_actions)
    if np.abs(game.losses - game.losses[0]).max() < 1e-12:
        return "trivial"
    if not all(game.tells(every, *pair) for pair in itertools.combinations(every, 2)):
        return "hopeless"
    pairs = neighbours(game)
    shown = [[*game.same(one), *game.same(other)] for one, other in pairs]
    is_local = all(game.tells(seen, *pair) for seen, pair in zip(shown, pairs, strict=True))
    return "local" if is_local else "global"


def forced_regret(game: Game) -> float:
    """Return the most that two crowds which look alike force on any ranker per round."""
    n, best = game.losses.shape[1], 0.0
    alike = game.signals(range(game.n_actions))
    zeros, eye = np.zeros_like(alike), np.eye(n)
    for other in range(1, game.n_actions):  # the first ranking stands for all: items are alike
        i, j = game.losses[0], game.losses[other]
        rows = [[*-(2 * a - i - j) / 2, *-(j - i) / 2, 1.0] for a in game.losses]
        low = np.block([[-eye, -eye], [-eye, eye]])
        solved = linprog(
            [0.0] * 2 * n + [-1.0],
            A_ub=[*rows, *np.column_stack([low, np.zeros(2 * n)])],
            b_ub=[0.0] * (len(rows) + 2 * n),
            A_eq=[*np.column_stack([zeros, alike, np.zeros(len(alike))]),
                  [1.0] * n + [0.0] * (n + 1), [0.0] * n + [1.0] * n + [0.0]],
            b_eq=[0.0] * len(alike) + [1.0, 0.0],
            bounds=[(None, None)] * (2 * n) + [(None, None)],
        )  # fmt: skip
        best = max(best, -solved.fun)
    return best
