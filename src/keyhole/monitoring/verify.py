"""Check a certificate with nothing but definitions, sums and products.

None of what found the certificate is used: no linear program, no elimination, no expansion.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from keyhole.base.errors import KeyholeError, shown
from keyhole.measures.exact import ONE, Sum, value_of
from keyhole.monitoring.board import (
    Board,
    InvalidCertificate,
    UnreadableCertificate,
    add,
    loss_at,
    mean,
    read_distribution,
    require,
    sign_of,
)
from keyhole.monitoring.exact import read_fraction
from keyhole.monitoring.games import is_enumerable

FORMAT = "keyhole certificate 1"
MOST_ORDERED = 7
"""Items of which all orders can be tried."""
MOST_LISTED = 12
"""Items of which all lists of two grades can be tried."""
_ROUNDED = Fraction(1, 10**11)


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
        value = board.read_sum(part["value"])
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
    """Check that one action never loses more than any other."""
    best = board.action(proof["best"])
    for other in board.actions:
        signs = [sign_of(entry) for entry in board.difference(best, other)]
        require(max(signs) <= 0, "the best action must never lose more.")


def _check_global(board: Board, proof: Mapping[str, Any]) -> None:
    """Check that differences of losses are sums of what some action shows.

    For rankings: swaps of neighbours in one ranking; all others follow by relabelling items and
    adding up. Otherwise: every action, unless inferior, against the first of the list.
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
    covered |= _check_inferior(board, proof.get("inferior", []))
    rows = [board.loss(action) for action in covered]
    require(all(board.loss(a) in rows for a in board.actions), "every action must be explained.")
    require(len({first for first, _ in pairs}) <= 1, "pairs must have one first action.")


def _check_inferior(board: Board, proofs: Iterable[Mapping[str, Any]]) -> set[Any]:
    """Check that mixtures of other actions never lose more, so that cells have no interior."""
    found = set()
    for proof in proofs:
        action = proof["action"]
        weights = read_distribution(proof["weights"].values())
        others = [int(name) for name in proof["weights"]]
        require(
            all(board.loss(o) != board.loss(action) for o in others), "duplicates prove nothing."
        )
        for outcome in range(len(board.outcomes)):
            mixed = [(w, board.loss(o)[outcome]) for w, o in zip(weights, others, strict=True)]
            worse = sign_of(add(*mixed, (-1, board.loss(action)[outcome])))
            require(worse <= 0, "an inferior action must never lose less than the mixture.")
        found.add(action)
    return found


def _check_local(board: Board, proof: Mapping[str, Any]) -> None:
    """Check that every pair is explained by what it shows, or is no pair of neighbours."""
    pairs = {_check_parts(board, pair, shown_by_pair=True) for pair in proof["pairs"]}
    pairs |= {_check_apart(board, pair) for pair in proof["apart"]}
    _check_face(board, proof["face"])
    inferior = _check_inferior(board, proof.get("inferior", []))
    rows = [board.loss(action) for action in inferior]
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
    """Check that a third action is optimal wherever both are, so that their face is too small."""
    first, second = (board.action(action) for action in proof["pair"])
    if "exchange" in proof:
        _check_exchange(board, first, second, *proof["exchange"])
        return first, second
    weights = read_distribution(entry["weight"] for entry in proof["third"])
    thirds = [board.action(entry["action"]) for entry in proof["third"]]
    beyond = all(not board.is_between(action, first, second) for action in thirds)
    require(beyond, "third actions must not be between the pair.")
    slack = {int(x): read_fraction(size) for x, size in proof.get("slack", {}).items()}
    require(min(slack.values(), default=Fraction(0)) >= 0, "slack must not be negative.")
    slope, step = read_fraction(proof["slope"]), board.difference(first, second)
    for x, loss in enumerate(board.loss(first)):
        mixed = add(*((w, board.loss(a)[x]) for w, a in zip(weights, thirds, strict=True)))
        spare: Sum = {ONE: slack[x]} if x in slack else {}
        gap = add((1, mixed), (-1, loss), (1, spare), (-slope, step[x]))
        require(not gap, "third actions must be as good as the pair wherever both are best.")
    return first, second


def _check_exchange(board: Board, first: Any, second: Any, a: int, b: int) -> None:
    """Check that an exchange of two items is as good as a pair wherever both are best.

    Where gains add up, a ranking is best iff it sorts the mean gains by its weights. Here a has
    the next larger weight than b in the first ranking and a smaller one in the second, so
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
    """Check that two neighbours differ by something outside the span of what they show."""
    first, second = _check_face(board, proof)
    weights = {int(x): read_fraction(weight) for x, weight in proof["normal"].items()}
    for action in board.actions:
        if board.is_between(action, first, second):
            laws: dict[Any, Fraction] = {}
            for x, weight in weights.items():
                seen = board.seen(action, board.outcomes[x])
                laws[seen] = laws.get(seen, Fraction(0)) + weight
            require(not any(laws.values()), "the normal must be at right angles to every signal.")
    step = board.difference(first, second)
    value = add(*((weight, step[x]) for x, weight in weights.items()))
    require(value == board.read_sum(proof["value"]), "the stated value must be the computed one.")
    require(sign_of(value) != 0, "the normal must not be at right angles to the difference.")


def _check_hopeless(board: Board, proof: Mapping[str, Any]) -> None:
    """Check two distributions with one law of feedback, and the regret that one forces."""
    p, q = read_distribution(proof["p"]), read_distribution(proof["q"])
    lists = [tuple(outcome) for outcome in proof["outcomes"]]
    limit = MOST_LISTED if "best" in proof else MOST_ORDERED
    require(len(lists[0]) <= limit, f"at most {limit} items may matter.")
    require(len(lists) == len(p) == len(q) == len(set(lists)), "outcomes must be listed once each.")
    require(all(board.is_outcome(outcome) for outcome in lists), "outcomes must be of the game.")
    for view in _views(board, len(lists[0])):
        laws: dict[Any, Fraction] = {}
        for outcome, one, other in zip(lists, p, q, strict=True):
            seen = view(outcome)
            laws[seen] = laws.get(seen, Fraction(0)) + one - other
        require(not any(laws.values()), "both distributions must have one law of feedback.")
    if "best" in proof:
        constant = exchangeable_regret(board, lists, p, q, proof["best"])
    else:
        constant = forced_regret(board, lists, p, q)
    stated = read_fraction(proof["constant"])
    require(stated > 0, "the constant must be positive.")
    error = stated - constant if proof["is_exact"] else abs(constant - stated - _ROUNDED / 2)
    allowed = Fraction(0) if proof["is_exact"] else _ROUNDED / 2
    require(abs(error) <= allowed, "the stated constant must be the computed one.")


def _views(board: Board, n_live: int) -> list[Callable[[tuple[int, ...]], Any]]:
    """Return every way to look at an outcome: by each action, or at k of the items that matter."""
    if board.measure is None:
        return [partial(board.seen, action) for action in board.actions]
    sets = itertools.combinations(range(n_live), min(board.k, n_live))
    return [partial(_restrict, items) for items in sets]


def _restrict(items: tuple[int, ...], outcome: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(outcome[item] for item in items)


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
        rows = [_row(board, lists, order) for order in itertools.permutations(range(len(lists[0])))]
    sides = [[_value(mean(side, row)) for row in rows] for side in (p, q)]
    both = min(one + other for one, other in zip(*sides, strict=True))
    return (both - min(sides[0]) - min(sides[1])) / 2


def exchangeable_regret(
    board: Board,
    lists: Sequence[tuple[int, ...]],
    p: Sequence[Fraction],
    q: Sequence[Fraction],
    best: Sequence[Sequence[int]],
) -> Fraction:
    """Return the same where p + q does not depend on the order of the first items.

    Then all their orders lose the same in the mean, and it is enough to compare one of them
    with a good order under p and a good order under q.
    """
    weights: dict[tuple[int, ...], Fraction] = {}
    for outcome, one, other in zip(lists, p, q, strict=True):
        known = weights.setdefault(tuple(sorted(outcome)), one + other)
        require(known == one + other, "p + q must not depend on the order of the items.")
    everything = itertools.product((0, 1), repeat=len(lists[0]))
    require(set(lists) == set(everything), "all lists of two grades must be given.")
    rows = [_row(board, lists, order) for order in best]
    losses = [_value(mean(side, row)) for side, row in zip((p, q), rows, strict=True)]
    either = [_value(mean(side, rows[0])) for side in (p, q)]
    return (sum(either, Fraction(0)) - sum(losses, Fraction(0))) / 2


def _row(board: Board, lists: Sequence[tuple[int, ...]], order: Sequence[int]) -> list[Sum]:
    """Return the losses of an order of the first items, with all others last."""
    require(sorted(order) == list(range(len(lists[0]))), "an order must hold each item once.")
    rest = tuple(range(len(order), board.n_items))
    ranking, zeros = (*order, *rest), (0,) * len(rest)
    if board.measure is None:
        raise InvalidCertificate("only rankings have orders.")
    return [loss_at(board.measure, outcome + zeros, ranking) for outcome in lists]


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
    >>> from keyhole import classify
    >>> certificate = classify("AP", n_items=3, k=1).certificate()
    >>> check_certificate(certificate)
    'hopeless'
    >>> certificate["proofs"]["hopeless"]["constant"] = "1/8"
    >>> check_certificate(certificate)
    Traceback (most recent call last):
    ...
    keyhole.monitoring.board.InvalidCertificate: the stated constant must be the computed one.
    """
    try:
        if certificate["format"] != FORMAT:
            raise UnreadableCertificate(f"the format must be {FORMAT!r}.")
        board, class_ = Board(certificate["game"]), certificate["class"]
        small = board.measure is None or is_enumerable(board.n_items, board.grades)
        require(small or class_ == "hopeless", "the game must be small enough to enumerate.")
        for kind in PROOFS[class_]:
            _CHECKS[kind](board, certificate["proofs"][kind])
    except InvalidCertificate:
        raise
    except KeyholeError as error:
        raise UnreadableCertificate(f"the game cannot be rebuilt: {error}") from None
    except (
        KeyError, TypeError, ValueError, IndexError, AttributeError, StopIteration, ArithmeticError,
    ) as error:  # fmt: skip
        raise UnreadableCertificate(f"the certificate is not complete: {shown(error)}.") from None
    return str(class_)
