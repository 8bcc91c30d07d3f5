"""Logs of bandit feedback from CSV and Parquet files, and back.

Columns: ``action``, ``propensity``, ``reward``, a column ``x_NAME`` per feature, and where there is
such a thing ``position`` (from 0), ``time`` (numbers, or ISO 8601) and ``group`` (what rows belong
together). Actions are numbers from 0, or names.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput
from keyhole.data.bandit.impressions import COLUMNS as IMPRESSIONS, log_of_impressions
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.tables import (
    CsvFile,
    Sheet,
    log_of_csv,
    open_csv,
    read_parquet,
    write_csv,
    write_parquet,
)

FEATURE = "x_"
REQUIRED = ("action", "propensity", "reward")
_TEXT = ("action", "time", "group")
"""Columns that may hold something else than numbers."""
KNOWN = (*REQUIRED, "position", "time", "group")


def log_of_sheet(
    sheet: Sheet, *, n_actions: int | None = None, action_names: Sequence[str] | None = None
) -> BanditLog:
    """Return the log that a table in Keyhole's columns holds."""
    sheet.need(REQUIRED)
    for name in sheet.names:
        if name not in KNOWN and not name.startswith(FEATURE):
            raise InvalidInput(
                f"{sheet.path}: a column must be {', '.join(KNOWN)} or {FEATURE}NAME, got {name!r}."
            )
    propensities = sheet.numbers("propensity", missing="a propensity")
    rewards = sheet.numbers("reward", missing="a reward")
    numbered = action_names is None and sheet.is_numeric("action")
    features = [name for name in sheet.names if name.startswith(FEATURE)]
    contexts = np.empty((sheet.n_rows, len(features)))
    for index, name in enumerate(features):
        contexts[:, index] = sheet.numbers(name)
    return sheet.log(
        contexts,
        sheet.whole("action") if numbered else sheet.cells("action"),
        rewards,
        propensities,
        n_actions=n_actions,
        positions=sheet.whole("position") if "position" in sheet.names else None,
        action_names=action_names,
        feature_names=[name.removeprefix(FEATURE) for name in features],
        times=sheet.moments("time") if "time" in sheet.names else None,
        groups=sheet.cells("group") if "group" in sheet.names else None,
    )


def read_bandit_csv(
    path: Path | str, *, n_actions: int | None = None, action_names: Sequence[str] | None = None
) -> BanditLog:
    """Read a log from a CSV file, plain or compressed.

    Parameters
    ----------
    n_actions
        How many actions there are, where the log may not show the last of them.
    action_names
        All names of actions, in their order; without them names are sorted.
    """
    return bandit_csv(open_csv(path), n_actions=n_actions, action_names=action_names)


def bandit_csv(file: CsvFile, **options: Any) -> BanditLog:
    """Return the log of a CSV file in Keyhole's columns; options are :func:`log_of_sheet`'s."""
    return log_of_csv(file, partial(log_of_sheet, **options), is_text=_TEXT.__contains__)


def read_bandit_parquet(
    path: Path | str, *, n_actions: int | None = None, action_names: Sequence[str] | None = None
) -> BanditLog:
    """Read a log from a Parquet file with the columns of :func:`read_bandit_csv`.

    A table of impressions that ``keyhole db export`` wrote is one too: see
    :mod:`keyhole.data.bandit.impressions`.
    """
    sheet = read_parquet(path)
    make = log_of_impressions if set(IMPRESSIONS) <= set(sheet.names) else log_of_sheet
    return make(sheet, n_actions=n_actions, action_names=action_names)


def _columns(log: BanditLog) -> dict[str, Any]:
    names = log.feature_names or tuple(str(index) for index in range(log.contexts.shape[1]))
    named = log.action_names is not None
    return {
        "action": [log.name_of(action) for action in log.actions] if named else log.actions,
        "position": log.positions,
        **({} if log.times is None else {"time": log.times}),
        **({} if log.groups is None else {"group": log.groups}),
        "propensity": log.propensities,
        "reward": log.rewards,
        **{f"{FEATURE}{name}": log.contexts[:, i] for i, name in enumerate(names)},
    }


def write_bandit_csv(log: BanditLog, path: Path | str) -> None:
    """Write a log as CSV, gzipped if the name ends with .gz; reading it gives the same numbers."""
    write_csv(path, _columns(log))


def write_bandit_parquet(log: BanditLog, path: Path | str) -> None:
    """Write a log as Parquet, with the columns of :func:`write_bandit_csv`."""
    write_parquet(path, _columns(log))
