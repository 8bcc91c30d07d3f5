"""Estimates of what policies earn, from rows of a log, with bounds and intervals by definition."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Rows(NamedTuple):
    """Contributions of an estimate: their range, that of the value, and what is wrong with it."""

    values: np.ndarray
    bias: str = "none"
    range: Any = None
    worth: Any = None
    trials: Any = None

    def minus(self, other: "Rows") -> "Rows":
        """Return the difference row by row; binomial trials have none."""
        bias = "unknown"
        if {self.bias, other.bias} <= {"none", "vanishing"}:
            bias = "none" if self.bias == other.bias == "none" else "vanishing"
        return Rows(
            self.values - other.values, bias, _apart(self.range, other.range),
            _apart(self.worth, other.worth),
        )  # fmt: skip

    def mirrored(self) -> "Rows":
        """Return losses for gains, and failures for successes."""
        turned = None if self.range is None else (-self.range[1], -self.range[0])
        trials = None if self.trials is None else (self.trials[1] - self.trials[0], self.trials[1])
        return Rows(-self.values, self.bias, turned, None, trials)


def _apart(one: Any, other: Any) -> Any:
    return None if one is None or other is None else (one[0] - other[1], one[1] - other[0])


def estimates(
    actions: np.ndarray,
    rewards: np.ndarray,
    propensities: np.ndarray,
    chances: np.ndarray,
    table: np.ndarray,
    *,
    clip: float,
    largest: float,
    span: tuple[float, float],
) -> dict[str, Rows]:
    """Return the five estimates of a policy that takes actions with the chances of each row."""
    n = len(rewards)
    weights = np.array([chances[i, a] / propensities[i] for i, a in enumerate(actions)])
    weighted = float((weights * rewards).sum()) / float(weights.sum())
    modelled = (chances * table).sum(axis=1)
    logged = np.array([table[i, a] for i, a in enumerate(actions)])
    cut = "down" if span[0] >= 0.0 else "unknown"
    return {
        "importance-weighted": Rows(weights * rewards, "none", _scaled(largest, span), span),
        "self-normalised": Rows(
            weighted + weights * (rewards - weighted) / (weights.sum() / n), "vanishing"
        ),
        "clipped": Rows(
            np.minimum(weights, clip) * rewards, "none" if largest <= clip else cut,
            _scaled(min(largest, clip), span), span,
        ),
        "direct": Rows(modelled, "unknown"),
        "doubly-robust": Rows(modelled + weights * (rewards - logged), "none", None, span),
    }  # fmt: skip


def _scaled(weight: float, span: tuple[float, float]) -> tuple[float, float]:
    return min(0.0, weight * span[0]), max(0.0, weight * span[1])


def student_t(rows: Rows, confidence: float) -> float:
    x = rows.values
    return float(x.mean() - x.std(ddof=1) / math.sqrt(len(x)) * stats.t.ppf(confidence, len(x) - 1))


def bernstein(rows: Rows, confidence: float) -> float:
    x, surprise = rows.values, math.log(2.0 / (1.0 - confidence))
    width = rows.range[1] - rows.range[0]
    root = math.sqrt(2.0 * x.var(ddof=1) * surprise / len(x))
    return float(x.mean() - root - 7.0 * width * surprise / (3.0 * (len(x) - 1)))


def binomial(rows: Rows, confidence: float) -> float:
    won, tried = rows.trials
    return 0.0 if won == 0 else float(stats.beta.ppf(1.0 - confidence, won, tried - won + 1))


def bootstrap(rows: Rows, confidence: float, seed: int) -> float:
    """Return a low quantile of resampled means, from the same draws."""
    numbers, n = np.random.default_rng(seed), len(rows.values)
    values, counts = np.unique(rows.values, return_counts=True)
    if len(values) <= 100:
        means = numbers.multinomial(n, counts / n, size=2000) @ values / n
    else:
        dealt = rows.values[np.argsort(numbers.permutation(n))]
        means = np.array([dealt[numbers.integers(n, size=n)].mean() for _ in range(2000)])
    return float(np.sort(means)[math.floor((1.0 - confidence) * 1999)])


def wealth(rows: Rows, confidence: float, mean: float) -> float:
    """Return the log of what a gambler ends with who bets that rows are above a mean."""
    low, width = rows.range[0], rows.range[1] - rows.range[0]
    surprise, n, total = -math.log(1.0 - confidence), len(rows.values), 0.0
    so_far, squares = 0.0, 0.0
    for seen, value in enumerate(rows.values - low):
        spread = max(squares - so_far * so_far / max(seen, 1), 0.0)
        variance = (width * width / 4.0 + spread) / (seen + 1)
        bet = min(math.sqrt(2.0 * surprise / (n * variance)), 0.5 / (mean - low))
        total += math.log1p(bet * (value - (mean - low)))
        so_far, squares = so_far + value, squares + value * value
    return total


def check_betting(found: float, rows: Rows, confidence: float) -> None:
    """Raise unless a bound is where the gambler just becomes rich."""
    low, high = rows.range
    step, rich = 1e-8 * (high - low), -math.log(1.0 - confidence)
    assert found <= rows.values.mean()
    assert wealth(rows, confidence, found + step) < rich
    if found - step > low:
        assert wealth(rows, confidence, found - step) >= rich


def known(rows: Rows) -> dict[str, bool]:
    """Return which bounds there are."""
    sure = rows.bias in ("none", "down") and rows.range is not None
    return {
        "betting": sure, "empirical-bernstein": sure, "clopper-pearson": rows.trials is not None,
        "student-t": rows.bias != "unknown", "bootstrap": rows.bias != "unknown",
    }  # fmt: skip


def bound_of(name: str, rows: Rows, confidence: float, seed: int) -> float:
    """Return a lower bound; there is no formula for that of betting, which is checked."""
    if name == "bootstrap":
        return bootstrap(rows, confidence, seed)
    formulas = {
        "student-t": student_t, "empirical-bernstein": bernstein, "clopper-pearson": binomial,
    }  # fmt: skip
    return formulas[name](rows, confidence)


def check_line(told: Any, rows: Rows, confidence: float, seed: int) -> None:
    """Raise unless an estimate, its bounds and intervals are what the rows say."""
    x, half = rows.values, (1.0 + confidence) / 2.0
    assert told["value"] == close(x.mean())
    assert told["standard_error"] == close(x.std(ddof=1) / math.sqrt(len(x)))
    least, most = rows.worth or (-math.inf, math.inf)
    for name, is_known in known(rows).items():
        bound, (low, high) = told["bounds"][name], told["intervals"][name]
        if not is_known:
            assert (bound, low, high) == (None, None, None), name
            continue
        if name == "betting":
            check_betting(bound, rows, confidence)
            if low > least:
                check_betting(low, rows, half)
            if high is not None and high < most:
                check_betting(-high, rows.mirrored(), half)
            continue
        assert bound == close(bound_of(name, rows, confidence, seed)), name
        assert low == close(max(bound_of(name, rows, half, seed), least)), name
        if rows.bias == "down":
            assert high is None
            continue
        top = 1.0 if name == "clopper-pearson" else 0.0
        above = top - bound_of(name, rows.mirrored(), half, seed)
        assert high == close(min(above, most)), name


def close(value: float) -> Any:
    """Return what a number must be equal to, but for rounding."""
    import pytest

    return pytest.approx(value, rel=1e-9, abs=1e-9)


def check_diagnostics(told: Any, weights: np.ndarray, rewarded: np.ndarray) -> None:
    """Raise unless the overlap of a policy with a log is what its weights say."""
    n, acts = len(weights), weights > 0.0
    assert told["n_rows"] == n
    assert told["effective_rows"] == close(weights.sum() ** 2 / (weights**2).sum())
    assert told["largest_weight"] == close(weights.max())
    assert told["largest_share"] == close(weights.max() / weights.sum())
    assert told["mean_weight"] == close(weights.mean())
    assert told["mean_weight_error"] == close(weights.std(ddof=1) / math.sqrt(n))
    assert told["overlap"] == close(acts.mean())
    assert told["n_rewarded"] == int((acts & rewarded).sum())


def warned(name: str, told: Any) -> list[str]:
    """Return the sentences that diagnostics call for, where every action was logged."""
    effective, n = told["effective_rows"], told["n_rows"]
    if effective < 100:
        return [
            f"{name} has {effective:.1f} effective rows of {n}, fewer than 100: the log cannot say "
            f"what it is worth."
        ]
    if told["n_rewarded"] < 10:
        return [
            f"{name} has {told['n_rewarded']} rewarded rows, fewer than 10: its value hangs on "
            f"single ones."
        ]
    return []
