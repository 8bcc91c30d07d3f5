"""Proofs as plain data, to be checked by :func:`keyhole.monitoring.verify.check_certificate`."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from keyhole.base.errors import InvalidInput
from keyhole.contracts.measures import Measure
from keyhole.contracts.registry import options_of
from keyhole.measures import MEASURES
from keyhole.monitoring.board import Board
from keyhole.monitoring.cells import ActionPair
from keyhole.monitoring.games import Game, check_size, is_enumerable
from keyhole.monitoring.hopeless import best_witness
from keyhole.monitoring.observability import Explanation, SolvedGame, cells_of, solve_game
from keyhole.monitoring.verify import (
    FORMAT,
    MOST_LISTED,
    MOST_ORDERED,
    exchangeable_regret,
    forced_regret,
)


def game_data(measure: Measure, n_items: int, k: int, grades: int) -> dict[str, Any]:
    """Return the name of a ranking game, as certificates carry it."""
    if MEASURES.get(measure.name) is not type(measure):
        raise InvalidInput(f"{measure.label} has no certificate: it has no name to rebuild it by.")
    options: dict[str, Any] = {}
    for name in options_of(type(measure)):
        value = getattr(measure, name)
        if value is not None:
            options[name] = int(value) if name == "max_grade" else value
    game = {"measure": measure.label, "options": options}
    return {**game, "n_items": n_items, "k": k, "grades": grades}


def certificate_of(solution: SolvedGame) -> dict[str, Any]:
    """Return the certificate of a game that was enumerated."""
    if not solution.is_exact:
        raise InvalidInput("the game has no certificate: its class was not decided exactly.")
    return _Writer(solution).write()


class _Writer:
    """Turns what proves the class of a game into plain data."""

    def __init__(self, solution: SolvedGame) -> None:
        self.solution, self.game = solution, solution.game
        self.losses = self.game.losses
        self.cells = cells_of(self.losses)

    def write(self) -> dict[str, Any]:
        proofs = {
            "trivial": self._trivial,
            "hopeless": self._hopeless,
            "global": self._global,
            "local": self._local,
        }[self.solution.class_]()
        return {
            "format": FORMAT,
            "class": self.solution.class_,
            "game": self._game(),
            "proofs": proofs,
        }

    def _game(self) -> dict[str, Any]:
        if self.losses.measure is not None:
            n_items = len(self.losses.actions[0])
            return game_data(self.losses.measure, n_items, self.game.k, self.losses.grades)
        scale = self.losses.denominator
        rows = self.losses.numerators[:, :, 0].tolist()
        return {
            "loss": [[str(Fraction(entry, scale)) for entry in row] for row in rows],
            "feedback": [[str(symbol) for symbol in row] for row in self.game.feedback.tolist()],
        }

    def _action(self, action: int) -> Any:
        return list(self.losses.actions[action]) if self.losses.is_ranking else action

    def _sum(self, shares: Sequence[Fraction]) -> dict[str, str]:
        terms = self.losses.numbers.terms
        return {str(t): str(share) for t, share in zip(terms, shares, strict=True) if share}

    def _trivial(self) -> dict[str, Any]:
        return {"trivial": {"best": self._action(self.cells.optimal[0])}}

    def _hopeless(self) -> dict[str, Any]:
        witness, losses = best_witness(self.game), self.losses
        if witness is None:
            if losses.measure is None or losses.grades > 2:
                raise InvalidInput("the constant of this game is too small to be certified.")
            return padded_witness(self._game(), losses.measure)
        outcomes = losses.outcomes or [(x,) for x in range(len(witness.p))]
        kept = [x for x in range(len(witness.p)) if witness.p[x] or witness.q[x]]
        return {
            "hopeless": {
                "outcomes": [list(outcomes[x]) for x in kept],
                "p": [str(witness.p[x]) for x in kept],
                "q": [str(witness.q[x]) for x in kept],
                "constant": str(witness.constant),
                "is_exact": not any(losses.numbers.errors),
            }
        }

    def _global(self) -> dict[str, Any]:
        offending, pair = self.solution.offending, self.solution.pair
        pairs = [self._pair(explanation) for explanation in self.solution.differences]
        return {
            "global": {"pairs": pairs, **self._inferior()},
            "not local": {**self._face(pair), **self._normal(offending)},
        }

    def _local(self) -> dict[str, Any]:
        pairs = [self._pair(explanation) for explanation in self.solution.local]
        apart = [self._apart(pair) for pair in self.cells.pairs if not pair.are_neighbours]
        face = self._face(self.cells.neighbours[0])
        return {"local": {"pairs": pairs, "apart": apart, "face": face, **self._inferior()}}

    def _inferior(self) -> dict[str, Any]:
        proofs = [
            {"action": action, "weights": {str(other): str(w) for other, w in mixture.weights}}
            for action, mixture in self.cells.inferior.items()
            if mixture is not None
        ]
        return {"inferior": proofs} if proofs else {}

    def _pair(self, explanation: Explanation) -> dict[str, Any]:
        parts = []
        for part in explanation.parts:
            seen: dict[str, Any] = {"symbol": str(part.symbol)}
            if self.losses.is_ranking:
                seen = {"items": list(part.items), "grades": list(part.grades)}
            shown_by = self._action(part.action)
            parts.append({"shown_by": shown_by, **seen, "value": self._sum(part.shares)})
        return {"pair": self._names(explanation), "parts": parts}

    def _names(self, pair: Explanation | ActionPair) -> list[Any]:
        return [self._action(pair.first), self._action(pair.second)]

    def _face(self, pair: ActionPair | None) -> dict[str, Any]:
        if pair is None:
            return {}
        points = [[str(x) for x in point] for point in pair.points]
        return {"pair": self._names(pair), "points": points}

    def _apart(self, pair: ActionPair) -> dict[str, Any]:
        if pair.exchange:
            return {"pair": self._names(pair), "exchange": list(pair.exchange)}
        if pair.third is None:
            return {}
        weights, slope, slack = pair.third
        third = [{"action": self._action(a), "weight": str(w)} for a, w in weights]
        proof = {"pair": self._names(pair), "third": third, "slope": str(slope)}
        return proof | ({"slack": {str(x): str(size) for x, size in slack}} if slack else {})

    def _normal(self, explanation: Explanation | None) -> dict[str, Any]:
        if explanation is None or explanation.refutation is None:
            return {}
        step = self.losses.difference(explanation.first, explanation.second)
        weights = explanation.refutation.weights
        totals = [
            sum((w * int(step[x, t]) for x, w in weights), Fraction(0)) / self.losses.denominator
            for t in range(step.shape[1])
        ]
        return {"normal": {str(x): str(w) for x, w in weights}, "value": self._sum(totals)}


# --------------------------------------------------------------------------- any number of items


def padded_witness(game: dict[str, Any], measure: Measure) -> dict[str, Any]:
    """Return a proof that a game of any size is hopeless, from k + 2 items that matter.

    Of the others some are always relevant (Recall@n needs n - 1 of those) and all the rest never.
    """
    n_live, n_items = game["k"] + 2, game["n_items"]
    refusal = InvalidInput(
        f"no certificate is known for {game['measure']} on {n_items} items with the top "
        f"{game['k']} shown."
    )
    if n_live > min(MOST_LISTED, n_items):
        raise refusal
    if n_live > MOST_ORDERED:
        return _exchangeable(game, _swap_pair(n_live), refusal)
    pairs = [_swap_pair(n_live)]
    if is_enumerable(n_live, 2):
        witness = best_witness(Game.of(measure, n_live, game["k"]))
        pairs += [(list(witness.p), list(witness.q))] if witness else []
    board, lists = Board(game), list(itertools.product((0, 1), repeat=n_live))
    for n_always in range(min(MOST_ORDERED, n_items) - n_live + 1):
        longer = [r + (1,) * n_always for r in lists]
        constants = [forced_regret(board, longer, p, q) for p, q in pairs]
        best = max(range(len(pairs)), key=lambda index: constants[index])
        if constants[best] > 0:
            return _hopeless(game, longer, *pairs[best], constants[best])
    raise refusal


def _swap_pair(n_live: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return X4: uniform lists, reweighted by 1 + v and 1 - v.

    v = sign(r_a - r_b) (-1)^(sum of the other items) vanishes on average given any n_live - 2.
    """
    lists = list(itertools.product((0, 1), repeat=n_live))
    shifts = [(r[0] - r[1]) * (-1) ** sum(r[2:]) for r in lists]
    first, second = ([Fraction(1 + s * v, len(lists)) for v in shifts] for s in (1, -1))
    return first, second


def _exchangeable(
    game: dict[str, Any], pair: tuple[list[Fraction], list[Fraction]], refusal: InvalidInput
) -> dict[str, Any]:
    """Return the proof of a pair whose sum is uniform: all orders lose the same in the mean."""
    board, n_live = Board(game), game["k"] + 2
    lists = list(itertools.product((0, 1), repeat=n_live))
    others = list(range(2, n_live))
    found: list[tuple[Fraction, list[list[int]]]] = []
    for a, b in itertools.permutations((0, 1)):
        for order in ([a, *others, b], [*others, a, b]):
            exchanged = [{a: b, b: a}.get(item, item) for item in order]
            orders = [order, exchanged]
            found.append((exchangeable_regret(board, lists, *pair, orders), orders))
    constant, orders = max(found)
    if constant <= 0:
        raise refusal
    proof = _hopeless(game, lists, *pair, constant)
    proof["hopeless"]["best"] = orders
    return proof


def _hopeless(
    game: dict[str, Any],
    lists: Sequence[tuple[int, ...]],
    p: Sequence[Fraction],
    q: Sequence[Fraction],
    constant: Fraction,
) -> dict[str, Any]:
    is_exact = "DCG" not in game["measure"]
    kept = constant if is_exact else Fraction(math.floor(constant * 10**12), 10**12)
    return {
        "hopeless": {
            "outcomes": [list(r) for r in lists],
            "p": [str(x) for x in p],
            "q": [str(x) for x in q],
            "constant": str(kept),
            "is_exact": is_exact,
        }
    }


def certificate_for(measure: Measure, n_items: int, k: int, grades: int, class_: str) -> Any:
    """Return the certificate of a ranking game, enumerated where it can be."""
    game = game_data(measure, n_items, k, grades)
    if is_enumerable(n_items, grades):
        return certificate_of(solve_game(Game.of(measure, n_items, k, grades)))
    if class_ != "hopeless" or k > n_items - 2:
        check_size(n_items, grades)
    proofs = padded_witness(game, measure)
    return {"format": FORMAT, "class": class_, "game": game, "proofs": proofs}
