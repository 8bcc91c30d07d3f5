"""Every kind of claim, on both sides of each of its limits, beside plain sums of its definition."""

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pytest

from keyhole.lab.claims import CLAIMS, judge
from keyhole.lab.results import Curve
from tests.lab.plain_sums import (
    FIRST,
    FROM,
    X,
    curve,
    error,
    known,
    mean,
    noise,
    place_of,
    shown,
)

SEEDS = range(4)
TINY = 1e-7


class Limit(NamedTuple):
    """A claim that lacks one field, where it begins to hold, and the evidence it must give.

    ``side`` is 1 where it holds from the limit upwards, -1 where downwards.
    """

    claim: dict[str, Any]
    curves: list[Curve]
    field: str
    value: float
    side: int
    evidence: Callable[[float], str]


# --------------------------------------------------------------------------- orderings


def three(seed, n_runs=(5, 9, 4)):
    """Return three curves that rise at each point, by less than they scatter at early ones."""
    levels = zip("abc", n_runs, (1.0, 1.4, 2.2), strict=True)
    return [
        curve(name, noise(10 * seed + place, n, level, 0.1))
        for place, (name, n, level) in enumerate(levels)
    ]


def order(seed, field, at=None, errors=None, by=None):
    curves = three(seed)
    places = [place_of(each, at) for each in curves]
    steps = [
        (mean(b, j) - mean(a, i), math.hypot(error(a, i), error(b, j)))
        for (a, i), (b, j) in pairwise(zip(curves, places, strict=True))
    ]
    given = {"at": at, "errors": errors, "by": by}
    n_errors, least = 2.0 if errors is None else errors, 0.0 if by is None else by
    if field == "by":
        limit = min(gap - n_errors * spread for gap, spread in steps)
    else:
        limit = min((gap - least) / spread for gap, spread in steps)
    told = ", ".join(
        f"{each.label} {shown(each, place)}" for each, place in zip(curves, places, strict=True)
    )

    def evidence(value):
        some, more = (n_errors, value) if field == "by" else (value, least)
        what = f"{some:g} standard errors"
        if more:
            what += f" {'+' if more > 0 else '-'} {abs(more):g}"
        return f"at {X[places[0]]}, rising: {told} (each by {what})"

    claim = {"kind": "order", "curves": ["a", "b", "c"]}
    claim |= {name: value for name, value in given.items() if value is not None}
    return Limit(claim, curves, field, limit, -1, evidence)


def band(seed, field, at=None, errors=None, n_runs=6):
    found = curve("a", noise(seed, n_runs, 1.5, 0.2))
    place = place_of(found, at)
    slack = (errors or 0.0) * known(error(found, place))
    sign = 1 if field == "high" else -1
    claim = {"kind": "band", "curve": "a"}
    claim |= {} if at is None else {"at": at}
    claim |= {} if errors is None else {"errors": errors}

    def evidence(value):
        limits = f"at most {value:g}" if field == "high" else f"at least {value:g}"
        more = f" and {errors:g} standard errors" if errors else ""
        return f"{shown(found, place)} at {X[place]}, {limits}{more}"

    return Limit(claim, [found], field, mean(found, place) - sign * slack, sign, evidence)


def falls(seed):
    found = curve("a", noise(seed, 5, 2.0, 0.1))
    ratio = mean(found, -1) / mean(found, FIRST)

    def evidence(value):
        return (
            f"{shown(found, FIRST)} at {FROM}, {shown(found, -1)} at {X[-1]}, "
            f"factor {ratio:.3g} of at most {value:g}"
        )

    claim = {"kind": "falls", "curve": "a", "from": FROM}
    return Limit(claim, [found], "factor", ratio, 1, evidence)


def fraction(seed):
    part, whole = curve("a", noise(seed, 5, 0.4, 0.1)), curve("b", noise(seed + 9, 3, 2.0, 0.1))
    ratio = mean(part, -1) / mean(whole, -1)

    def evidence(value):
        return (
            f"{shown(part, -1)} of {shown(whole, -1)} at the end, {ratio:.3g} of it, at most "
            f"{value:g}"
        )

    claim = {"kind": "fraction", "curves": ["a", "b"]}
    return Limit(claim, [part, whole], "factor", ratio, 1, evidence)


def unrivalled(seed, apart=0.4):
    """The mean of the gap to the best rival, over the best: two errors of it are less than that."""
    best = noise(seed, 6, 2.0, 0.02)  # of whom the first curve differs by as much in every run
    scatter = 0.01 * np.random.default_rng(seed).normal(size=best.shape)
    own = curve("a", best * (1.0 + apart + scatter))
    rivals = [curve("b", noise(seed + 9, 6, 9.0, 0.02)), curve("c", best)]
    gaps = [x[-1] - y[-1] for x, y in zip(own.values, rivals[1].values, strict=True)]
    spread = math.sqrt(sum((gap - fmean(gaps)) ** 2 for gap in gaps) / 5 / 6)

    def evidence(value):
        return (
            f"{shown(own, -1)}, best of 2 rivals c {shown(rivals[1], -1)}: {fmean(gaps):.2g} ± "
            f"{spread:.2g} more, at most {value:g} of it or 2 standard errors"
        )

    claim = {"kind": "unrivalled", "curves": ["a", "b", "c"]}
    ratio = fmean(gaps) / mean(rivals[1], -1)
    assert (2.0 * spread < fmean(gaps)) == (apart > 0.0)
    return Limit(claim, [own, *rivals], "by", ratio, 1, evidence)


def test_who_is_within_two_errors_of_the_best_rival_is_unrivalled_however_little_is_allowed():
    for seed in SEEDS:
        limit = unrivalled(seed, apart=-0.1)
        assert verdict_of(limit, 0.0).holds
        assert not verdict_of(unrivalled(seed), 0.0).holds


def settles(seed):
    found = curve("a", noise(seed, 5, 2.0, 0.05))
    ends = [row[-1] * X[-1] for row in found.values.tolist()]
    grown = [row[-1] * X[-1] - row[FIRST] * FROM for row in found.values.tolist()]

    def evidence(value):
        return (
            f"of a total of {fmean(ends):.4g}, {fmean(grown):.3g} came after round {FROM} "
            f"({max(grown):.3g} in the worst of 5 runs), at most {value:g}"
        )

    claim = {"kind": "settles", "curve": "a", "from": FROM}
    return Limit(claim, [found], "growth", fmean(grown), 1, evidence)


def mostly(seed):
    one, other = curve("a", noise(seed, 7, 1.0, 0.3)), curve("b", noise(seed + 9, 7, 1.0, 0.3))
    one.values[0, -1] = other.values[0, -1]  # as good is not below
    ends = zip(one.values[:, -1].tolist(), other.values[:, -1].tolist(), strict=True)
    n_below = sum(a < b for a, b in ends)
    claim = {"kind": "mostly", "curves": ["a", "b"]}
    return Limit(
        claim, [one, other], "share", n_below / 7, -1,
        lambda value: f"in {n_below} of 7 runs, at least {value:.0%} of them",
    )  # fmt: skip


# --------------------------------------------------------------------------- slopes


def fitted(x, y):
    """Return the slope of log y on log x by least squares."""
    log_x, log_y = [math.log(each) for each in x], [math.log(each) for each in y]
    at_x, at_y = fmean(log_x), fmean(log_y)
    covered = sum((a - at_x) * (b - at_y) for a, b in zip(log_x, log_y, strict=True))
    return covered / sum((a - at_x) ** 2 for a in log_x)


def with_interval(x, runs, n_resamples):
    """Return the slope of the mean of runs, and the middle 95 % of those of resampled ones."""
    runs = [list(map(float, row)) for row in runs]
    picks = np.random.default_rng(0).integers(len(runs), size=(n_resamples, len(runs)))
    resampled = sorted(
        fitted(x, [fmean(runs[run][place] for run in pick) for place in range(len(x))])
        for pick in picks.tolist()
    )
    ends = []
    for share in (0.025, 0.975):
        where = share * (n_resamples - 1)
        below = int(where)
        ends.append(resampled[below] + (where - below) * (resampled[below + 1] - resampled[below]))
    return fitted(x, [fmean(column) for column in zip(*runs, strict=True)]), *ends


def two(seed):
    return [
        curve("a", noise(seed, 6, 1.0, 0.05)),
        curve("b", noise(seed + 9, 4, 1.0, 0.05, -0.4)),
    ]


def slope(seed, *, several):
    curves = two(seed)[:: -1 if seed % 2 else 1] if several else two(seed)[:1]  # steepest last too
    late = [place for place, x in enumerate(X) if x >= 0.1 * X[-1]]
    found = {}
    for each in curves:
        totals = each.values[:, late] * np.array(X)[late]
        found[each.label] = with_interval([X[place] for place in late], totals, 1000)
    steepest = max(found, key=lambda label: found[label][0])
    value, low, high = found[steepest]

    def evidence(limit):
        which = f", {steepest}" if several else ""
        return f"slope {value:.3f} in [{low:.3f}, {high:.3f}], at most {limit:g}{which}"

    named = {"curves": [each.label for each in curves]} if several else {"curve": "a"}
    return Limit({"kind": "slope", **named}, curves, "high", value, 1, evidence)


def rate(seed, field, *, several):
    curves = two(seed) if several else two(seed)[:1]
    found = {each.label: with_interval(X, each.values * np.array(X), 500) for each in curves}
    most, least = max(row[2] for row in found.values()), min(row[1] for row in found.values())
    told = ", ".join(
        f"{f'{label} ' if several else ''}{value:.3f} in [{low:.3f}, {high:.3f}]"
        for label, (value, low, high) in found.items()
    )

    def evidence(limit):
        limits = f"at most {limit:.4g}" if field == "high" else f"{limit:g} to 9"
        return f"slope {told}; claimed 2/3, {limits}"

    named = {"curves": [each.label for each in curves]} if several else {"curve": "a"}
    claim = {"kind": "rate", "claimed": "2/3", **named}
    if field == "high":
        return Limit(claim, curves, "high", most, 1, evidence)
    return Limit({**claim, "high": 9.0}, curves, "low", least, -1, evidence)


def power(seed, field, first):
    found = curve("a", noise(seed, 6, 1.0, 0.1))
    late = [place for place, x in enumerate(X) if x >= first]
    value, low, high = with_interval([X[place] for place in late], found.values[:, late], 500)

    def evidence(limit):
        limits = f"-inf to {limit:g}" if field == "high" else f"{limit:g} to inf"
        return f"power {value:.3f} in [{low:.3f}, {high:.3f}], {limits}"

    claim = {"kind": "power", "curve": "a"} | ({"from": first} if first else {})
    ends = {"high": (high, 1), "low": (low, -1)}
    return Limit(claim, [found], field, *ends[field], evidence)


CASES = {
    "order by, at the end": lambda seed: order(seed, "by"),
    "order by, within": lambda seed: order(seed, "by", errors=9.0),
    "order by, between two points": lambda seed: order(seed, "by", at=63, errors=0.5),
    "order errors": lambda seed: order(seed, "errors", at=20),
    "order errors and by": lambda seed: order(seed, "errors", by=-0.1),
    "band high": lambda seed: band(seed, "high"),
    "band low": lambda seed: band(seed, "low", at=64),
    "band high with errors": lambda seed: band(seed, "high", at=129, errors=1.5),
    "band low with errors": lambda seed: band(seed, "low", errors=2.5),
    "band of a single run": lambda seed: band(seed, "high", errors=2.5, n_runs=1),
    "falls": falls,
    "fraction": fraction,
    "unrivalled": unrivalled,
    "settles": settles,
    "mostly": mostly,
    "slope": lambda seed: slope(seed, several=False),
    "slope of several": lambda seed: slope(seed, several=True),
    "rate high": lambda seed: rate(seed, "high", several=False),
    "rate low": lambda seed: rate(seed, "low", several=False),
    "rate high of several": lambda seed: rate(seed, "high", several=True),
    "rate low of several": lambda seed: rate(seed, "low", several=True),
    "power high": lambda seed: power(seed, "high", 0),
    "power low": lambda seed: power(seed, "low", 0),
    "power high, late": lambda seed: power(seed, "high", FROM),
    "power low, late": lambda seed: power(seed, "low", FROM - 1),
}


def verdict_of(limit, value):
    """Return the verdict where the field of a limit has a value."""
    claim = {"text": "claim", **limit.claim, limit.field: value}
    curves = {each.label: each for each in limit.curves}
    return judge(claim, curves, {}, {})


def is_where_it_should_be(limit):
    """Hold a claim to its limit: just on the one side it holds, just on the other it does not."""
    for side, holds in ((limit.side, True), (-limit.side, False)):
        value = limit.value + side * TINY * max(1.0, abs(limit.value))
        verdict = verdict_of(limit, value)
        assert verdict.holds is holds, (limit.claim, limit.field, value, verdict.evidence)
        assert verdict.evidence == limit.evidence(value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_a_claim_holds_up_to_its_limit_and_no_further(name, seed):
    is_where_it_should_be(CASES[name](seed))


def test_every_kind_has_its_limits_here():
    moved = {CASES[name](0).claim["kind"] for name in CASES}
    lines = {"below", "over-line", "under-line", "on-line", "beneath", "lines"}
    games = {"refused"}  # in tests/papers
    assert moved | lines | games == set(CLAIMS)
