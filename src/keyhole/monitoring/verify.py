"""Check a certificate with nothing but definitions, sums and products.

None of what found the certificate is used: no linear program, no elimination, no expansion.
Losses come from the plain definitions of :mod:`keyhole.monitoring.exact` (compared with the
measure's kernel), feedback from what a ranking has on top.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from keyhole.contracts import Measure
from keyhole.errors import InvalidInput, KeyholeError
from keyhole.measures import measure as measure_by_name
from keyhole.monitoring.exact import DIGITS, ONE, Sum, loss_of, number, value_of

FORMAT = "keyhole certificate 1"
_ROUNDED = Fraction(1, 10**11)


class InvalidCertificate(KeyholeError, ValueError):
    """A certificate that does not prove what it claims."""


def require(holds: bool, sentence: str) -> None:
    """Raise InvalidCertificate with a sentence unless something holds."""
    if not holds:
        raise InvalidCertificate(sentence)


# --------------------------------------------------------------------------- sums


def add(*weighted: tuple[Fraction | int, Sum]) -> Sum:
    """Return a weighted sum of sums; terms that cancel are left out."""
    total: Sum = {}
    for weight, terms in weighted:
        for term, share in terms.items():
            total[term] = total.get(term, Fraction(0)) + weight * share
    return {term: share for term, share in total.items() if share}


def sign_of(total: Sum) -> int:
    """Return the sign of a sum: 0 without terms, otherwise by its value to fifty digits."""
    value = sum((share * value_of(term) for term, share in total.items()), Fraction(0))
    error = sum(abs(share) for term, share in total.items() if term != ONE)
    require(not total or abs(value) > error / 10**DIGITS, "a sum must be told from zero.")
    return (value > 0) - (value < 0)


def mean(distribution: Sequence[Fraction], losses: Sequence[Sum]) -> Sum:
    """Return the expected loss."""
    return add(*((p, loss) for p, loss in zip(distribution, losses, strict=True) if p))


def read_distribution(given: Any) -> list[Fraction]:
    """Return probabilities that sum to one."""
    probabilities = [Fraction(text) for text in given]
    require(sum(probabilities) == 1, "probabilities must sum to 1.")
    require(min(probabilities) >= 0, "probabilities must not be negative.")
    return probabilities


# --------------------------------------------------------------------------- the game, rebuilt


class Board:
    """A game as a certificate names it: actions, outcomes, losses and what is shown."""

    def __init__(self, game: Mapping[str, Any]) -> None:
        self.measure: Measure | None = None
        self._rows: dict[Any, list[Sum]] = {}
        if "measure" in game:
            self.measure = measure_by_name(game["measure"], **game.get("options", {}))
            self.n_items, self.k, self.grades = game["n_items"], game["k"], game["grades"]
        else:
            self._loss = [[_fraction(x) for x in row] for row in game["loss"]]
            self._feedback = game["feedback"]

    @property
    def actions(self) -> Iterable[Any]:
        """All rankings, or the numbers of the rows."""
        if self.measure is None:
            return range(len(self._loss))
        return itertools.permutations(range(self.n_items))

    @property
    def outcomes(self) -> list[tuple[int, ...]]:
        """All relevance vectors, or the numbers of the columns."""
        if self.measure is None:
            return [(column,) for column in range(len(self._loss[0]))]
        return list(itertools.product(range(self.grades), repeat=self.n_items))

    def action(self, given: Any) -> Any:
        """Return an action as it is written in a certificate."""
        return given if self.measure is None else tuple(given)

    def loss(self, action: Any) -> list[Sum]:
        """Return the losses of an action, one per outcome."""
        if action not in self._rows:
            self._rows[action] = [self._entry(action, outcome) for outcome in self.outcomes]
        return self._rows[action]

    def _entry(self, action: Any, outcome: tuple[int, ...]) -> Sum:
        if self.measure is None:
            value = self._loss[action][outcome[0]]
            return {ONE: value} if value else {}
        return loss_at(self.measure, outcome, action)

    def seen(self, action: Any, outcome: tuple[int, ...]) -> Any:
        """Return what an action shows under an outcome."""
        if self.measure is None:
            return str(self._feedback[action][outcome[0]])
        return tuple(outcome[item] for item in action[: self.k])

    def difference(self, first: Any, second: Any) -> list[Sum]:
        """Return one action's losses less another's."""
        pairs = zip(self.loss(first), self.loss(second), strict=True)
        return [add((1, one), (-1, other)) for one, other in pairs]

    def is_between(self, action: Any, first: Any, second: Any) -> bool:
        """Return whether an action is optimal wherever both are.

        Rankings of one measure all have loss vectors of one length, so only duplicates are;
        otherwise those whose losses lie on the segment between the two.
        """
        if self.loss(action) in (self.loss(first), self.loss(second)):
            return True
        if self.measure is not None:
            return False
        step, away = self.difference(second, first), self.difference(action, first)
        at = next(x for x, entry in enumerate(step) if entry)
        share = away[at].get(ONE, Fraction(0)) / step[at][ONE]
        return 0 < share < 1 and away == [add((share, entry)) for entry in step]


def loss_at(measure: Measure, outcome: tuple[int, ...], ranking: tuple[int, ...]) -> Sum:
    """Return a loss by its definition, compared with the measure's kernel."""
    total, value = loss_of(measure, outcome, ranking), measure(outcome, ranking)
    value = value if measure.is_loss else -value
    close = math.isclose(number(total), value, rel_tol=1e-12, abs_tol=1e-12)
    require(close, f"the kernel of {measure.label} must compute its definition.")
    return total


def _fraction(value: Any) -> Fraction:
    return Fraction(value) if isinstance(value, int | str) else Fraction(str(value))


# --------------------------------------------------------------------------- what proofs share


def _check_parts(board: Board, proof: Mapping[str, Any], shown_by_pair: bool) -> tuple[Any, Any]:
    """Check that the parts of a difference add up to it, and that each part is seen."""
    first, second = (board.action(action) for action in proof["pair"])
    totals: list[list[tuple[int, Sum]]] = [[] for _ in board.outcomes]
    for part in proof["parts"]:
        by = board.action(part["shown_by"])
        allowed = not shown_by_pair or board.is_between(by, first, second)
        require(allowed, "a part must be shown by an action of the pair's neighbourhood.")
        holds = _indicator(board, part, by)
        value = _read_sum(board, part["value"])
        for outcome, total in zip(board.outcomes, totals, strict=True):
            if holds(outcome):
                total.append((1, value))
    sums = [add(*total) for total in totals]
    require(sums == board.difference(first, second), "parts must add up to the difference.")
    return first, second


def _indicator(board: Board, part: Mapping[str, Any], by: Any) -> Callable[[tuple[int, ...]], bool]:
    """Return a 0/1 function of the outcome that the feedback of an action decides."""
    if "symbol" in part:
        return lambda outcome: bool(board.seen(by, outcome) == part["symbol"])
    wanted = dict(zip(part["items"], part["grades"], strict=True))
    require(set(wanted) <= set(by[: board.k]), "a part must be among the items shown.")
    return lambda outcome: all(outcome[item] == grade for item, grade in wanted.items())


def _read_sum(board: Board, given: Mapping[str, str]) -> Sum:
    """Return a sum as it is written in a certificate, by the names of its terms."""
    # Every symbol of a measure occurs in the losses of any one ranking.
    some = board.loss(next(iter(board.actions)))
    known = {str(ONE): ONE} | {str(term): term for entry in some for term in entry}
    require(set(given) <= set(known), "terms must be those of the measure.")
    return {known[name]: Fraction(share) for name, share in given.items() if Fraction(share)}


def _check_face(board: Board, proof: Mapping[str, Any]) -> tuple[Any, Any]:
    """Check that a pair are neighbours: near a face where both are best, all others lose more."""
    first, second = (board.action(action) for action in proof["pair"])
    for given, side in zip(proof["points"], (1, -1), strict=True):
        point = read_distribution(given)
        require(min(point) > 0, "points must be inside the simplex.")
        here = mean(point, board.loss(first))
        ahead = sign_of(add((1, here), (-1, mean(point, board.loss(second)))))
        require(ahead == side, "points must lie on either side of the face.")
        for other in board.actions:
            if not board.is_between(other, first, second):
                worse = sign_of(add((1, mean(point, board.loss(other))), (-1, here)))
                require(worse > 0, "no third action may be as good as the pair.")
    return first, second


# --------------------------------------------------------------------------- one check per kind


def _check_trivial(board: Board, proof: Mapping[str, Any]) -> None:
    """One action never loses more than any other."""
    best = board.action(proof["best"])
    for other in board.actions:
        signs = [sign_of(entry) for entry in board.difference(best, other)]
        require(max(signs) <= 0, "the best action must never lose more.")


def _check_global(board: Board, proof: Mapping[str, Any]) -> None:
    """Differences of losses are sums of what some action shows.

    For rankings: swaps of neighbours in one ranking; all others follow by relabelling items and
    adding up. Otherwise: every action, unless dominated, against the first of the list.
    """
    pairs = [_check_parts(board, pair, shown_by_pair=False) for pair in proof["pairs"]]
    if board.measure is not None:
        first = tuple(range(board.n_items))
        swaps = [
            (*first[:p], first[p + 1], first[p], *first[p + 2 :]) for p in range(board.n_items - 1)
        ]
        needed = [swap for swap in swaps if board.loss(swap) != board.loss(first)]
        require({(first, swap) for swap in needed} <= set(pairs), "every swap must be explained.")
        return
    covered = {other for _, other in pairs} | {first for first, _ in pairs[:1]}
    covered |= _check_dominated(board, proof.get("dominated", []))
    rows = [board.loss(action) for action in covered]
    require(all(board.loss(a) in rows for a in board.actions), "every action must be explained.")
    require(len({first for first, _ in pairs}) <= 1, "pairs must have one first action.")


def _check_dominated(board: Board, proofs: Iterable[Mapping[str, Any]]) -> set[Any]:
    """Check that mixtures of other actions never lose more, so that cells have no interior."""
    found = set()
    for proof in proofs:
        action = proof["action"]
        weights = read_distribution(proof["weights"].values())
        others = [int(name) for name in proof["weights"]]
        require(all(board.loss(o) != board.loss(action) for o in others), "duplicates prove nothing.")
        for outcome in range(len(board.outcomes)):
            mixed = [(w, board.loss(o)[outcome]) for w, o in zip(weights, others, strict=True)]
            worse = sign_of(add(*mixed, (-1, board.loss(action)[outcome])))
            require(worse <= 0, "a dominated action must never lose less than the mixture.")
        found.add(action)
    return found


def _check_local(board: Board, proof: Mapping[str, Any]) -> None:
    """Every pair is explained by its own neighbourhood, or is no pair of neighbours."""
    pairs = {_check_parts(board, pair, shown_by_pair=True) for pair in proof["pairs"]}
    pairs |= {_check_apart(board, pair) for pair in proof["apart"]}
    _check_face(board, proof["face"])
    dominated = _check_dominated(board, proof.get("dominated", []))
    rows = [board.loss(action) for action in dominated]
    actions = list(board.actions)
    for first in actions[:1] if board.measure is not None else actions:
        for second in actions:
            same = board.loss(first) == board.loss(second)
            left_out = board.loss(first) in rows or board.loss(second) in rows
            done = same or left_out or _is_done(board, pairs, first, second)
            require(done, "every pair of actions must be explained or told apart.")


def _is_done(board: Board, pairs: set[tuple[Any, Any]], first: Any, second: Any) -> bool:
    wanted = (board.loss(first), board.loss(second))
    return any((board.loss(a), board.loss(b)) in (wanted, wanted[::-1]) for a, b in pairs)


def _check_apart(board: Board, proof: Mapping[str, Any]) -> tuple[Any, Any]:
    """A third action is optimal wherever both of a pair are, so their face is too small."""
    first, second = (board.action(action) for action in proof["pair"])
    if "exchange" in proof:
        _check_exchange(board, first, second, *proof["exchange"])
        return first, second
    weights = read_distribution(entry["weight"] for entry in proof["third"])
    thirds = [board.action(entry["action"]) for entry in proof["third"]]
    beyond = all(not board.is_between(action, first, second) for action in thirds)
    require(beyond, "third actions must not be between the pair.")
    mixed = [
        add(*((w, board.loss(a)[x]) for w, a in zip(weights, thirds, strict=True)), (-1, loss))
        for x, loss in enumerate(board.loss(first))
    ]
    step = board.difference(first, second)
    at = next(x for x, entry in enumerate(step) if entry)
    share = mixed[at].get(ONE, Fraction(0)) / step[at][ONE]
    on_line = mixed == [add((share, entry)) for entry in step]
    require(on_line, "third actions must lie on the line through the pair.")
    return first, second


def _check_exchange(board: Board, first: Any, second: Any, a: int, b: int) -> None:
    """Where gains add up, a ranking is best iff it sorts the mean gains by its weights.

    a has the next larger weight than b in the first ranking and a smaller one in the second, so
    wherever both are best a and b have equal mean gains, and exchanging them costs nothing.
    """
    measure = board.measure
    linear = measure is not None and measure.is_linear(board.grades == 2)
    require(linear, "an exchange proves something only where gains add up.")
    if measure is not None:
        weights = measure.weights(board.n_items).tolist()
        order = sorted(set(weights), key=weights.index)
        level = {item: order.index(weights[place]) for place, item in enumerate(first)}
        other = {item: order.index(weights[place]) for place, item in enumerate(second)}
        exchanged = tuple({a: b, b: a}.get(item, item) for item in first)
        holds = level[b] == level[a] + 1 and other[b] < other[a]
        require(holds, "the two rankings must disagree on the exchanged items.")
        require(not board.is_between(exchanged, first, second), "the exchange must be a third.")


def _check_not_local(board: Board, proof: Mapping[str, Any]) -> None:
    """A pair of neighbours whose difference is outside the span of what they show."""
    first, second = _check_face(board, proof)
    weights = {int(x): Fraction(weight) for x, weight in proof["normal"].items()}
    for action in board.actions:
        if board.is_between(action, first, second):
            laws: dict[Any, Fraction] = {}
            for x, weight in weights.items():
                seen = board.seen(action, board.outcomes[x])
                laws[seen] = laws.get(seen, Fraction(0)) + weight
            require(not any(laws.values()), "the normal must be at right angles to every signal.")
    step = board.difference(first, second)
    value = add(*((weight, step[x]) for x, weight in weights.items()))
    require(value == _read_sum(board, proof["value"]), "the stated value must be the computed one.")
    require(sign_of(value) != 0, "the normal must not be at right angles to the difference.")


def _check_hopeless(board: Board, proof: Mapping[str, Any]) -> None:
    """Two distributions with one law of feedback, and the regret that one of them forces."""
    p, q = read_distribution(proof["p"]), read_distribution(proof["q"])
    lists = [tuple(outcome) for outcome in proof["outcomes"]]
    require(len(lists) == len(p) == len(q) == len(set(lists)), "outcomes must be listed once each.")
    for shown in shown_sets(board, len(lists[0])):
        laws: dict[Any, Fraction] = {}
        for outcome, one, other in zip(lists, p, q, strict=True):
            seen = shown(outcome)
            laws[seen] = laws.get(seen, Fraction(0)) + one - other
        require(not any(laws.values()), "both distributions must have one law of feedback.")
    constant = forced_regret(board, lists, p, q)
    stated = Fraction(proof["constant"])
    require(stated > 0, "the constant must be positive.")
    error = stated - constant if proof["is_exact"] else abs(constant - stated - _ROUNDED / 2)
    limit = 0 if proof["is_exact"] else _ROUNDED / 2
    require(abs(error) <= limit, "the stated constant must be the computed one.")


def shown_sets(board: Board, n_live: int) -> list[Callable[[tuple[int, ...]], Any]]:
    """Return every way to look at an outcome: by each action, or at k of the items that matter."""
    if board.measure is None:
        return [lambda outcome, a=action: board.seen(a, outcome) for action in board.actions]
    sets = itertools.combinations(range(n_live), min(board.k, n_live))
    return [lambda outcome, s=items: tuple(outcome[item] for item in s) for items in sets]


def forced_regret(
    board: Board, lists: Sequence[tuple[int, ...]], p: Sequence[Fraction], q: Sequence[Fraction]
) -> Fraction:
    """Return the least mean of the regrets under p and q that an action has.

    Lists give the relevance of the first items; the others are never relevant, and putting
    them last, in any order, never loses more. So the orders of the first items are all
    that need to be tried.
    """
    if board.measure is None:
        rows = [[board.loss(action)[x] for (x,) in lists] for action in board.actions]
    else:
        measure, n_live = board.measure, len(lists[0])
        rest = tuple(range(n_live, board.n_items))
        padded = [outcome + (0,) * len(rest) for outcome in lists]
        orders = itertools.permutations(range(n_live))
        rows = [[loss_at(measure, r, (*order, *rest)) for r in padded] for order in orders]
    sides = [[_value(mean(side, row)) for row in rows] for side in (p, q)]
    both = min(one + other for one, other in zip(*sides, strict=True))
    return (both - min(sides[0]) - min(sides[1])) / 2


def _value(total: Sum) -> Fraction:
    return sum((share * value_of(term) for term, share in total.items()), Fraction(0))


_CHECKS: dict[str, Callable[[Board, Mapping[str, Any]], None]] = {
    "trivial": _check_trivial,
    "hopeless": _check_hopeless,
    "global": _check_global,
    "not local": _check_not_local,
    "local": _check_local,
}
PROOFS = {
    "trivial": ("trivial",),
    "hopeless": ("hopeless",),
    "global": ("global", "not local"),
    "local": ("local",),
}
"""What has to be proved for each class."""


def check_certificate(certificate: Mapping[str, Any]) -> str:
    """Return the class that a certificate proves, or raise InvalidCertificate.

    Examples
    --------
    >>> from keyhole.monitoring import classify
    >>> certificate = classify("AP", n_items=3, k=1).certificate()
    >>> check_certificate(certificate)
    'hopeless'
    >>> certificate["proofs"]["hopeless"]["constant"] = "1/8"
    >>> check_certificate(certificate)
    Traceback (most recent call last):
    ...
    keyhole.monitoring.verify.InvalidCertificate: the stated constant must be the computed one.
    """
    try:
        require(certificate["format"] == FORMAT, f"the format must be {FORMAT!r}.")
        board, class_ = Board(certificate["game"]), certificate["class"]
        for kind in PROOFS[class_]:
            _CHECKS[kind](board, certificate["proofs"][kind])
    except InvalidInput as error:
        raise InvalidCertificate(f"the game cannot be rebuilt: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, StopIteration) as error:
        if isinstance(error, InvalidCertificate):
            raise
        raise InvalidCertificate(f"the certificate is not complete: {error!r}.") from None
    return str(class_)
