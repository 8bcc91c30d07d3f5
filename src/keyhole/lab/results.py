"""What a played game leaves on disk: summaries, curves and cells to resume from."""

import csv
import hashlib
import io
import json
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import keyhole
from keyhole.compiled import source_stamp
from keyhole.errors import FloatArray, IntArray, InvalidInput
from keyhole.lab.spec import BuiltGame
from keyhole.trace import Estimate, Trace, mean_and_error


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays as lists, what is not finite as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp's own mode is for secrets
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_folder(path: Path) -> Path:
    """Return a folder that can be written to, made if it is not there, or raise."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{path} must be a folder to write to: {error.strerror}.") from None
    if not os.access(path, os.W_OK):
        raise InvalidInput(f"{path} must be a folder to write to: permission denied.")
    return path


def summary(game: BuiltGame, trace: Trace) -> dict[str, Any]:
    """Return the results of a game as plain data, ready for JSON."""
    rounds, means, errors = trace.curve()
    slope = trace.slope()
    n_played = int(trace.rounds[-1]) * trace.n_runs
    notes = list(game.notes)
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
            "spec": game.spec.as_dict(),
            "notes": notes,
            "seconds": trace.seconds,
            "rounds_per_second": n_played / trace.seconds if trace.seconds else None,
            "version": keyhole.__version__,
        }
    )


@dataclass(frozen=True)
class Curve:
    """Total regret at checkpoints, by run, as it is kept on disk."""

    label: str
    rounds: IntArray
    regret: FloatArray

    @classmethod
    def of(cls, label: str, trace: Trace) -> "Curve":
        """Return the curve of a trace."""
        return cls(label, trace.rounds, trace.regret)

    @property
    def average(self) -> tuple[FloatArray, FloatArray]:
        """Mean regret per round and its standard error, at each checkpoint."""
        return mean_and_error(self.regret / self.rounds)

    def at(self, round: int) -> Estimate:
        """Return the average regret at the last checkpoint up to a round."""
        index = int(np.searchsorted(self.rounds, round, side="right")) - 1
        if index < 0:
            raise InvalidInput(f"The curve {self.label!r} has no checkpoint up to round {round}.")
        mean, error = self.average
        return Estimate(float(mean[index]), float(error[index]))


def curves_csv(curves: list[Curve]) -> bytes:
    """Return curves as CSV: one row per curve and checkpoint."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["curve", "round", "average_regret", "standard_error", "runs"])
    for curve in curves:
        means, errors = curve.average
        for t, mean, error in zip(curve.rounds, means, errors, strict=True):
            shown = "" if math.isnan(error) else repr(float(error))
            writer.writerow([curve.label, int(t), repr(float(mean)), shown, len(curve.regret)])
    return text.getvalue().encode()


class CellStore:
    """Finished curves of a study, each found again only for the very same game and code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: dict[str, Any]) -> Path:
        text = json.dumps(plain({**key, "code": source_stamp()}), sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"

    def load(self, key: dict[str, Any], label: str) -> Curve | None:
        """Return the curve of a game that has been finished, or None."""
        try:
            with np.load(self._path(key), allow_pickle=False) as arrays:
                return Curve(label, arrays["rounds"], arrays["regret"])
        except (OSError, KeyError, ValueError, EOFError):
            return None

    def save(self, key: dict[str, Any], curve: Curve) -> None:
        """Keep a finished curve."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, rounds=curve.rounds, regret=curve.regret)
        write_atomically(self._path(key), buffer.getvalue())
