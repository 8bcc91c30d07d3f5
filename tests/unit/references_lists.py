"""The rankers of lists once more: gradients, estimates and steps, in plain NumPy."""

import math

import numpy as np

from tests.unit.references import RANKER, descending, discount, units

SEED, RUN = 11, 3
N_FEATURES = 4


def place_of(round):
    return SEED, RUN, RANKER, round


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def one_hot(item, n_items):
    return np.eye(n_items)[item]


# --------------------------------------------------------------------------- gradients by score


def slam(scores, grades, cutoff=None):
    """S2 for NDCG@n, the weights of one grade averaged."""
    best = descending(grades)
    weights = np.zeros(len(grades))
    weights[best] = (2.0 ** grades[best] - 1) * np.where(
        np.arange(len(grades)) < (cutoff or len(grades)), discount(len(grades)), 0.0
    )
    if weights.sum() > 0:
        weights /= weights.sum()
    for grade in set(grades):
        weights[grades == grade] = weights[grades == grade].mean()
    return hinges(scores, grades, weights)


def slam_ap(scores, grades):
    return hinges(scores, grades, (grades > 0) / max(1, (grades > 0).sum()))


def hinges(scores, grades, weights):
    gradient = np.zeros(len(grades))
    for item, weight in enumerate(weights):
        lower = [other for other in range(len(grades)) if grades[other] < grades[item]]
        if lower:
            best = max(lower, key=lambda other: (scores[other], -other))
            if 1 + scores[best] - scores[item] > 0:
                gradient[item] -= weight
                gradient[best] += weight
    return gradient


def worst_pair(scores, grades):
    """S3: the pair i, j with R_i > R_j and the largest s_j - s_i."""
    pairs = [
        (i, j) for i in range(len(grades)) for j in range(len(grades)) if grades[i] > grades[j]
    ]
    gradient = np.zeros(len(grades))
    if pairs:
        i, j = max(pairs, key=lambda pair: (scores[pair[1]] - scores[pair[0]], -pair[0], -pair[1]))
        if 1 + scores[j] - scores[i] > 0:
            gradient[i], gradient[j] = -1, 1
    return gradient


def listnet(scores, grades):
    return softmax(scores) - softmax(grades)


# --------------------------------------------------------------------------- estimates of A7


def kl(scores, top, grades, propensity):
    item = top[0]
    return (math.exp(scores[item]) - math.exp(grades[0])) / propensity * one_hot(item, len(scores))


def squared(scores, top, grades, propensity):
    return 2 * (scores - grades[0] / propensity * one_hot(top[0], len(scores)))


def smooth_dcg(scores, top, grades, propensity):
    """S8 descends minus the gain: G p_i (p - e_i) / eps of the shown document."""
    chances = softmax(scores / 0.1)
    gain = (2.0 ** grades[0] - 1) * chances[top[0]] / 0.1
    return gain * (chances - one_hot(top[0], len(scores))) / propensity


def ranksvm(scores, top, grades, propensity):
    gradient = np.zeros(len(scores))
    if len(scores) > 1 and grades[0] != grades[1]:
        better, worse = (top[0], top[1]) if grades[0] > grades[1] else (top[1], top[0])
        if 1 + scores[worse] > scores[better]:
            gradient[better], gradient[worse] = -1, 1
    return gradient / propensity


# --------------------------------------------------------------------------- references


class Steps:
    """Weights that go down a gradient and stay in a ball."""

    def __init__(self, kind, rate, power, radius, row_norm=1.0):
        self.weights, self.squares = np.zeros(N_FEATURES), np.zeros(N_FEATURES)
        self.kind, self.power, self.radius = kind, power, radius
        # The same weights as on documents divided by the norm, divided by it.
        self.rate = rate / (row_norm if kind == "adagrad" else row_norm**2)

    def down(self, gradient, round):
        if self.kind == "adagrad":
            self.squares += gradient**2
            root = np.sqrt(np.where(self.squares > 0, self.squares, 1))
            self.weights = self.weights - self.rate * gradient / root
        else:
            share = (round + 1) ** -self.power if self.kind == "power" else 1.0
            self.weights = self.weights - self.rate * share * gradient
        norm = np.linalg.norm(self.weights)
        if self.radius is not None and norm > self.radius:
            self.weights = self.weights / norm * self.radius


class Estimator:
    """A6: gradient descent on an estimate from the first k documents."""

    def __init__(
        self, steps, estimate, k, mix, mix_power, exploration, mismatch_scale, centred=True
    ):
        self.steps, self.estimate, self.k, self.centred = steps, estimate, k, centred
        self.mix, self.mix_power, self.exploration = mix, mix_power, exploration
        self.mismatch_scale, self.n_hits = mismatch_scale, 0

    def rank(self, features, round):
        n_items = len(features)
        self.scores, k = features @ self.steps.weights, min(self.k, n_items)
        gamma = self.mix * (round + 1) ** -self.mix_power
        greedy = descending(self.scores)
        explored = units(place_of(round), 0, 1)[0] < gamma
        ranking = greedy
        if explored:
            ranking = descending(units(place_of(round), 1, n_items))
            if self.exploration == "lifted":
                top = ranking[:k]
                ranking = np.array([*top, *(item for item in greedy if item not in top)])
        chance = math.factorial(k) * math.factorial(n_items - k) / math.factorial(n_items)
        if set(ranking[:k]) == set(greedy[:k]):
            self.propensity = 1 - gamma + gamma * chance
        else:
            self.propensity = self.mismatch_scale * gamma * chance
            self.n_hits += 1
        return ranking, explored, self.propensity

    def update(self, features, ranking, grades, round):
        shown = ranking[: self.k], grades[ranking][: self.k]
        centred = features - features.mean(axis=0) if self.centred else features
        gradient = self.estimate(centred @ self.steps.weights, *shown, self.propensity)
        self.steps.down(centred.T @ gradient, round)


class Greedy:
    """Rankers that see everything: descent at every list, or at mistakes only."""

    def __init__(self, steps, gradient, mistake=lambda *_: True):
        self.steps, self.gradient, self.mistake = steps, gradient, mistake

    def rank(self, features, _round):
        self.scores = features @ self.steps.weights
        return descending(self.scores), False, 1.0

    def update(self, features, ranking, grades, round):
        if self.mistake(grades, ranking):
            self.steps.down(features.T @ self.gradient(self.scores, grades), round)


class Supports:
    """A16: a sum of kernels at support vectors, of which the oldest are forgotten."""

    def __init__(self, kernel, rate, gradient, mistake, budget):
        self.kernel, self.rate, self.gradient = kernel, rate, gradient
        self.mistake, self.budget, self.support = mistake, budget, []

    def rank(self, features, _round):
        self.scores = np.zeros(len(features))
        for vector, coefficient in self.support[-self.budget :]:
            self.scores += coefficient * np.array([self.kernel(vector, x) for x in features])
        return descending(self.scores), False, 1.0

    def update(self, features, ranking, grades, _round):
        if self.mistake(grades, ranking):
            slopes = self.gradient(self.scores, grades)
            for item in ranking:
                if slopes[item] != 0:
                    self.support.append((features[item], -self.rate * slopes[item]))
