"""Logged bandit feedback: one of several actions was taken in a context, and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keyhole.errors import FloatArray, IntArray, InvalidInput, check_integer

_LARGEST = 1e75
"""Weights are rewards over propensities: their fourth powers are numbers yet."""
_LARGEST_FEATURE = 1e150
"""The square is a number yet."""
_ALWAYS_PLAUSIBLE = 10_000


class UnusableRow(InvalidInput):
    """A row that no log can have; readers of files say on which line it was."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"Row {row} of a BanditLog: {reason}.")
        self.row = row
        self.reason = reason


@dataclass(frozen=True)
class BanditLog:
    """Contexts, the action taken in each, its propensity and its reward, one row each.

    Parameters
    ----------
    contexts
        What was known before an action was taken, (n, n_features).
    actions
        The action taken, 0 to ``n_actions - 1``.
    rewards
        What came of it; 0 or 1 for clicks.
    propensities
        The probability with which the logging policy took that action in that context.
    n_actions
        How many actions there were to take, whether the log shows them or not.
    positions
        The place of the action on the page, from 0; all 0 where there is one place only.
    action_names, feature_names
        Names of actions and features, where they have any.

    Notes
    -----
    The arrays are checked, converted and made read-only once, here; whoever gets a log can rely on
    it. :meth:`of` fills in what is often left out.

    Examples
    --------
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 1], propensities=[0.5, 0.5])
    >>> len(log), log.n_actions, log.mean_reward
    (2, 2, 0.5)
    """

    contexts: FloatArray
    actions: IntArray
    rewards: FloatArray
    propensities: FloatArray
    n_actions: int
    positions: IntArray
    action_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_integer(self.n_actions, "`n_actions` of a BanditLog", at_least=1)
        columns: dict[str, Any] = {
            "contexts": _numbers(self.contexts, "contexts", 2),
            "rewards": _numbers(self.rewards, "rewards", 1),
            "propensities": _numbers(self.propensities, "propensities", 1),
            "actions": _whole(self.actions, "actions"),
            "positions": _whole(self.positions, "positions"),
        }
        n_rows = len(columns["actions"])
        if n_rows == 0:
            raise InvalidInput("A BanditLog must have at least one row.")
        for name, values in columns.items():
            if len(values) != n_rows:
                raise InvalidInput(
                    f"{name} of a BanditLog must have a row for each of the {n_rows} actions, got "
                    f"{len(values)}."
                )
            values.flags.writeable = False
            object.__setattr__(self, name, values)
        for name, length in (
            ("action_names", self.n_actions),
            ("feature_names", columns["contexts"].shape[1]),
        ):
            object.__setattr__(self, name, _names(getattr(self, name), name, length))
        _check_rows(self)

    @classmethod
    def of(
        cls,
        contexts: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        propensities: ArrayLike,
        *,
        n_actions: int | None = None,
        positions: ArrayLike | None = None,
        action_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "BanditLog":
        """Return a log of arrays, with as many actions as it shows or names, on one place.

        Actions are numbers from 0, or names: those of ``action_names``, or by default all that
        occur, sorted.

        Examples
        --------
        >>> log = BanditLog.of([[0.5], [0.1]], ["tea", "milk"], [0, 1], [0.5, 0.5])
        >>> log.actions.tolist(), log.action_names
        ([1, 0], ('milk', 'tea'))
        """
        taken, action_names = _numbered(actions, action_names, n_actions)
        if n_actions is None:
            n_actions = _actions_shown(taken) if action_names is None else len(action_names)
        return cls(
            contexts,  # type: ignore[arg-type]  # converted by the constructor
            taken,
            rewards,  # type: ignore[arg-type]
            propensities,  # type: ignore[arg-type]
            n_actions,
            np.zeros(len(taken), np.int64) if positions is None else positions,  # type: ignore[arg-type]
            None if action_names is None else tuple(action_names),
            None if feature_names is None else tuple(feature_names),
        )

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def mean_reward(self) -> float:
        """The value of the policy that wrote the log."""
        return float(self.rewards.mean())

    @property
    def is_binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        return bool(((self.rewards == 0.0) | (self.rewards == 1.0)).all())

    @property
    def is_uniform(self) -> bool:
        """Whether the logging policy took every action with the same probability."""
        return bool(np.allclose(self.propensities, 1.0 / self.n_actions, rtol=1e-9, atol=0.0))

    def rows(self, which: Any) -> "BanditLog":
        """Return the log of some rows, given by a mask or by indices."""
        return BanditLog(
            self.contexts[which],
            self.actions[which],
            self.rewards[which],
            self.propensities[which],
            self.n_actions,
            self.positions[which],
            self.action_names,
            self.feature_names,
        )

    def name_of(self, action: int) -> str:
        """Return what an action is called."""
        return str(action) if self.action_names is None else self.action_names[action]


def _actions_shown(taken: IntArray) -> int:
    """Return how many actions there are by the largest number among them, if that is plausible.

    Estimates keep a number for each action in each row: one large number must not claim a memory.
    """
    n_actions = int(taken.max(initial=0)) + 1
    if n_actions > max(_ALWAYS_PLAUSIBLE, 10 * len(taken)):
        raise UnusableRow(
            int(np.argmax(taken)),
            f"an action of {n_actions - 1} means {n_actions} actions, far more than rows "
            f"({len(taken)}): n_actions (keyhole evaluate: --actions) says so if there are",
        )
    return n_actions


def _numbered(
    actions: Any, names: Sequence[str] | None, n_actions: int | None
) -> tuple[IntArray, Sequence[str] | None]:
    """Return actions as numbers, and the names that they have if they are given by name."""
    cells = [] if getattr(actions, "dtype", np.dtype(object)).kind in "iufb" else list(actions)
    named = [isinstance(cell, str) for cell in cells]
    if not any(named):
        return _whole(actions, "actions"), names
    if not all(named):
        number, name = cells[named.index(False)], cells[named.index(True)]
        raise InvalidInput(
            f"actions of a BanditLog must be all numbers or all names, got {number!r} and {name!r}."
        )
    for row, cell in enumerate(cells):
        if not cell.strip():
            raise UnusableRow(row, "an action is missing")
    if names is None and all(is_number(cell) for cell in cells):
        return _whole(cells, "actions"), None
    if names is None:
        names = sorted(set(cells))
        if n_actions is not None and n_actions != len(names):
            raise InvalidInput(
                f"A BanditLog must name {n_actions} actions, got {len(names)}; give `action_names`."
            )
    index = {name: number for number, name in enumerate(names)}
    for row, cell in enumerate(cells):
        if cell not in index:
            known = ", ".join(names)[:200]
            raise UnusableRow(row, f"an action must be one of {known}, got {cell!r}")
    return np.array([index[cell] for cell in cells], dtype=np.int64), names


def _numbers(values: Any, name: str, n_dims: int) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        for row, cell in enumerate(values if np.iterable(values) else [values]):
            if n_dims == 1 and not is_number(cell):
                raise InvalidInput(
                    f"{name} of a BanditLog must be numbers, got {cell!r} in row {row}."
                ) from None
        raise InvalidInput(
            f"{name} of a BanditLog must be numbers in rows of one length."
        ) from None
    if array.ndim != n_dims:
        raise InvalidInput(
            f"{name} of a BanditLog must have {n_dims} dimensions, got {array.ndim}."
        )
    return array


def is_number(cell: Any) -> bool:
    """Return whether Python reads a number in a cell."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _whole(values: Any, name: str) -> IntArray:
    numbers = _numbers(values, name, 1)
    bad = ~(np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**53))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(
            f"{name} of a BanditLog must be whole numbers, got {numbers[row]} in row {row}."
        )
    return numbers.astype(np.int64)


def _names(names: Sequence[str] | None, name: str, length: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != length or len(set(names)) != length:
        raise InvalidInput(
            f"{name} of a BanditLog must be {length} different names, got {len(names)}."
        )
    return tuple(str(each) for each in names)


def _check_rows(log: BanditLog) -> None:
    fair = (log.propensities >= 1.0 / _LARGEST) & (log.propensities <= 1.0)
    rules: list[tuple[Any, Callable[[int], str]]] = [
        (
            (log.actions >= 0) & (log.actions < log.n_actions),
            lambda row: (
                f"an action must be between 0 and n_actions-1={log.n_actions - 1}, got "
                f"{log.actions[row]}"
            ),
        ),
        (
            log.positions >= 0,
            lambda row: f"a position must not be negative, got {log.positions[row]}",
        ),
        (
            fair,
            lambda row: (
                "a propensity is missing"
                if np.isnan(log.propensities[row])
                else f"a propensity must be above 0 and at most 1, got {log.propensities[row]:g}"
            ),
        ),
        (
            np.abs(log.rewards) <= _LARGEST,
            lambda row: f"a reward must be a {_size(log.rewards[row], _LARGEST)}",
        ),
        (
            (np.abs(log.contexts) <= _LARGEST_FEATURE).all(axis=1),
            lambda row: (
                "a number of a context must be a "
                + _size(
                    log.contexts[row][np.argmax(~(np.abs(log.contexts[row]) <= _LARGEST_FEATURE))],
                    _LARGEST_FEATURE,
                )
            ),
        ),
    ]
    for good, say in rules:
        if not good.all():
            row = int(np.argmin(good))
            raise UnusableRow(row, say(row))


def _size(number: float, largest: float) -> str:
    """Return what a number must be that it is not."""
    size = f" of a size up to {largest:g}" if np.isfinite(number) else ""
    return f"finite number{size}, got {number}"


def check_rewards_differ(log: BanditLog, purpose: str) -> None:
    """Raise unless a log has at least two different rewards: one class teaches nothing.

    Examples
    --------
    >>> log = BanditLog.of([[0.5], [0.1]], actions=[1, 0], rewards=[0, 0], propensities=[0.5, 0.5])
    >>> check_rewards_differ(log, "to compare")
    Traceback (most recent call last):
    ...
    keyhole.errors.InvalidInput: The rewards of a log must differ to compare, got 0 in all 2 rows.
    """
    if bool((log.rewards == log.rewards[0]).all()):
        raise InvalidInput(
            f"The rewards of a log must differ {purpose}, got {log.rewards[0]:g} in all {len(log)} "
            f"rows."
        )
