"""What a played game leaves on disk: summaries and curves."""

import csv
import io
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import keyhole
from keyhole.base.errors import FloatArray, IntArray, InvalidInput
from keyhole.base.files import plain
from keyhole.experiment.description import BuiltExperiment
from keyhole.experiment.worlds import check_fixed
from keyhole.game.trace import RunMean, Trace, interval_over_runs, mean_and_error
from keyhole.lab.figures.panels import REGRET, Axes
from keyhole.measures import measure as named_measure

__all__ = [
    "AT_THE_END", "REGRET", "Axes", "Curve", "curves_csv", "list_axes", "play_regret",
    "play_to_the_end", "summary",
]  # fmt: skip

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


def play_regret(label: str, built: BuiltExperiment, report: Any = None) -> Curve:
    """Return the average regret of each run, round by round; one fixed list alone has it."""
    check_fixed(built.experiment.world)
    return Curve.of(label, built.play(report))


def play_to_the_end(label: str, built: BuiltExperiment, report: Any = None) -> Curve:
    """Return the average regret of each run over all rounds."""
    whole = play_regret(label, built, report)
    return replace(whole, x=whole.x[-1:], values=whole.values[:, -1:])


def list_axes(measure: str) -> Axes:
    """Return the axes of running means of a measure."""
    better = "lower is better" if named_measure(measure).is_loss else "higher is better"
    return Axes("list t", "mean of the lists up to t", "round", "average_score", better, False)


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


def _learnt_ranking(game: BuiltExperiment, trace: Trace) -> Any:
    """Return what the ranker of the first run would show at the end, without exploring."""
    with warnings.catch_warnings():  # what is odd about its settings was said when it was made
        warnings.simplefilter("ignore")
        return game.ranker.fresh().load_state_dict(trace.states[0]).best()


def summary(game: BuiltExperiment, trace: Trace) -> dict[str, Any]:
    """Return the results of a game as plain data, ready for JSON."""
    rounds, means, errors = trace.curve()
    slope = trace.slope()
    n_played = int(trace.rounds[-1]) * trace.n_runs
    notes = list(game.notes)
    if trace.regret_is_lower_bound:
        notes.append(
            f"regret is a lower bound: the best fixed ranking for {game.measure.label} is the best "
            f"that a local search found"
        )
    if trace.exact == "none":
        notes.append(
            f"regret is not known: the best fixed ranking for {game.measure.label} is found by "
            f"trying all rankings, which takes at most 8 items"
        )
    return plain(
        {
            "average_regret": trace.average_regret.mean,
            "average_regret_error": trace.average_regret.error,
            "average_score": trace.average_score.mean,
            "average_score_error": trace.average_score.error,
            "best_fixed_score": trace.best_fixed_score.mean,
            "slope": slope.value,
            "slope_interval": [slope.low, slope.high],
            "curve": [[int(t), float(y)] for t, y in zip(rounds, means, strict=True)],
            "curve_error": [float(e) for e in errors],
            "measure": str(game.measure),
            "is_loss": trace.is_loss,
            "reveal": str(game.reveal),
            "item_names": game.world.item_names,
            "learnt_ranking": _learnt_ranking(game, trace),
            "spec": game.experiment.as_dict(),
            "notes": notes,
            "seconds": trace.seconds,
            "rounds_per_second": n_played / trace.seconds if trace.seconds else None,
            "version": keyhole.__version__,
        }
    )
