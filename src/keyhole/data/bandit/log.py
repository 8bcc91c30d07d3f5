"""Logged bandit feedback: one of several actions was taken in a context, and what came of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keyhole.base.display import Described, Description, counted, some_of
from keyhole.base.errors import FloatArray, IntArray, InvalidInput, check_integer
from keyhole.data.bandit.columns import (
    UnusableRow,
    different_names,
    is_number,
    numbers,
    seconds_of,
    whole,
)
from keyhole.data.bandit.splitting import Moment, first_rows

_LARGEST = 1e75
"""Weights are rewards over propensities: their fourth powers are numbers yet."""
_LARGEST_FEATURE = 1e150
"""The square is a number yet."""
_ALWAYS_PLAUSIBLE = 10_000


@dataclass(frozen=True, repr=False)
class BanditLog(Described):
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
    times
        When each action was taken: numbers that grow with time, or moments as ISO 8601 has them,
        which become seconds since 1970 (UTC where they name no zone).
    groups
        What rows belong together, such as the visitor of each; kept as text.

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
    times: FloatArray | None = None
    groups: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        check_integer(self.n_actions, "`n_actions` of a BanditLog", at_least=1)
        columns: dict[str, Any] = {
            "contexts": numbers(self.contexts, "contexts", 2),
            "rewards": numbers(self.rewards, "rewards", 1),
            "propensities": numbers(self.propensities, "propensities", 1),
            "actions": whole(self.actions, "actions"),
            "positions": whole(self.positions, "positions"),
        }
        if self.times is not None:
            columns["times"] = seconds_of(self.times)
        if self.groups is not None:
            columns["groups"] = np.array([str(group) for group in self.groups], dtype=np.str_)
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
            object.__setattr__(
                self, name, different_names(getattr(self, name), f"{name} of a BanditLog", length)
            )
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
        times: ArrayLike | None = None,
        groups: ArrayLike | None = None,
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
            times,  # type: ignore[arg-type]
            groups,  # type: ignore[arg-type]
        )

    def _described(self) -> Description:
        rows = [
            ("rewarded", f"{int((self.rewards != 0.0).sum()):,} (mean {self.mean_reward:.4g})"),
            ("actions", some_of(self.action_names or range(self.n_actions))),
            ("features", some_of(self.feature_names or range(self.contexts.shape[1]))),
            ("propensities", f"{self.propensities.min():.3g} to {self.propensities.max():.3g}"),
        ]
        if self.positions.any():
            rows.append(("positions", f"{int(self.positions.max()) + 1}"))
        if self.times is not None:
            rows.append(("times", f"{self.times.min():.10g} to {self.times.max():.10g}"))
        if self.groups is not None:
            rows.append(("groups", f"{len(np.unique(self.groups)):,}"))
        return Description(f"BanditLog of {counted(len(self), 'row')}", rows)

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
            None if self.times is None else self.times[which],
            None if self.groups is None else self.groups[which],
        )

    def split(
        self, share: float = 0.7, *, by: str = "time", at: Moment | None = None, seed: int = 0
    ) -> tuple["BanditLog", "BanditLog"]:
        """Return a part to train on and a part to judge on, both with all that belongs to them.

        Parameters
        ----------
        share
            How much of the log the first part is to have.
        by
            ``time``: the first part is what came first, and rows of one moment stay together, so
            that its share may differ a little. ``rows``: the same by the order of the rows, for a
            log that is in order and has no times. ``random``: rows dealt by chance; where the log
            has groups, whole groups.
        at
            The moment (by time) or the row (by rows) at which the second part begins, instead of a
            share.
        seed
            What is dealt by chance follows from it.

        Notes
        -----
        By time is what the future will be like: a policy is trained on the past. A log without
        times is refused, for nothing says that its rows are in order.

        Examples
        --------
        >>> log = BanditLog.of(np.zeros((4, 0)), [0, 1, 0, 1], [0, 1, 0, 0], [0.5] * 4,
        ...                    times=["2026-01-03", "2026-01-01", "2026-01-02", "2026-01-02"])
        >>> train, held_out = log.split(0.7)
        >>> train.actions.tolist(), held_out.actions.tolist()
        ([1, 0, 1], [0])
        >>> [len(part) for part in log.split(0.5, by="random")]
        [2, 2]
        """
        first = first_rows(self, share, by, at, seed)
        return self.rows(first), self.rows(~first)

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
        return whole(actions, "actions"), names
    if not all(named):
        number, name = cells[named.index(False)], cells[named.index(True)]
        raise InvalidInput(
            f"actions of a BanditLog must be all numbers or all names, got {number!r} and {name!r}."
        )
    for row, cell in enumerate(cells):
        if not cell.strip():
            raise UnusableRow(row, "an action is missing")
    if names is None and all(is_number(cell) for cell in cells):
        return whole(cells, "actions"), None
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
    keyhole.base.errors.InvalidInput: The rewards of a log must differ to compare, got 0 in \
all 2 rows.
    """
    if bool((log.rewards == log.rewards[0]).all()):
        raise InvalidInput(
            f"The rewards of a log must differ {purpose}, got {log.rewards[0]:g} in all {len(log)} "
            f"rows."
        )
