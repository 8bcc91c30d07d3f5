"""What a played game leaves on disk: summaries and curves."""

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, IntArray, InvalidInput
from keyhole.game.trace import RunMean, Trace, interval_over_runs, mean_and_error
from keyhole.lab.figures.panels import REGRET, Axes

__all__ = ["AT_THE_END", "REGRET", "Axes", "Curve", "curves_csv"]

AT_THE_END = Axes(
    "", "average regret", "round", "average_regret", better="lower is better", from_zero=False
)


@dataclass(frozen=True)
class Curve:
    """Values by run (rows) and point (columns), as they are drawn and kept on disk.

    Points are rounds where nothing else is said, and values means of the rounds up to a point.
    A bound or closed form is a curve of one run.
    """

    label: str
    x: IntArray
    values: FloatArray
    ranker: str = ""
    """The ranker that it is of, for figures, where the label does not begin with its name."""

    @classmethod
    def of(cls, label: str, trace: Trace) -> "Curve":
        """Return the average regret of a trace."""
        return cls(label, trace.rounds, trace.regret / trace.rounds)

    def as_dict(self) -> dict[str, Any]:
        """Return points and values as plain data, what is not finite included."""
        return {"x": self.x.tolist(), "values": self.values.tolist()}

    @classmethod
    def of_dict(cls, label: str, kept: dict[str, Any]) -> "Curve":
        """Return the curve that :meth:`as_dict` wrote, to the bit, or raise if it did not."""
        x, values = np.array(kept["x"]), np.array(kept["values"], dtype=np.float64)
        if x.dtype != np.int64 or x.ndim != 1 or values.ndim != 2 or values.shape[1:] != x.shape:
            raise InvalidInput("A curve must have a whole number x for each of its values.")
        return cls(label, x, values)

    @property
    def totals(self) -> FloatArray:
        """Sums over the rounds up to each point, by run."""
        return self.values * self.x

    @property
    def mean(self) -> tuple[FloatArray, FloatArray]:
        """Mean over the runs and its standard error, at each point."""
        return mean_and_error(self.values)

    def power(self, first_x: int = 0) -> tuple[float, float, float]:
        """Return the slope of log mean on log x from some point on, and a bootstrap interval."""
        late = self.x >= first_x
        log_x, values = np.log(self.x[late]), self.values[:, late]

        def slope(mean: FloatArray) -> float:
            return float(np.polyfit(log_x, np.log(np.maximum(mean, 1e-300)), 1)[0])

        return slope(values.mean(axis=0)), *interval_over_runs(slope, values, n_resamples=500)

    def index(self, x: int | None = None) -> int:
        """Return the index of the last point up to ``x``, or of the last of all."""
        if x is None:
            return len(self.x) - 1
        index = int(np.searchsorted(self.x, x, side="right")) - 1
        if index < 0:
            raise InvalidInput(f"The curve {self.label!r} has no point up to {x}.")
        return index

    def at(self, x: int | None = None) -> RunMean:
        """Return mean and standard error at the last point up to ``x``, or at the end."""
        index, (mean, error) = self.index(x), self.mean
        return RunMean(float(mean[index]), float(error[index]))


def curves_csv(curves: list[Curve], axes: Axes) -> bytes:
    """Return curves as CSV: one row per curve and point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["curve", axes.x_column, axes.y_column, "standard_error", "runs"])
    for curve in curves:
        means, errors = curve.mean
        for x, mean, error in zip(curve.x, means, errors, strict=True):
            shown = "" if math.isnan(error) else repr(float(error))
            writer.writerow([curve.label, x.item(), repr(float(mean)), shown, len(curve.values)])
    return text.getvalue().encode()
