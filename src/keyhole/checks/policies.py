"""What every policy must do: give probabilities that depend on the visitor alone."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keyhole.base.errors import FloatArray
from keyhole.checks.base import SEED, name_of, require
from keyhole.policies import POLICIES
from keyhole.policies.base import Policy
from keyhole.policies.files import load_policy, save_policy

_ROUNDING = 1e-12


def check_probabilities(policy: Policy, visitors: FloatArray) -> None:
    """Check that every visitor has a probability of each ad, which sum to 1."""
    given = policy.probabilities(visitors)
    wanted = (len(visitors), policy.n_actions)
    require(
        given.shape == wanted,
        f"{name_of(policy)} must give visitors by ads {wanted}, got shape {given.shape}.",
    )
    require(
        bool(np.isfinite(given).all() and (given >= 0.0).all()),
        f"{name_of(policy)} must give probabilities that are finite and not negative.",
    )
    sums = given.sum(axis=1)
    require(
        bool((np.abs(sums - 1.0) <= _ROUNDING).all()),
        f"Probabilities of {name_of(policy)} must sum to 1 for every visitor, got "
        f"{sums[np.argmax(np.abs(sums - 1.0))]}.",
    )


def check_visitors_are_independent(policy: Policy, visitors: FloatArray) -> None:
    """Check that a visitor gets the same when asked again, alone, and in another order."""
    kept = visitors.copy()
    given = policy.probabilities(visitors)
    require(np.array_equal(visitors, kept), f"{name_of(policy)} must leave contexts as they are.")
    require(
        np.array_equal(policy.probabilities(visitors), given),
        f"{name_of(policy)} must give the same probabilities when it is asked again.",
    )
    alone = np.concatenate([policy.probabilities(visitor[None]) for visitor in visitors])
    backwards = policy.probabilities(np.ascontiguousarray(visitors[::-1]))[::-1]
    for other in (alone, backwards):
        require(
            bool(np.allclose(other, given, rtol=0.0, atol=_ROUNDING)),
            f"{name_of(policy)} must not let a visitor's probabilities depend on other visitors.",
        )


def check_file_round_trip(policy: Policy, visitors: FloatArray) -> None:
    """Check that a policy read from its file gives the same to the last bit.

    Files hold the policies of the package; one of your own has none.
    """
    if type(policy) not in POLICIES.values():
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        save_policy(policy, path)
        again = load_policy(path)
    require(
        type(again) is type(policy)
        and np.array_equal(again.probabilities(visitors), policy.probabilities(visitors)),
        f"{name_of(policy)} must give the same probabilities after it is saved and loaded.",
    )


POLICY_CHECKS: tuple[Callable[[Policy, FloatArray], None], ...] = (
    check_probabilities,
    check_visitors_are_independent,
    check_file_round_trip,
)


def check_policy(policy: Policy, n_features: int = 3, n_visitors: int = 50) -> None:
    """Run every check over a policy, on random contexts of so many features."""
    visitors = np.random.default_rng(SEED).normal(size=(n_visitors, n_features))
    for check in POLICY_CHECKS:
        check(policy, visitors)
