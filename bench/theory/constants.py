"""How steep and how curved a surrogate can be found to be: a search that attacks its constants."""

from collections.abc import Callable

import numpy as np

from keyhole.base.errors import FloatArray, check_choice, check_number, check_seed
from keyhole.base.limits import check_length
from keyhole.surrogates.base import Surrogate

_STARTS = 12
_STEPS = 150
_PROBE = 1e-3
"""How far apart two gradients are taken."""

_SIZES: dict[str, Callable[[FloatArray], float]] = {
    "linf": lambda gradient: float(np.abs(gradient).sum()),
    "l2": lambda gradient: float(np.sqrt(np.square(gradient).sum())),
}


class _Attack:
    """Lists within some limits, moved at random to where a size is larger."""

    def __init__(self, n_items: int, max_grade: float, max_score: float, seed: int) -> None:
        self.limits = np.repeat([max_score, max_grade, 1.0], n_items).reshape(3, n_items)
        self.limits[0] -= _PROBE
        self.rng = np.random.default_rng(check_seed(seed))

    def start(self) -> FloatArray:
        """Return scores, grades and a direction: corners of what is allowed, or anything in it."""
        corners = self.rng.choice([-1.0, 1.0], self.limits.shape)
        anything = self.rng.uniform(-1.0, 1.0, self.limits.shape)
        spread = 10.0 ** self.rng.uniform(-3.0, 0.0) if self.rng.random() < 0.5 else 1.0
        point = np.where(self.rng.random() < 0.5, corners, anything)
        point[0] *= spread
        return self.inside(point * self.limits)

    def inside(self, point: FloatArray) -> FloatArray:
        point = np.clip(point, -self.limits, self.limits)
        point[1] = np.abs(point[1])
        return point

    def move(self, point: FloatArray) -> FloatArray:
        changed = self.rng.random(point.shape) < 1.5 / point.shape[1]
        size = 10.0 ** self.rng.uniform(-3.0, 0.0)
        to = point + size * self.limits * self.rng.uniform(-1.0, 1.0, point.shape)
        ends = self.limits * self.rng.choice([-1.0, 0.0, 1.0], point.shape)
        return self.inside(np.where(changed, ends if self.rng.random() < 0.3 else to, point))

    def worst(self, size: Callable[[FloatArray], float]) -> float:
        best = 0.0
        for _ in range(_STARTS):
            point = self.start()
            found = size(point)
            for _ in range(_STEPS):
                other = self.move(point)
                value = size(other)
                if value >= found:
                    point, found = other, value
            best = max(best, found)
        return best


def attained(
    surrogate: Surrogate,
    constant: str,
    n_items: int,
    *,
    max_grade: float = 1.0,
    max_score: float = 3.0,
    norm: str = "linf",
    seed: int = 0,
) -> float:
    """Return the largest slope or curvature that a search finds: at most the stated constant.

    Parameters
    ----------
    surrogate, n_items, max_grade, max_score, norm
        See :meth:`~keyhole.surrogates.base.Surrogate.lipschitz`; scores have to be bounded.
    constant
        ``lipschitz`` or ``smoothness``.
    seed
        Of the search: random lists, moved at random as long as that makes it larger.

    Examples
    --------
    >>> from keyhole.surrogates.listnet import ListNet
    >>> found = attained(ListNet(), "smoothness", 4, max_grade=4)
    >>> 0.9 < found <= ListNet().smoothness(4)
    True
    """
    check_choice(constant, "constant", ("lipschitz", "smoothness"))
    check_choice(norm, "norm", _SIZES)
    n_items = check_length(n_items, "`n_items`")
    max_grade = check_number(max_grade, "`max_grade`", at_least=0.0)
    max_score = check_number(max_score, "`max_score`", above=_PROBE)
    size_of = _SIZES[norm]

    def slope(point: FloatArray) -> float:
        return size_of(surrogate.gradient(point[0], point[1]))

    def curvature(point: FloatArray) -> float:
        scores, grades, along = point
        length = np.abs(along).max() if norm == "linf" else np.sqrt(np.square(along).sum())
        step = _PROBE * along / (length or 1.0)
        gap = surrogate.gradient(scores + step, grades) - surrogate.gradient(scores - step, grades)
        return size_of(gap) / (2.0 * _PROBE)

    attack = _Attack(n_items, max_grade, max_score, seed)
    return attack.worst(slope if constant == "lipschitz" else curvature)
