"""The report of an evaluation: estimates, bounds and intervals, and the verdict that they lead to.

Whatever log was judged, :func:`compare` makes the report: a policy is promoted only if a lower
confidence bound says that it beats the baseline.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, NamedTuple

from keyhole.base.display import Described, Description, data_frame
from keyhole.base.lazy import named
from keyhole.data.bandit.row_digests import Overlap
from keyhole.offline.bounds import BOUNDS, Bound, Interval, intervals, lower_bounds
from keyhole.offline.diagnostics import Diagnostics
from keyhole.offline.estimators import DECISIVE, Estimate

_LONGEST_REMARK = 80


def told(value: float | None) -> str:
    """Return a number as tables of an evaluation have it."""
    return "none" if value is None else f"{value:.5f}"


def _ends(found: Interval) -> str:
    return f"{told(found.low)} to {told(found.high)}"


@dataclass(frozen=True, repr=False)
class Line(Described):
    """One estimate with its lower bounds and its intervals, by the names of the bounds."""

    estimate: Estimate
    bounds: dict[str, Bound]
    intervals: dict[str, Interval]

    def _described(self) -> Description:
        rows = [
            (name, f"at least {told(bound.value)}; {_ends(self.intervals[name])}")
            for name, bound in self.bounds.items()
            if bound.value is not None
        ]
        return Description(f"{self.estimate.name} {told(self.estimate.value)}", rows)

    @classmethod
    def of(cls, estimate: Estimate, confidence: float, **options: Any) -> "Line":
        """Return an estimate with its bounds; options as in :func:`lower_bounds`."""
        return cls(
            estimate,
            lower_bounds(estimate, confidence, **options),
            intervals(estimate, confidence, **options),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {
            "value": self.estimate.value,
            "standard_error": self.estimate.error,
            "bounds": {name: bound.value for name, bound in self.bounds.items()},
            "why_not": {
                name: bound.why_not for name, bound in self.bounds.items() if bound.value is None
            },
            "intervals": {name: found.ends for name, found in self.intervals.items()},
        }


class Side(NamedTuple):
    """A policy on a log, before anything is made of its estimates."""

    name: str
    estimates: Mapping[str, Estimate]
    diagnostics: Diagnostics | None = None
    overlap: Overlap | None = None
    trials: tuple[int, int] | str | None = None
    """Those of :func:`~keyhole.offline.target.binomial_trials`, or why there are none."""


@dataclass(frozen=True, repr=False)
class Judged(Described):
    """A policy on a log: every estimate with every bound, and how far the log can be trusted."""

    name: str
    lines: dict[str, Line]
    diagnostics: Diagnostics | None
    overlap: Overlap | None = None
    """How many rows it was trained on; None where it does not say."""

    def _described(self) -> Description:
        rows = [(name, line.estimate.told) for name, line in self.lines.items()]
        if self.diagnostics is not None:
            effective = f"{self.diagnostics.effective_rows:,.0f} of {self.diagnostics.n_rows:,}"
            rows.append(("effective rows", effective))
        return Description(self.name, rows)

    @property
    def sentence(self) -> str:
        """How its importance weights overlap with the log."""
        found = self.diagnostics
        if found is None:
            return ""
        return (
            f"{self.name}: {found.effective_rows:,.0f} effective rows of {found.n_rows:,}, acts in "
            f"{found.overlap:.1%} of them ({found.n_rewarded} rewarded), largest weight "
            f"{found.largest_weight:.4g}, mean weight {found.mean_weight:.3f}."
        )

    @property
    def warnings(self) -> list[str]:
        """A sentence for each reason why the log cannot answer."""
        return [] if self.diagnostics is None else self.diagnostics.warnings(self.name)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        overlap = self.overlap
        return {
            "name": self.name,
            "estimates": {name: line.as_dict() for name, line in self.lines.items()},
            "diagnostics": None if self.diagnostics is None else vars(self.diagnostics),
            "training_rows": None
            if overlap is None
            else {**vars(overlap), "share": overlap.share, "is_known": overlap.is_known},
        }


@dataclass(frozen=True, repr=False)
class Evaluation(Described):
    """The verdict on a policy, and the numbers behind it."""

    policy: Judged
    baseline: Judged
    difference: dict[str, Line]
    confidence: float
    decided_by: str
    n_rows: int
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    decisive: str = DECISIVE
    """The estimate whose difference decides."""

    def _described(self) -> Description:
        title = (
            f"{self.verdict}: {self.policy.name} against {self.baseline.name} on "
            f"{self.n_rows:,} rows"
        )
        rows = []
        for name, lines in (*self.compared[:2], ("difference", self.difference)):
            line = lines[self.decisive]
            interval = _ends(line.intervals[self.decided_by])
            rows.append((name, f"{told(line.estimate.value)} ({interval})"))
        decided = f"{told(self.lower_bound)} ({self.decided_by}, {self.confidence:.3g})"
        said = [("note", note) for note in self.notes] + [("warning", w) for w in self.warnings]
        cut = [(kind, shorten(text, _LONGEST_REMARK, placeholder=" …")) for kind, text in said]
        return Description(title, [*rows, ("at least", decided), *cut])

    @property
    def compared(self) -> tuple[tuple[str, dict[str, Line]], ...]:
        """The names and lines of policy, baseline and their difference."""
        names = (self.policy.name, self.baseline.name)
        return (
            (names[0], self.policy.lines),
            (names[1], self.baseline.lines),
            (f"{names[0]} minus {names[1]}", self.difference),
        )

    @property
    def lower_bound(self) -> float | None:
        """The bound on the difference that decides."""
        return self.difference[self.decisive].bounds[self.decided_by].value

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The two-sided interval of that difference, beside the bound."""
        found = self.difference[self.decisive].intervals[self.decided_by]
        return found.low, found.high

    @property
    def verdict(self) -> str:
        """``promote`` if the deciding bound on the difference is above 0, else ``keep``."""
        bound = self.lower_bound
        return "promote" if bound is not None and bound > 0.0 else "keep"

    @property
    def sentence(self) -> str:
        """Why the verdict is what it is."""
        if self.lower_bound is None:
            return f"there is no {self.decided_by} bound on the difference."
        bound = f"the {self.decided_by} bound on the difference is {told(self.lower_bound)}"
        return f"{bound}; above 0 means promote."

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the difference of both policies with its lower bounds, and return the axes.

        ``keyhole.plot(a, b)`` draws several; see :func:`~keyhole.lab.figures.plots.plot` for the
        parameters. Above 0 the policy is better; the deciding bound is the end of a line.
        """
        labels = None if label is None else [label]
        return named("keyhole.lab.figures.plots:plot")(self, ax=ax, labels=labels)

    def drawing(self, label: str | None = None) -> Any:
        """Return what :meth:`plot` draws, labelled by both policies if nobody says how."""
        return named("keyhole.lab.figures.drawings:of_evaluation")(self, label)

    def to_frame(self) -> Any:
        """Return every bound as a pandas DataFrame: a row for each estimate and bound of each side.

        Its columns are ``side`` (policy, baseline or difference), ``name``, ``estimate``,
        ``value``, ``standard_error``, ``bound``, ``at_least``, and the interval ``low`` to
        ``high``; what is not known is NaN.
        """
        sides = zip(("policy", "baseline", "difference"), self.compared, strict=True)
        rows = [
            {
                "side": side, "name": name, "estimate": key, "value": line.estimate.value,
                "standard_error": line.estimate.error, "bound": bound,
                "at_least": line.bounds[bound].value, "low": found.low, "high": found.high,
            }
            for side, (name, lines) in sides
            for key, line in lines.items()
            for bound, found in line.intervals.items()
        ]  # fmt: skip
        return data_frame(rows)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "verdict": self.verdict,
            "decided_by": self.decided_by,
            "lower_bound": self.lower_bound,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "rows": self.n_rows,
            "policy": self.policy.as_dict(),
            "baseline": self.baseline.as_dict(),
            "difference": {name: line.as_dict() for name, line in self.difference.items()},
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def compare(
    sides: Sequence[Side],
    confidence: float,
    bound: str,
    *,
    difference: Mapping[str, Estimate] | None = None,
    decisive: str = DECISIVE,
    bounds: Iterable[str] = BOUNDS,
    notes: Iterable[str] = (),
    remarks: Iterable[str] = (),
    seed: int = 0,
) -> Evaluation:
    """Return the report on a policy and a baseline, whatever log their estimates are of.

    ``bound`` on the ``decisive`` difference decides, of the ``bounds`` that are told. Differences
    are taken row by row unless they are given. ``remarks`` are warnings that come first.
    """
    policy, baseline = sides
    names = tuple(dict.fromkeys([*bounds, bound]))

    def line(estimate: Estimate, trials: tuple[int, int] | str | None = None) -> Line:
        options: dict[str, Any] = {} if trials is None else {"trials": trials}
        return Line.of(estimate, confidence, names=names, seed=seed, **options)

    judged = [
        Judged(
            side.name,
            {
                name: line(estimate, side.trials if name == decisive else None)
                for name, estimate in side.estimates.items()
            },
            side.diagnostics,
            side.overlap,
        )
        for side in sides
    ]
    apart = difference or {
        name: estimate.minus(baseline.estimates[name])
        for name, estimate in policy.estimates.items()
    }
    no_trials = "it is not for differences of two policies" if policy.trials is not None else None
    lines = {name: line(estimate, no_trials) for name, estimate in apart.items()}
    warnings = [*remarks, *judged[0].warnings, *judged[1].warnings]
    decided = lines[decisive].bounds[bound]
    if decided.value is None:
        warnings.append(f"There is no {bound} bound: {decided.why_not}; give the range of rewards.")
    n_rows = len(lines[decisive].estimate.contributions)
    return Evaluation(
        judged[0], judged[1], lines, confidence, bound, n_rows, tuple(notes), tuple(warnings),
        decisive,
    )  # fmt: skip
