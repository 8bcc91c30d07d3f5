"""Policies on disk: plain arrays, never pickled."""

from pathlib import Path
from typing import Any

import numpy as np

from keyhole.base.errors import InvalidInput, check_choice
from keyhole.base.files import reading_arrays, write_arrays
from keyhole.contracts.registry import Table, registered_name
from keyhole.data.bandit.row_digests import SeenRows
from keyhole.policies import POLICIES, SCORERS
from keyhole.policies.base import Policy, ScorePolicy, Scorer

_FORMAT = 1


def _name_in(table: Table[Any], thing: Any) -> str:
    if type(thing) in table.values():
        return registered_name(type(thing))
    raise InvalidInput(
        f"A {table.noun} to save must be one of {', '.join(table)}, got {type(thing).__name__}."
    )


def save_policy(policy: Policy, path: Path | str) -> None:
    """Write a policy as plain arrays (.npz), with its names and the digests of its training rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from keyhole import LinearScorer
    >>> from keyhole.policies.base import EpsilonGreedy
    >>> path = Path(tempfile.mkdtemp()) / "policy.npz"
    >>> save_policy(EpsilonGreedy(LinearScorer([[1.0], [2.0]], [0.0, 0.5]), epsilon=0.2), path)
    >>> load_policy(path).probabilities([[1.0]]).tolist()
    [[0.2, 0.8]]
    """
    arrays: dict[str, Any] = {
        "format": np.array(_FORMAT),
        "policy": np.array(_name_in(POLICIES, policy)),
    }
    settings = {name: value for name, value in policy.settings.items() if name != "scorer"}
    arrays |= {f"policy.{name}": np.array(value) for name, value in settings.items()}
    if isinstance(policy, ScorePolicy):
        arrays["scorer"] = np.array(_name_in(SCORERS, policy.scorer))
        arrays |= {f"scorer.{name}": value for name, value in policy.scorer.arrays().items()}
        arrays |= _origin_of(policy.scorer)
    write_arrays(path, arrays)


def load_policy(path: Path | str) -> Policy:
    """Read a policy written by :func:`save_policy`.

    Files that were written before names and digests of rows were kept have neither.
    """
    with reading_arrays(path, "a policy saved by save_policy") as arrays:
        if int(arrays["format"]) != _FORMAT:
            raise InvalidInput(f"its format is {int(arrays['format'])}, not {_FORMAT}.")
        cls: Any = POLICIES[check_choice(str(arrays["policy"]), "policy", POLICIES)]
        settings = {name: value.item() for name, value in _part(arrays, "policy.").items()}
        if issubclass(cls, ScorePolicy):
            kind = SCORERS[check_choice(str(arrays["scorer"]), "scorer", SCORERS)]
            settings["scorer"] = _with_origin(kind.of_arrays(_part(arrays, "scorer.")), arrays)
        policy: Policy = cls(**settings)
    return policy


def _origin_of(scorer: Scorer) -> dict[str, Any]:
    """Return the names and the digests of rows that a scorer has, as arrays."""
    named = {"features": scorer.feature_names, "actions": scorer.action_names}
    arrays = {
        f"names.{what}": np.array(names, dtype=np.str_)
        for what, names in named.items()
        if names is not None
    }
    if scorer.seen_rows is not None:
        arrays |= {f"rows.{name}": value for name, value in scorer.seen_rows.arrays().items()}
    return arrays


def _with_origin(scorer: Scorer, arrays: dict[str, Any]) -> Scorer:
    names = {what: found.tolist() for what, found in _part(arrays, "names.").items()}
    rows = _part(arrays, "rows.")
    seen = SeenRows.of_arrays(rows) if rows else None
    return scorer.fitted_to(seen, names.get("features"), names.get("actions"))


def _part(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: v for name, v in arrays.items() if name.startswith(prefix)}
