"""Logs of the Open Bandit Dataset and the Open Bandit Pipeline, and of any known form."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.base.errors import FloatArray, InvalidInput
from keyhole.data.bandit.files import bandit_csv, read_bandit_parquet
from keyhole.data.bandit.impressions import read_events
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.tables import (
    CsvFile,
    Sheet,
    log_of_csv,
    open_csv,
    read_sheet,
    write_csv,
)

OPEN_BANDIT = ("item_id", "position", "click", "propensity_score")
_USER = "user_feature_"
_AFFINITY = "user-item_affinity_"


def read_bandit(
    path: Path | str,
    *,
    n_actions: int | None = None,
    action_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
) -> BanditLog:
    """Read a log from a file: Parquet and .ndjson by its ending, Open Bandit by its header, or CSV.

    ``feature_names`` are what an Open Bandit file is to have, see :func:`read_open_bandit`; the
    other files name their features themselves.
    """
    if Path(path).suffix == ".parquet":
        return read_bandit_parquet(path, n_actions=n_actions, action_names=action_names)
    if Path(path).suffix == ".ndjson":
        return read_events(path, n_actions=n_actions, action_names=action_names)
    file = open_csv(path)
    if is_open_bandit(file):
        return _open_bandit(file, n_actions, feature_names, affinities=False)
    return bandit_csv(file, n_actions=n_actions, action_names=action_names)


def is_open_bandit(file: CsvFile) -> bool:
    """Return whether a CSV file has the columns of the Open Bandit Dataset."""
    return set(OPEN_BANDIT) <= set(file.header)


def read_open_bandit(
    path: Path | str,
    *,
    items: Path | str | None = None,
    feature_names: Sequence[str] | None = None,
    affinities: bool = False,
) -> BanditLog:
    """Read a file of the Open Bandit Dataset: items shown on three places of a fashion site.

    Parameters
    ----------
    items
        The file of item features: as many actions as it has items. Without it there are as many
        as the log has affinity columns, or shows.
    feature_names
        Features to make, in this order: those of another file, so that a policy can read both.
        A category that is not among them is zero everywhere.
    affinities
        Whether the user-item affinities are features too.

    Notes
    -----
    Hashed user features become one column per category and feature, without the first category,
    as the Open Bandit Pipeline has them; numbers stay. Positions 1 to 3 become 0 to 2.
    """
    n_actions = None if items is None else read_sheet(open_csv(items)).n_rows
    return _open_bandit(open_csv(path), n_actions, feature_names, affinities)


def _open_bandit(file: CsvFile, *options: Any, **more: Any) -> BanditLog:
    def is_text(name: str) -> bool:
        return name not in OPEN_BANDIT and not name.startswith(_AFFINITY)

    return log_of_csv(
        file, lambda sheet: _log_of_open_bandit(sheet, *options, **more), is_text=is_text
    )


def _log_of_open_bandit(
    sheet: Sheet, n_actions: int | None, feature_names: Sequence[str] | None, affinities: bool
) -> BanditLog:
    sheet.need(OPEN_BANDIT)
    beside = sum(name.startswith(_AFFINITY) for name in sheet.names)
    columns: dict[str, FloatArray] = {}
    for name in sheet.names:
        if name.startswith(_USER):
            columns.update(_user_feature(sheet, name, keep_first=feature_names is not None))
        elif affinities and name.startswith(_AFFINITY):
            columns[name] = sheet.numbers(name)
    if feature_names is not None:
        nothing = np.zeros(sheet.n_rows)
        columns = {name: columns.get(name, nothing) for name in feature_names}
    contexts = np.column_stack(list(columns.values())) if columns else np.empty((sheet.n_rows, 0))
    positions = sheet.whole("position")
    if positions.min() < 1:
        row = int(np.argmin(positions))
        raise InvalidInput(f"{sheet.place(row)}: a position counts from 1, got {positions[row]}.")
    return sheet.log(
        contexts,
        sheet.whole("item_id"),
        sheet.numbers("click"),
        sheet.numbers("propensity_score"),
        n_actions=n_actions or beside or None,
        positions=positions - 1,
        feature_names=list(columns),
        times=_times(sheet),
    )


def _times(sheet: Sheet) -> FloatArray | None:
    """Return when rows were logged, where that can be read; estimates do without it."""
    try:
        return sheet.moments("timestamp") if "timestamp" in sheet.names else None
    except InvalidInput:
        return None


def _user_feature(sheet: Sheet, name: str, keep_first: bool) -> dict[str, FloatArray]:
    if sheet.is_numeric(name):
        return {name: sheet.numbers(name)}
    given = np.array(sheet.cells(name))
    return {
        f"{name}={category}": (given == category).astype(np.float64)
        for category in sorted(set(given.tolist()))[0 if keep_first else 1 :]
    }


def to_open_bandit_pipeline(
    log: BanditLog, *, action_context: ArrayLike | None = None
) -> dict[str, Any]:
    """Return a log as the Open Bandit Pipeline's ``bandit_feedback``.

    Parameters
    ----------
    action_context
        Features of the actions, which a log has none of; by default each action is its own.

    Examples
    --------
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 1], propensities=[0.5, 0.5])
    >>> to_open_bandit_pipeline(log)["pscore"]
    array([0.5, 0.5])
    """
    of_actions = np.eye(log.n_actions) if action_context is None else np.array(action_context)
    if len(of_actions) != log.n_actions:
        raise InvalidInput(
            f"`action_context` must have a row for each of the {log.n_actions} actions, got "
            f"{len(of_actions)}."
        )
    return {
        "n_rounds": len(log),
        "n_actions": log.n_actions,
        "context": log.contexts.copy(),
        "action_context": of_actions,
        "action": log.actions.copy(),
        "position": log.positions.copy(),
        "reward": log.rewards.copy(),
        "expected_reward": None,
        "pscore": log.propensities.copy(),
    }


def from_open_bandit_pipeline(
    feedback: Mapping[str, Any], *, feature_names: Sequence[str] | None = None
) -> BanditLog:
    """Return the log that the Open Bandit Pipeline's ``bandit_feedback`` holds.

    What a log has no place for is left out: features of actions, expected rewards.

    Examples
    --------
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 1], propensities=[0.5, 0.5])
    >>> from_open_bandit_pipeline(to_open_bandit_pipeline(log)).rewards.tolist()
    [0.0, 1.0]
    """
    for name in ("context", "action", "reward", "pscore"):
        if feedback.get(name) is None:
            raise InvalidInput(f"bandit_feedback must have {name!r}, got none.")
    return BanditLog.of(
        feedback["context"],
        feedback["action"],
        feedback["reward"],
        feedback["pscore"],
        n_actions=feedback.get("n_actions"),
        positions=feedback.get("position"),
        feature_names=feature_names,
    )


def write_open_bandit(
    log: BanditLog, folder: Path | str, *, policy: str = "random", campaign: str = "all"
) -> Path:
    """Write a log where ``OpenBanditDataset(policy, campaign, data_path=folder)`` finds it.

    The file is ``folder/policy/campaign/campaign.csv``, with an ``item_context.csv`` beside it.
    The pipeline knows the policies ``random`` and ``bts`` and the campaigns ``all``, ``men`` and
    ``women``, whatever the log is of. Returns the path of the log.
    """
    target = Path(folder) / policy / campaign
    n_rows = len(log)
    # The pipeline sorts by time: numbers of one width keep the order of the rows.
    width = len(str(n_rows))
    write_csv(
        target / f"{campaign}.csv",
        {
            "": list(range(n_rows)),
            "timestamp": [f"{row:0{width}d}" for row in range(n_rows)],
            "item_id": log.actions.tolist(),
            "position": (log.positions + 1).tolist(),
            "click": log.rewards.tolist(),
            "propensity_score": log.propensities.tolist(),
            **{f"{_USER}{i}": log.contexts[:, i].tolist() for i in range(log.contexts.shape[1])},
        },
    )
    actions = list(range(log.n_actions))
    write_csv(
        target / "item_context.csv",
        {
            "": actions,
            "item_id": actions,
            "item_feature_0": [float(action) for action in actions],
            "item_feature_1": [log.name_of(action) for action in actions],
        },
    )
    return target / f"{campaign}.csv"
