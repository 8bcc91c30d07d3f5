"""What a game leaves behind: curves of score and regret."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keyhole.base.display import Described, Description
from keyhole.base.errors import FloatArray, IntArray, InvalidInput, LibraryMissing, check_integer
from keyhole.base.lazy import named
from keyhole.contracts.rankers import Ranker
from keyhole.game.log import Log
from keyhole.game.run_end import RunEnd
from keyhole.game.trace_files import columns, read_trace, write_table, write_trace
from keyhole.rankers import of_state

_FITTED_FROM = 0.1
_PLOT = "keyhole.lab.figures.plots:plot"


class RunMean(NamedTuple):
    """A mean over runs and its standard error (NaN for a single run)."""

    mean: float
    error: float

    def __str__(self) -> str:
        error = "" if np.isnan(self.error) else f" ± {self.error:.2g}"
        return f"{self.mean:.4g}{error}"


class Slope(NamedTuple):
    """A log-log slope with its 95 % interval (NaN for a single run)."""

    value: float
    low: float
    high: float


def log_log_slope(rounds: IntArray, regret: FloatArray) -> Slope:
    """Return the slope of log regret on log round over the last nine tenths of a game.

    1 is linear regret, 2/3 and 1/2 the rates of the theory. The interval is a bootstrap over
    runs; the slope is NaN where mean regret is not positive or not known.
    """
    late = rounds >= _FITTED_FROM * rounds[-1]
    log_rounds, curves = np.log(rounds[late]), regret[:, late]
    slope = partial(_slope, log_rounds)
    value = slope(curves.mean(axis=0))
    if np.isnan(value):
        return Slope(value, float("nan"), float("nan"))
    return Slope(value, *interval_over_runs(slope, curves))


def interval_over_runs(
    statistic: Callable[[FloatArray], float], per_run: FloatArray, *, n_resamples: int = 1000
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a statistic of the mean over runs (rows).

    Resamples without a value (NaN) are left out; the interval of a single run is NaN.
    """
    n_runs = len(per_run)
    if n_runs < 2:
        return float("nan"), float("nan")
    picks = np.random.default_rng(0).integers(n_runs, size=(n_resamples, n_runs))
    resampled = [statistic(per_run[pick].mean(axis=0)) for pick in picks]
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return float(low), float(high)


def _over_runs(values: FloatArray) -> RunMean:
    n_runs = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n_runs)) if n_runs > 1 else float("nan")
    return RunMean(float(values.mean()), error)


def mean_and_error(per_run: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard error over runs (rows) of each column; NaN for a single run."""
    n_runs = len(per_run)
    error = np.full(per_run.shape[1], np.nan)
    if n_runs > 1:
        error = per_run.std(axis=0, ddof=1) / np.sqrt(n_runs)
    return per_run.mean(axis=0), error


def _slope(log_rounds: FloatArray, curve: FloatArray) -> float:
    if len(log_rounds) < 2 or not bool((curve > 0.0).all()):
        return float("nan")
    return float(np.polyfit(log_rounds, np.log(curve), 1)[0])


@dataclass(frozen=True, repr=False)
class Trace(Described):
    """Totals at checkpoints of one or more runs of a game.

    ``rounds`` counts the rounds played at each checkpoint; ``scores``, ``best`` and ``greedy`` are
    (runs, checkpoints): what was scored in total, what the best fixed ranking (of the
    rounds so far, or of the whole game if ``comparator`` is ``final``) would have scored, and what
    would have been scored without exploring (NaN where nobody asked).
    ``exact`` says how the best ranking was found: it was ``sorted``, or all were tried
    (``exhaustive``); by a ``local`` search, which may miss the best one; or not at all (``none``).
    ``states`` and ``logs`` are those of the runs, and ``ends`` what a later call goes on from.
    ``ranker``, ``world``, ``measure`` and ``sees`` say what was played, each in words.

    Examples
    --------
    >>> from keyhole import Flips, RTopK, play
    >>> play(RTopK(5, horizon=1000), Flips(5, n_relevant=2), rounds=1000, runs=2)
    Trace
      ranker          RTopK(n_items=5, horizon=1000)
      world           Flips(n_items=5, n_relevant=2)
      measure         DCG
      sees            top(1)
      rounds          1,000
      runs            2
      average score   ...
      average regret  ... ± ...
    """

    rounds: IntArray
    scores: FloatArray
    best: FloatArray
    is_loss: bool
    comparator: str
    exact: str
    states: tuple[dict[str, Any], ...]
    logs: tuple[Log, ...]
    seconds: float
    greedy: FloatArray = field(default_factory=lambda: np.array(np.nan))
    ends: tuple[RunEnd, ...] = ()
    ranker: str = ""
    world: str = ""
    measure: str = ""
    sees: str = ""

    def __post_init__(self) -> None:
        if self.greedy.ndim == 0:  # nobody asked
            object.__setattr__(self, "greedy", np.full(self.scores.shape, self.greedy))

    @classmethod
    def of(
        cls,
        rounds: IntArray,
        ends: Sequence[RunEnd],
        is_loss: bool,
        comparator: str,
        exact: str,
        *,
        greedy: bool,
        seconds: float,
        **played: str,
    ) -> "Trace":
        """Return the curves of runs that have just been played, and what was ``played``."""
        scores = np.array([end.scores for end in ends])
        return cls(
            rounds,
            scores,
            np.array([end.best for end in ends]),
            is_loss,
            comparator,
            exact,
            tuple(end.state for end in ends),
            tuple(end.log for end in ends if end.log is not None),
            seconds,
            np.array([end.greedy for end in ends]) if greedy else np.full(scores.shape, np.nan),
            tuple(ends),
            **played,
        )

    def followed_by(self, rest: "Trace") -> "Trace":
        """Return the curves of this part of some games and of the rest of them as one."""
        whole = rest.best.shape[1] > rest.scores.shape[1]  # against the best of the whole game
        logs = zip(self.logs, rest.logs, strict=False)
        return replace(
            rest,
            rounds=np.concatenate([self.rounds, rest.rounds]),
            scores=np.concatenate([self.scores, rest.scores], axis=1),
            best=rest.best if whole else np.concatenate([self.best, rest.best], axis=1),
            greedy=np.concatenate([self.greedy, rest.greedy], axis=1),
            logs=tuple(early.followed_by(late) for early, late in logs),
            seconds=self.seconds + rest.seconds,
        )

    def _described(self) -> Description:
        known = {
            "ranker": self.ranker,
            "world": self.world,
            "measure": f"{self.measure} (a loss)" if self.is_loss else self.measure,
            "sees": self.sees,
        }
        rows = [(name, text) for name, text in known.items() if getattr(self, name)]
        rows += [("rounds", f"{self.rounds[-1]:,}"), ("runs", f"{self.n_runs:,}")]
        averages = {
            "average score": self.average_score,
            "without exploring": self.average_greedy_score,
            "average regret": self.average_regret,
        }
        rows += [(name, str(found)) for name, found in averages.items() if not np.isnan(found.mean)]
        if self.regret_is_lower_bound:
            rows.append(("", "at least: a better fixed ranking may exist"))
        return Description("Trace", rows)

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.scores)

    @property
    def regret(self) -> FloatArray:
        """Total regret by run and checkpoint; NaN where the best ranking is not known.

        A lower bound where :attr:`regret_is_lower_bound`.
        """
        return self.scores - self.best if self.is_loss else self.best - self.scores

    @property
    def regret_is_lower_bound(self) -> bool:
        """Whether a better fixed ranking may exist, so that regret may be larger than it says."""
        return self.exact == "local"

    @property
    def average_regret(self) -> RunMean:
        """Regret per round at the end, over the runs."""
        return _over_runs(self.regret[:, -1] / self.rounds[-1])

    @property
    def average_score(self) -> RunMean:
        """Score per round at the end, over the runs."""
        return _over_runs(self.scores[:, -1] / self.rounds[-1])

    @property
    def average_greedy_score(self) -> RunMean:
        """Score per round at the end had it never explored, over the runs."""
        return _over_runs(self.greedy[:, -1] / self.rounds[-1])

    @property
    def best_fixed_score(self) -> RunMean:
        """Score per round of the best fixed ranking, over the runs."""
        return _over_runs(self.best[:, -1] / self.rounds[-1])

    def curve(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return rounds, mean regret per round, and its standard error over the runs."""
        return self.rounds, *mean_and_error(self.regret / self.rounds)

    def plot(
        self,
        ax: Any = None,
        *,
        label: str | None = None,
        log_x: bool = False,
        log_y: bool = False,
    ) -> Any:
        """Draw regret per round, or the score where regret is not known, and return the axes.

        ``keyhole.plot(a, b)`` draws several; see :func:`~keyhole.lab.figures.plots.plot` for the
        parameters. Bands are two standard errors over the runs.
        """
        labels = None if label is None else [label]
        return named(_PLOT)(self, ax=ax, labels=labels, log_x=log_x, log_y=log_y)

    def drawing(self, label: str | None = None) -> Any:
        """Return the curves that :meth:`plot` draws, labelled by the ranker if nobody says how."""
        return named("keyhole.lab.figures.drawings:of_trace")(self, label)

    def slope(self) -> Slope:
        """Return the log-log slope of regret; see :func:`log_log_slope`."""
        return log_log_slope(self.rounds, self.regret)

    def learnt(self, run: int = 0) -> Ranker:
        """Return the ranker of a run with all that it has learnt, to rank with or to save.

        Examples
        --------
        >>> from keyhole import Flips, RTopK, play
        >>> trace = play(RTopK(5, horizon=1000), Flips(5, n_relevant=2), rounds=1000)
        >>> sorted(trace.learnt().best()[:2])
        [3, 4]
        """
        if not self.states:
            raise InvalidInput("A trace must be one that `play` returned: this one has no state.")
        last = len(self.states) - 1
        return of_state(self.states[check_integer(run, "`run`", at_least=0, at_most=last)])

    # ----------------------------------------------------------------------- files and tables

    def to_frame(self) -> Any:
        """Return the curves as a pandas DataFrame, a row for each run and checkpoint.

        Its columns are ``run`` and ``round``; ``score``, ``best``, ``greedy`` and ``regret``, which
        are totals up to that round (NaN where not known); and ``ranker``, ``world``, ``measure``
        and ``sees``, the same in every row: frames of several games can be put together.
        """
        try:
            import pandas
        except ImportError:
            raise LibraryMissing("Frames need pandas", "frames") from None
        return pandas.DataFrame(columns(self))

    def to_csv(self, path: Path | str) -> None:
        """Write what :meth:`to_frame` gives as CSV, every number exactly; pandas is not needed."""
        write_table(path, columns(self))

    def save(self, path: Path | str) -> None:
        """Write all of it to a file of plain arrays (.npz), whole or not at all.

        Examples
        --------
        >>> import tempfile
        >>> from keyhole import Flips, RTopK, Trace, play
        >>> ranker, world = RTopK(5, horizon=1000), Flips(5, n_relevant=2)
        >>> path = Path(tempfile.mkdtemp()) / "first.npz"
        >>> play(ranker, world, rounds=400).save(path)
        >>> whole = play(ranker, world, rounds=600, start=Trace.load(path))
        >>> whole.average_regret.mean == play(ranker, world, rounds=1000).average_regret.mean
        True
        """
        write_trace(path, self)

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Return the trace that :meth:`save` wrote, from which a game can go on."""
        return cls(**read_trace(path))
