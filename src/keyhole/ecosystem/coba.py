"""Logs as coba's environments, and policies and rankers as its learners.

coba takes whatever has the right methods, so these classes are its environments and learners
without being made of it. It must be there only when an environment is read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from keyhole.base.errors import FloatArray, InvalidInput, check_seed
from keyhole.contracts.lists import Impression
from keyhole.contracts.rankers import Ranker
from keyhole.contracts.registry import registered_name
from keyhole.data.bandit.log import BanditLog
from keyhole.policies.base import Policy

_PLACE = "position"


class LoggedEnvironment:
    """A log as an environment of ``LoggedInteraction``, one per row and in their order.

    Actions are called by their names, or by their numbers where they have none. Positions are
    kept where the log has several.
    """

    def __init__(self, log: BanditLog) -> None:
        self.log = log

    @property
    def params(self) -> dict[str, Any]:
        """What coba's tables say about it."""
        return {"env_type": "keyhole log", "rows": len(self.log), "actions": self.log.n_actions}

    def read(self) -> Iterator[Any]:
        """Yield the interactions."""
        from coba.primitives import LoggedInteraction

        log = self.log
        names: Sequence[Any] = log.action_names or range(log.n_actions)
        actions, has_places = list(names), bool(log.positions.any())
        for row in range(len(log)):
            place = {_PLACE: int(log.positions[row])} if has_places else {}
            yield LoggedInteraction(
                log.contexts[row].tolist(),
                actions[log.actions[row]],
                float(log.rewards[row]),
                float(log.propensities[row]),
                actions=actions,
                **place,
            )


def log_of(environment: Any, *, feature_names: Sequence[str] | None = None) -> BanditLog:
    """Return the log of an environment, or of any logged interactions.

    Every interaction must have an action, a reward and a probability, and the same actions as all
    others. Contexts may be None, a number, a row of numbers, or a mapping of names to numbers: what
    is not named is 0.
    """
    interactions = environment.read() if hasattr(environment, "read") else environment
    rows = list(interactions)
    if not rows:
        raise InvalidInput("An environment must have at least one interaction, got none.")
    actions = list(rows[0].get("actions") or [])
    for number, row in enumerate(rows):
        missing = {"action", "reward", "probability", "actions"} - {
            name for name, value in row.items() if value is not None
        }
        if missing:
            raise InvalidInput(
                f"Interaction {number} must have {', '.join(sorted(missing))}, got none."
            )
        if list(row["actions"]) != actions:
            raise InvalidInput(
                f"Interaction {number} must have the actions of the first, got others."
            )
    contexts, names = _contexts([row.get("context") for row in rows])
    numbered = actions == list(range(len(actions)))
    return BanditLog.of(
        contexts,
        [actions.index(row["action"]) for row in rows],
        [row["reward"] for row in rows],
        [row["probability"] for row in rows],
        n_actions=len(actions),
        positions=[row.get(_PLACE, 0) for row in rows],
        action_names=None if numbered else [str(action) for action in actions],
        feature_names=names if feature_names is None else feature_names,
    )


class PolicyLearner:
    """A policy as a learner that has learnt: it draws actions from its probabilities.

    Parameters
    ----------
    seed
        Seed of what it draws.
    """

    def __init__(self, policy: Policy, *, seed: int = 0) -> None:
        self.policy = policy
        self.draws = np.random.default_rng(check_seed(seed))

    @property
    def params(self) -> dict[str, Any]:
        """What coba's tables say about it."""
        return {"family": f"keyhole {registered_name(type(self.policy))}"}

    def _chances(self, context: Any, actions: Sequence[Any]) -> FloatArray:
        if len(actions) != self.policy.n_actions:
            raise InvalidInput(
                f"There must be the {self.policy.n_actions} actions of the policy, got "
                f"{len(actions)}."
            )
        return self.policy.probabilities([_numbers(context)])[0]

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """Return how likely the policy is to take an action."""
        return float(self._chances(context, actions)[list(actions).index(action)])

    def predict(self, context: Any, actions: Sequence[Any]) -> dict[str, tuple[Any, float]]:
        """Return the action to take and its probability."""
        chances = self._chances(context, actions)
        drawn = int(self.draws.choice(len(actions), p=chances / chances.sum()))
        return {"action_prob": (actions[drawn], float(chances[drawn]))}

    def learn(self, context: Any, action: Any, reward: float, probability: float) -> None:
        """Leave the policy as it is."""


class RankerLearner:
    """A ranker of one list as a learner: its first item is the action, the reward its relevance.

    Contexts are not looked at, and the ranker must learn from its first position alone. The
    probability is that of the first item where the ranker knows it, and None elsewhere.
    """

    def __init__(self, ranker: Ranker) -> None:
        if ranker.n_features or ranker.depth > 1:
            raise InvalidInput(
                f"`ranker` must be one of a fixed list that learns from its first position, got "
                f"{type(ranker).__name__}, which needs {ranker.depth} and {ranker.n_features} "
                f"features."
            )
        self.ranker = ranker

    @property
    def params(self) -> dict[str, Any]:
        """What coba's tables say about it."""
        return {"family": f"keyhole {registered_name(type(self.ranker))}"}

    def predict(self, context: Any, actions: Sequence[Any]) -> tuple[Any, dict[str, Impression]]:
        """Return the action to take and its probability, and the list shown for :meth:`learn`."""
        if len(actions) != self.ranker.n_items:
            raise InvalidInput(
                f"There must be the {self.ranker.n_items} actions of the ranker, got "
                f"{len(actions)}."
            )
        shown = self.ranker.rank()
        chances = self.ranker.chances(shown)
        chance = None if chances is None else float(chances[0])
        return {"action_prob": (actions[shown.ranking[0]], chance)}, {"shown": shown}

    def learn(
        self, context: Any, action: Any, reward: float, probability: float, shown: Impression
    ) -> None:
        """Learn from the reward of the first item."""
        self.ranker.update(shown, [reward])


def _numbers(context: Any) -> list[float]:
    if context is None:
        return []
    if isinstance(context, Real):
        return [float(context)]
    if isinstance(context, Mapping) or not isinstance(context, Iterable):
        raise InvalidInput(f"A context must be a row of numbers, got {type(context).__name__}.")
    return [float(value) for value in context]


def _contexts(given: Sequence[Any]) -> tuple[FloatArray, list[str] | None]:
    if not isinstance(given[0], Mapping):
        return np.array([_numbers(context) for context in given]), None
    names = list(dict.fromkeys(str(name) for context in given for name in context))
    column = {name: index for index, name in enumerate(names)}
    contexts = np.zeros((len(given), len(names)))
    for row, context in enumerate(given):
        for name, value in context.items():
            contexts[row, column[str(name)]] = value
    return contexts, names
