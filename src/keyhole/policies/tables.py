"""Policies and scorers by name: one row each."""

from collections.abc import Mapping
from typing import Any

from keyhole.contracts.registry import Table
from keyhole.policies.base import Always, EpsilonGreedy, Greedy, Policy, Scorer, Softmax, Uniform
from keyhole.policies.forest import ForestScorer
from keyhole.policies.linear import LinearScorer

SCORERS: Table[Scorer] = Table("scorer", Scorer, {"linear": LinearScorer, "forest": ForestScorer})
POLICIES: Table[Policy] = Table(
    "policy",
    Policy,
    {
        "uniform": Uniform,
        "always": Always,
        "greedy": Greedy,
        "epsilon-greedy": EpsilonGreedy,
        "softmax": Softmax,
    },
)


def policy(name: str | Mapping[str, Any] | Policy, **settings: Any) -> Policy:
    """Return a policy by its name or spec; its ``scorer`` may be a spec too.

    Examples
    --------
    >>> scorer = {"name": "linear", "weights": [[1], [2]], "offsets": [0, 1]}
    >>> greedy = policy("greedy", scorer=scorer)
    >>> policy(greedy.spec).probabilities([[3.0]]).tolist()
    [[0.0, 1.0]]
    """
    if not isinstance(name, Policy):
        name, of_spec = POLICIES.read(name)
        settings = {**of_spec, **settings}
        if isinstance(settings.get("scorer"), Mapping):
            settings["scorer"] = SCORERS.make(settings["scorer"])
    return POLICIES.make(name, **settings)
