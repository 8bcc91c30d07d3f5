"""Claims that a study makes about its curves, each judged with the numbers it rests on."""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keyhole.base.errors import FeedbackTooSmall, InvalidInput, NotObservable, check_choice
from keyhole.experiment.description import Experiment
from keyhole.game.trace import RunMean, Slope, log_log_slope
from keyhole.lab.results import Curve

_ERRORS = 2.0
"""Standard errors by which an ordering must hold where a claim does not say."""
_ROUNDING = 1e-9
"""Totals are kept as means: two that are the same may differ by this."""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds (None: it could not be judged) and why."""

    claim: str
    holds: bool | None
    evidence: str

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "SKIP"}[self.holds]
        return f"{word}  {self.claim}: {self.evidence}"


def _shown(estimate: RunMean) -> str:
    spread = "" if math.isnan(estimate.error) else f" ± {estimate.error:.2g}"
    return f"{estimate.mean:.4g}{spread}"


def _apart(low: RunMean, high: RunMean, errors: float, by: float) -> bool:
    """Return whether one mean is below another by standard errors of the difference, and more.

    A single run has no error, which leaves that of the other.
    """
    known = (0.0 if math.isnan(each.error) else each.error for each in (low, high))
    return high.mean - low.mean > by + errors * math.hypot(*known)


def _when(curve: Curve, at: int | None) -> str:
    return f"at {curve.x[curve.index(at)]}" if len(curve.x) > 1 else "in the mean"


def _order(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Values rise along ``curves`` at round ``at``, by some standard errors and ``by``."""
    chosen = [curves[label] for label in claim["curves"]]
    at, by, errors = claim.get("at"), claim.get("by", 0.0), claim.get("errors", _ERRORS)
    found = [curve.at(at) for curve in chosen]
    holds = all(_apart(a, b, errors, by) for a, b in itertools.pairwise(found))
    values = ", ".join(f"{c.label} {_shown(e)}" for c, e in zip(chosen, found, strict=True))
    least = f"{errors:g} standard errors" + (f" {'+' if by > 0 else '-'} {abs(by):g}" if by else "")
    return holds, f"{_when(chosen[0], at)}, rising: {values} (each by {least})"


def _below(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """One curve is below another at every checkpoint ``from`` some round on."""
    low, high = (curves[label] for label in claim["curves"])
    late = low.x >= claim["from"]
    if not np.array_equal(low.x, high.x) or not late.any():
        raise InvalidInput(f"The curves of claim {claim['text']!r} must share checkpoints.")
    gap = (high.mean[0] - low.mean[0])[late]
    return bool((gap > 0).all()), (
        f"over {int(late.sum())} checkpoints from round {claim['from']} the smallest gap is "
        f"{gap.min():.4g}"
    )


def _band(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Values lie between ``low`` and ``high`` at round ``at``, or miss by few standard errors."""
    curve, at, errors = curves[claim["curve"]], claim.get("at"), claim.get("errors", 0.0)
    found = curve.at(at)
    slack = errors * (0.0 if math.isnan(found.error) else found.error)
    low, high = claim.get("low", -math.inf), claim.get("high", math.inf)
    limits = f"band {low:g} to {high:g}"
    if math.isinf(low) or math.isinf(high):
        limits = f"at most {high:g}" if math.isinf(low) else f"at least {low:g}"
    more = f" and {errors:g} standard errors" if errors else ""
    return low - slack <= found.mean <= high + slack, (
        f"{_shown(found)} {_when(curve, at)}, {limits}{more}"
    )


def _falls(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Value at the end is at most ``factor`` of that at round ``from``."""
    curve = curves[claim["curve"]]
    early, late = curve.at(claim["from"]), curve.at(int(curve.x[-1]))
    return late.mean <= claim["factor"] * early.mean, (
        f"{_shown(early)} at {claim['from']}, {_shown(late)} at {curve.x[-1]}, "
        f"factor {late.mean / early.mean:.3g} of at most {claim['factor']:g}"
    )


def _fraction(
    claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]
) -> Any:
    """Value of the first of two curves is at most ``factor`` of the other's, at the end."""
    part, whole = (curves[label].at() for label in claim["curves"])
    return part.mean <= claim["factor"] * whole.mean, (
        f"{_shown(part)} of {_shown(whole)} at the end, {part.mean / whole.mean:.3g} of it, at "
        f"most {claim['factor']:g}"
    )


def _unrivalled(
    claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]
) -> Any:
    """Curves after the first end lower by at most a share ``by`` of themselves, or two errors.

    Errors are of the difference, run by run: runs of one number meet the same users.
    """
    own, *rivals = (curves[label] for label in claim["curves"])
    best = min(rivals, key=lambda curve: curve.at().mean)
    apart = own.values[:, -1] - best.values[:, -1]
    gap, least = float(apart.mean()), best.at().mean
    error = float(apart.std(ddof=1) / math.sqrt(len(apart)))
    return gap <= max(claim["by"] * abs(least), _ERRORS * error), (
        f"{_shown(own.at())}, best of {len(rivals)} rivals {best.label} {_shown(best.at())}: "
        f"{gap:.2g} ± {error:.2g} more, at most {claim['by']:g} of it or {_ERRORS:g} standard "
        f"errors"
    )


def _settles(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Totals grow by at most ``growth`` after round ``from``, in the mean over the runs."""
    curve = curves[claim["curve"]]
    late = curve.totals[:, -1]
    growth = late - curve.totals[:, curve.index(claim["from"])]
    return bool(growth.mean() <= claim["growth"] + _ROUNDING), (
        f"of a total of {late.mean():.4g}, {growth.mean():.3g} came after round {claim['from']} "
        f"({growth.max():.3g} in the worst of {len(late)} runs), at most {claim['growth']:g}"
    )


def _slope(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Log-log slope of total regret is at most ``high``, of ``curve`` or of each of ``curves``."""
    chosen = [curves[label] for label in claim.get("curves") or [claim["curve"]]]
    slopes = [log_log_slope(curve.x, curve.totals) for curve in chosen]
    holds = all(slope.value <= claim["high"] for slope in slopes)
    steepest = max(range(len(slopes)), key=lambda index: slopes[index].value)
    slope, which = slopes[steepest], f", {chosen[steepest].label}" if len(chosen) > 1 else ""
    return holds, (
        f"slope {slope.value:.3f} in [{slope.low:.3f}, {slope.high:.3f}], at most "
        f"{claim['high']:g}{which}"
    )


def _over_line(
    claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]
) -> Any:
    """No curve is below a line, by more than standard errors, from round ``from`` on."""
    chosen, line = [curves[label] for label in claim["curves"]], lines[claim["line"]]
    errors = claim.get("errors", _ERRORS)
    late = line.x >= claim["from"]
    if not late.any() or not all(np.array_equal(curve.x, line.x) for curve in chosen):
        raise InvalidInput(f"The curves of claim {claim['text']!r} must share checkpoints.")
    least, lowest = math.inf, ""
    holds = True
    for curve in chosen:
        mean, error = curve.mean
        gap = (mean - line.values[0])[late]
        slack = errors * np.nan_to_num(error)[late]
        holds &= bool((gap + slack >= 0.0).all())
        if gap.min() < least:
            at = np.flatnonzero(late)[gap.argmin()]
            least = float(gap.min())
            value = _shown(RunMean(float(mean[at]), float(error[at])))
            lowest = f"{curve.label} with {value} at {line.x[at]}"
    return holds, (
        f"over {int(late.sum())} checkpoints from round {claim['from']} the lowest of "
        f"{len(chosen)} is {lowest}, the line {line.values[0, -1]:.5g} (less {errors:g} standard "
        f"errors)"
    )


def _refused(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """None of ``rankers`` can play ``game``: they need more than is shown, and say so."""
    reasons = []
    for ranker in claim["rankers"]:
        fields = {**claim["game"], "ranker": ranker, "rounds": 1}
        try:
            Experiment.of(fields, f"claim {claim['text']!r}").play()
        except (FeedbackTooSmall, NotObservable) as error:
            reasons.append(f"{ranker}: {error}")
        else:
            return False, f"{ranker} plays"
    return True, " ".join(reasons)


def _under_line(
    claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]
) -> Any:
    """Mean total regret at the end is at most that of a line."""
    curve, line = curves[claim["curve"]], lines[claim["line"]]
    total, limit = curve.totals[:, -1].mean(), line.totals[0, -1]
    return bool(total <= limit), (
        f"total regret {total:.5g} of at most {limit:.5g} ({total / limit:.0%})"
    )


def _on_line(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Mean total regret at the end is within ``errors`` standard errors of a line."""
    curve, line = curves[claim["curve"]], lines[claim["line"]]
    totals = curve.totals[:, -1]
    error = float(totals.std(ddof=1) / math.sqrt(len(totals)))
    off = abs(float(totals.mean()) - float(line.totals[0, -1])) / error
    return off <= claim["errors"], (
        f"{totals.mean():.5g} ± {error:.2g} over {len(totals)} runs against "
        f"{line.totals[0, -1]:.5g}: {off:.2f} standard errors off, at most {claim['errors']:g}"
    )


def _mostly(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """One curve ends below another in at least ``share`` of the runs."""
    low, high = (curves[label].values[:, -1] for label in claim["curves"])
    n_below, n_runs = int((low < high).sum()), len(low)
    return n_below >= claim["share"] * n_runs, (
        f"in {n_below} of {n_runs} runs, at least {claim['share']:.0%} of them"
    )


def _power(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Values grow as a power of x between ``low`` and ``high``, with its whole interval."""
    curve = {**lines, **curves}[claim["curve"] if "curve" in claim else claim["line"]]
    power, low, high = curve.power(claim.get("from", 0))
    least, most = claim.get("low", -math.inf), claim.get("high", math.inf)
    spread = "" if math.isnan(low) else f" in [{low:.3f}, {high:.3f}]"
    ends = (power, power) if math.isnan(low) else (low, high)
    limits = f"{least:g} to {most:g}"
    return least <= ends[0] and ends[1] <= most, f"power {power:.3f}{spread}, {limits}"


def _rate(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Totals grow as a power of x between ``low`` and ``high``, each with its whole interval."""
    chosen = [curves[label] for label in claim.get("curves") or [claim["curve"]]]
    slopes = [Slope(*replace(curve, values=curve.totals).power()) for curve in chosen]
    least, most = claim.get("low", -math.inf), claim["high"]
    shown = ", ".join(
        f"{f'{curve.label} ' if len(chosen) > 1 else ''}{slope.value:.3f} in "
        f"[{slope.low:.3f}, {slope.high:.3f}]"
        for curve, slope in zip(chosen, slopes, strict=True)
    )
    holds = all(least <= slope.low and slope.high <= most for slope in slopes)
    limits = f"at most {most:.4g}" if least == -math.inf else f"{least:g} to {most:.4g}"
    return holds, f"slope {shown}; claimed {claim['claimed']}, {limits}"


def _beneath(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Mean and two standard errors are below a line at every point."""
    curve, line = curves[claim["curve"]], lines[claim["line"]]
    mean, error = curve.mean
    above = mean + _ERRORS * np.nan_to_num(error)
    shares = above / line.values[0]
    return bool((shares <= 1.0).all()), (
        f"mean and {_ERRORS:g} standard errors are at most {shares.max():.2%} of the line over "
        f"{len(shares)} points"
    )


def _lines(claim: dict[str, Any], curves: Mapping[str, Curve], lines: Mapping[str, Curve]) -> Any:
    """Lines rise in the order given, at the end."""
    chosen = [lines[label] for label in claim["lines"]]
    ends = [float(line.values[0, -1]) for line in chosen]
    shown = ", ".join(f"{line.label} {end:.4g}" for line, end in zip(chosen, ends, strict=True))
    return all(a < b for a, b in itertools.pairwise(ends)), f"at {chosen[0].x[-1]}, rising: {shown}"


CLAIMS: dict[str, Callable[..., Any]] = {
    "order": _order,
    "below": _below,
    "band": _band,
    "falls": _falls,
    "fraction": _fraction,
    "unrivalled": _unrivalled,
    "settles": _settles,
    "mostly": _mostly,
    "slope": _slope,
    "under-line": _under_line,
    "on-line": _on_line,
    "over-line": _over_line,
    "refused": _refused,
    "power": _power,
    "rate": _rate,
    "beneath": _beneath,
    "lines": _lines,
}


def judge(
    claim: dict[str, Any],
    curves: Mapping[str, Curve],
    lines: Mapping[str, Curve],
    missing: Mapping[str, str],
) -> Verdict:
    """Judge one claim; it is skipped where a curve it needs has no data on this machine."""
    kind = check_choice(claim["kind"], f"kind of claim {claim['text']!r}", CLAIMS)
    if "skip" in claim:
        return Verdict(claim["text"], None, claim["skip"])
    needed = [*claim.get("curves", []), *([claim["curve"]] if "curve" in claim else [])]
    for label in needed:
        if label in missing:
            return Verdict(claim["text"], None, missing[label])
        check_choice(label, f"curve of claim {claim['text']!r}", curves)
    for label in [*claim.get("lines", []), *([claim["line"]] if "line" in claim else [])]:
        check_choice(label, f"line of claim {claim['text']!r}", lines)
    holds, evidence = CLAIMS[kind](claim, curves, lines)
    return Verdict(claim["text"], bool(holds), evidence)
