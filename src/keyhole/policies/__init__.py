"""Pick one of K: advertisements, chosen by what logged clicks taught; one row each."""

from collections.abc import Mapping
from typing import Any

from keyhole.contracts.registry import Table
from keyhole.policies.base import Policy, Scorer

SCORERS: Table[Scorer] = Table(
    "scorer",
    Scorer,
    {
        "linear": "keyhole.policies.linear:LinearScorer",
        "forest": "keyhole.policies.forest:ForestScorer",
    },
)
POLICIES: Table[Policy] = Table(
    "policy",
    Policy,
    {
        "uniform": "keyhole.policies.base:Uniform",
        "always": "keyhole.policies.base:Always",
        "greedy": "keyhole.policies.base:Greedy",
        "epsilon-greedy": "keyhole.policies.base:EpsilonGreedy",
        "softmax": "keyhole.policies.base:Softmax",
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
