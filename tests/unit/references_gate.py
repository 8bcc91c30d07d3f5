"""The report of the gate again, from definitions: estimates, bounds, intervals, diagnostics.

Rows are taken one after the other in plain Python; of the package nothing is used. What is asked is
one dictionary, ``question``, whose keys are those of :func:`report`.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

GUARANTEED = ("betting", "empirical-bernstein")


class Rows(NamedTuple):
    """What each row contributes to an estimate, and what is known of all that it could have."""

    values: list[float]
    bias: str
    range: tuple[float, float] | None = None
    worth: tuple[float, float] | None = None


# ------------------------------------------------------------------ bounds


def variance(values):
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def betting(values, confidence, span):
    """Bisect for the least mean at which the gambler of Waudby-Smith and Ramdas is not rich."""
    low, high = span
    n, rich = len(values), math.log(1 / (1 - confidence))
    bets, total, squares = [], 0.0, 0.0
    for row, value in enumerate(values):
        spread = squares - total**2 / row if row else 0.0
        guess = ((high - low) ** 2 / 4 + max(spread, 0.0)) / (row + 1)
        bets.append(math.sqrt(2 * rich / (n * guess)))
        total, squares = total + value - low, squares + (value - low) ** 2

    def wealth(mean):
        gains = (
            math.log1p(min(bet, 0.5 / mean) * (value - low - mean))
            for bet, value in zip(bets, values, strict=True)
        )
        return math.fsum(gains)

    out, kept = 0.0, math.fsum(values) / n - low
    if kept <= 0.0:
        return low
    for _ in range(50):
        middle = (out + kept) / 2
        out, kept = (middle, kept) if wealth(middle) >= rich else (out, middle)
    return low + out


def bootstrap(values, confidence, seed, n_resamples=2000):
    numbers, n = np.random.default_rng(seed), len(values)
    kinds = sorted(set(values))
    assert len(kinds) <= 100  # how often each comes is drawn at once
    shares = np.array([values.count(kind) / n for kind in kinds])
    means = numbers.multinomial(n, shares, size=n_resamples) @ np.array(kinds) / n
    return sorted(means)[math.floor((1 - confidence) * (n_resamples - 1) + 1e-9)]


def why_not(name, rows, trials):
    """Return why a bound of some rows does not apply, or nothing."""
    if any(math.isnan(value) for value in rows.values):
        return "there is no estimate"
    if name == "clopper-pearson":
        return trials if isinstance(trials, str) else ""
    if name in GUARANTEED and rows.bias == "vanishing":
        return "the estimate is unbiased in the limit only"
    if name in GUARANTEED and rows.range is None and rows.bias != "unknown":
        return "the range of rewards is not known, or the rows depend on each other"
    return "the bias of the estimate is not known" if rows.bias == "unknown" else ""


def bernstein(rows, confidence, _seed, _trials):
    n, surprise = len(rows.values), math.log(2 / (1 - confidence))
    spread = math.sqrt(2 * variance(rows.values) * surprise / n)
    width = rows.range[1] - rows.range[0]
    return math.fsum(rows.values) / n - spread - 7 * width * surprise / (3 * (n - 1))


def student(rows, confidence, _seed, _trials):
    n = len(rows.values)
    reach = math.sqrt(variance(rows.values) / n) * float(stats.t.ppf(confidence, n - 1))
    return math.fsum(rows.values) / n - reach


def exact(_rows, confidence, _seed, trials):
    tested = stats.binomtest(int(trials[0]), int(trials[1]), alternative="greater")
    return float(tested.proportion_ci(confidence, method="exact").low)


LOWER = {
    "betting": lambda rows, confidence, *_: betting(rows.values, confidence, rows.range),
    "empirical-bernstein": bernstein,
    "clopper-pearson": exact,
    "student-t": student,
    "bootstrap": lambda rows, confidence, seed, _: bootstrap(rows.values, confidence, seed),
}


def lower(name, rows, confidence, seed, trials):
    """Return a lower bound, or why there is none."""
    return why_not(name, rows, trials) or LOWER[name](rows, confidence, seed, trials)


def turned(span):
    return None if span is None else (-span[1], -span[0])


def ends(name, rows, confidence, seed, trials):
    """Return both ends of an interval: each is wrong with half of what may go wrong."""
    half = 1 - (1 - confidence) / 2
    low = lower(name, rows, half, seed, trials)
    if isinstance(low, str):
        return [None, None]
    if rows.bias == "down":
        return [low, None]
    losses = Rows([-value for value in rows.values], rows.bias, turned(rows.range))
    if name == "clopper-pearson":
        high = 1 - lower(name, losses, half, seed, (trials[1] - trials[0], trials[1]))
    else:
        high = -lower(name, losses, half, seed, trials)
    if rows.worth is None:
        return [low, high]
    return [max(low, rows.worth[0]), min(high, rows.worth[1])]


def line(rows, confidence, seed, trials):
    found = {name: lower(name, rows, confidence, seed, trials) for name in LOWER}
    n = len(rows.values)
    return {
        "value": math.fsum(rows.values) / n,
        "standard_error": math.sqrt(variance(rows.values) / n),
        "bounds": {name: None if isinstance(b, str) else b for name, b in found.items()},
        "why_not": {name: b for name, b in found.items() if isinstance(b, str)},
        "intervals": {name: ends(name, rows, confidence, seed, trials) for name in LOWER},
    }


# ------------------------------------------------------------------ estimates


def weights_of(log, chances):
    actions, propensities = log.actions.tolist(), log.propensities.tolist()
    return [
        float(chances[row][action]) / propensity
        for row, (action, propensity) in enumerate(zip(actions, propensities, strict=True))
    ]


def estimates(log, chances, question, largest_weight):
    """Return the rows of every estimator."""
    weights, rewards = weights_of(log, chances), log.rewards.tolist()
    n, table = len(log), question["table"]
    span = question["rewards"] or (0.0, 1.0)
    clip = math.sqrt(n) if question["clip"] is None else question["clip"]
    total = math.fsum(weights)
    ratio = math.fsum(w * r for w, r in zip(weights, rewards, strict=True)) / total
    modelled = [math.fsum(chances[row] * table[row]) for row in range(n)]
    logged = [table[row][action] for row, action in enumerate(log.actions.tolist())]

    def reach(most):
        return (min(0.0, most * span[0]), max(0.0, most * span[1]))

    of_clipped = "down" if span[0] >= 0 else "unknown"
    low, high = min(span[0], table.min()), max(span[1], table.max())
    most = largest_weight * (high - low)
    elsewhere = (low - most, high + most) if question["elsewhere"] else None
    pairs = list(zip(weights, rewards, strict=True))
    return {
        "importance-weighted": Rows(
            [w * r for w, r in pairs], "none", reach(largest_weight), span
        ),
        "self-normalised": Rows([ratio + w * (r - ratio) * n / total for w, r in pairs],
                                "vanishing"),
        "clipped": Rows(
            [min(w, clip) * r for w, r in pairs],
            "none" if largest_weight <= clip else of_clipped,
            reach(min(largest_weight, clip)),
            span,
        ),
        "direct": Rows(modelled, "unknown"),
        "doubly-robust": Rows(
            [m + w * (r - p) for m, (w, r), p in zip(modelled, pairs, logged, strict=True)],
            "none",
            elsewhere,
            span,
        ),
    }  # fmt: skip


def difference(one, other):
    def spans(a, b):
        return None if a is None or b is None else (a[0] - b[1], a[1] - b[0])

    kinds = {one.bias, other.bias}
    bias = "none" if kinds == {"none"} else "unknown"
    bias = "vanishing" if "vanishing" in kinds and kinds <= {"none", "vanishing"} else bias
    values = [a - b for a, b in zip(one.values, other.values, strict=True)]
    return Rows(values, bias, spans(one.range, other.range), spans(one.worth, other.worth))


# ------------------------------------------------------------------ the report


def diagnostics(weights, rewards, unknown=0.0, names=()):
    n, total = len(weights), math.fsum(weights)
    acting = [row for row, weight in enumerate(weights) if weight > 0]
    return {
        "n_rows": n,
        "effective_rows": total**2 / math.fsum(weight**2 for weight in weights),
        "largest_weight": max(weights),
        "largest_share": max(weights) / total,
        "mean_weight": total / n,
        "mean_weight_error": math.sqrt(variance(weights) / n),
        "overlap": len(acting) / n,
        "n_rewarded": sum(rewards[row] != 0 for row in acting),
        "unknown": unknown,
        "unknown_actions": tuple(names),
    }


def judged(name, log, chances, question, largest_weight, trials):
    never = [a for a in range(log.n_actions) if a not in set(log.actions.tolist())]
    mass = {a: math.fsum(chances[:, a]) / len(log) for a in never}
    found = estimates(log, chances, question, largest_weight)
    confidence, seed = question["confidence"], question["seed"]
    why = "it is for the importance-weighted value of one policy"
    lines = {
        each: line(rows, confidence, seed, trials if each == "importance-weighted" else why)
        for each, rows in found.items()
    }
    names = [log.action_names[a] if log.action_names else str(a) for a in never if mass[a] > 0]
    return found, {
        "name": name,
        "estimates": lines,
        "diagnostics": diagnostics(
            weights_of(log, chances), log.rewards.tolist(), math.fsum(mass.values()), names
        ),
        "training_rows": None,
    }


def report(log, policies, **question):
    """Return what the gate says of two policies: ``policies`` are name, chances, weight, trials."""
    both = [judged(name, log, chances, question, *more) for name, chances, *more in policies]
    found, said = zip(*both, strict=True)
    confidence, seed = question["confidence"], question["seed"]
    why = "it is not for differences of two policies"
    gaps = {
        name: line(difference(found[0][name], found[1][name]), confidence, seed, why)
        for name in found[0]
    }
    decisive = gaps["importance-weighted"]
    bound = decisive["bounds"][question["bound"]]
    return {
        "verdict": "promote" if bound is not None and bound > 0 else "keep",
        "decided_by": question["bound"],
        "lower_bound": bound,
        "interval": decisive["intervals"][question["bound"]],
        "confidence": confidence,
        "rows": len(log),
        "policy": said[0],
        "baseline": said[1],
        "difference": gaps,
    }
