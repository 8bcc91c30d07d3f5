"""Recall once more, as its recipe states it, in plain Python that works everything out anew."""

import math

import numpy as np

from tests.unit.references import RANKER, descending, normals, units

TIES, GUESS, NOISE_OF_GUESSES, NOISE_OF_LIST = range(4)
LENGTH, CONSTANT, COMPONENT, OF_LIST = -4, -3, -2, -1


def psi(z):
    """What a guess z deviations away may gain by."""
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * math.erfc(z / math.sqrt(2)) / 2


def looks_by_hand(k, scores, seen, listed, total, noise, lasting):
    """Return the ranking with documents that are worth a look lifted, by the formulas."""
    discounts = np.append(1 / np.log2(np.arange(2, 12)), 0.0)
    drops, order = discounts[:-1] - discounts[1:], descending(scores)
    values = {}
    for place in range(k, len(scores)):
        item = order[place]
        var = [lasting * noise / (n * lasting + noise) for n in (seen[item], seen[item] + 1)]
        step = math.sqrt(var[0] - var[1])
        if not listed[item] or step**2 < 1e-4 * total:
            continue
        gain = 0.0
        for other in range(min(len(scores), 11)):
            gap = abs(scores[order[other]] - scores[item]) / step
            if gap <= 4.0 and (other < min(place, 10) or other > place):
                gain += (
                    drops[other if other < place else other - 1] * step * psi(int(64 * gap) / 64)
                )
        values[place] = listed[item] * gain
    lifted = []
    for top in range(k - 1, -1, -1):
        net = {
            place: value
            - sum(
                drops[q] * (scores[order[q]] - scores[order[place]])
                for q in range(top, min(place, 10))
            )
            for place, value in values.items()
        }
        best = max(net, key=net.__getitem__, default=None)
        if best is None or net[best] <= 0.0:
            break
        lifted.append(order[best])
        del values[best]
    rest = [item for item in order if item not in lifted]
    head = k - len(lifted)
    return [*rest[:head], *lifted, *rest[head:]]


def deviates(features):
    """Return about the normal deviates of ranks in the columns of a list of at most 32."""
    share = np.sign(features[:, None] - features[None]).sum(axis=1) / len(features)
    square = share**2
    above = 1.25331414 - 1.56982563 * square + 0.37715055 * square**2
    return share * above / (1 - 1.50769185 * square + 0.52839424 * square**2)


class Document:
    """What is remembered of one: sights, lists, mean relevance, what weights know, its score."""

    def __init__(self):
        self.seen = self.listed = self.last = 0
        self.mean = self.weight = self.moment = self.prior = 0.0


class Recall:
    """The ranker, with a memory that never forgets."""

    def __init__(self, n_features, k, seed, run, id_column=None):
        d = n_features
        self.d, self.k, self.seed, self.run, self.id_column = d, k, seed, run, id_column
        self.documents = {}
        variances = [[*[1 / (ridge * d)] * d, 1.0, 1.0, 0.1, 0.0] for ridge in (5.0, 1.0)]
        self.covariances = [np.diag(each) for each in variances]
        self.weights = np.zeros((3, d + 4))
        self.weights[0, COMPONENT], self.weights[1, :d] = 0.25, 1.0 / d
        noise = np.random.default_rng(0).standard_normal((4, d + 4))
        self.guesses = 0.5 * noise * np.sqrt(variances[0])
        self.trust = np.array([0.0, -3.0, -3.0])
        self.residuals, self.first_sights, self.within, self.freedom = 1.0, 1.0, 0.0, 0.0
        self.peak, self.component = np.zeros(d), np.full(d, 1 / math.sqrt(d))
        self.squares, self.n_components, self.clock = 1.0, 1.0, 0

    def place(self, round):
        return self.seed, self.run, RANKER, round

    def key(self, row):
        return row[self.id_column] if self.id_column is not None else tuple(row)

    def shares(self):
        return np.exp(self.trust) / np.exp(self.trust).sum()

    def variances(self):
        total = self.residuals / self.first_sights
        noise = min((self.within + total) / (self.freedom + 2), 0.95 * total)
        return total, noise, total - noise

    def describe(self, features):
        """Return the rows of a list, ranks in its columns, and how large numbers have been."""
        features = features.copy()
        peak = np.maximum(self.peak, np.abs(features).max(axis=0))
        if self.id_column is not None:
            features[:, self.id_column] = 0.0
        ranks = deviates(features)
        columns = np.where(peak > 10, np.sign(features) * np.log1p(np.abs(features)), features)
        spread = columns.std(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.where(spread > 0, (columns - columns.mean(axis=0)) / spread, 0.0)
        rows = np.zeros((len(features), self.d + 4))
        rows[:, : self.d] = (z + ranks) / 2
        rows[:, LENGTH], rows[:, CONSTANT] = math.log(len(features)) - 3, 1.0
        scores = ranks @ (self.component / np.linalg.norm(self.component))
        rows[:, COMPONENT] = scores / math.sqrt(self.squares / self.n_components)
        return rows, ranks, scores, peak

    def look_up(self, features):
        """Return what is known of the documents of a list, and whether it is a new one."""
        keys = [self.key(row) for row in features]
        is_new = 2 * sum(key not in self.documents for key in keys) >= len(keys)
        known = [self.documents.get(key, Document()) for key in keys]
        rows = self.describe(features)[0]
        by_weights = rows @ (self.shares() @ self.weights)
        is_due = [is_new or each.listed in (0, 1, 3, 7, 15, 31, 63, 127) for each in known]
        by_features = [
            fresh if due else each.prior
            for fresh, due, each in zip(by_weights, is_due, known, strict=True)
        ]
        return known, is_new, rows, by_features

    def rank(self, features, round):
        known, is_new, rows, by_features = self.look_up(features)
        total, noise, lasting = self.variances()
        seen = np.array([each.seen for each in known])
        trusted = seen / (seen + noise / lasting)
        scores = by_features + trusted * (np.array([each.mean for each in known]) - by_features)
        keys = scores + 1e-9 * units(self.place(round), TIES, len(features))
        order = descending(keys).tolist()
        if len(order) <= self.k:
            return order, False
        if not is_new:
            listed = [each.listed for each in known]
            ranking = looks_by_hand(self.k, keys, seen, listed, total, noise, lasting)
            return ranking, ranking != order
        first, second = units(self.place(round), GUESS, 2)
        prior = int(np.searchsorted(np.cumsum(self.shares())[:-1], second))
        values = rows @ (self.weights[prior] + 0.2 * self.guesses[int(4 * first)])
        best = max(order[self.k - 1 :], key=lambda item: values[item])
        rest = [item for item in order if item != best]
        return [*rest[: self.k - 1], best, *rest[self.k - 1 :]], best not in order[: self.k]

    def update(self, features, ranking, values, round):
        known, is_new, rows, by_features = self.look_up(features)
        _, ranks, scores, peak = self.describe(features)
        k = min(self.k, len(ranking))
        self.clock += 1
        if k > 1:
            self.begin_list(round)
        learnt = []
        for position, item in enumerate(ranking[:k]):
            each, relevance = known[item], math.sqrt(values[position])
            count, mean = each.seen + 1, each.mean
            _, noise, lasting = self.variances()
            if count == 1:
                self.residuals += (relevance - by_features[item]) ** 2
                self.first_sights += 1
            else:
                self.within += (relevance - mean) ** 2 * (count - 1) / count
                self.freedom += 1
            mean += (relevance - mean) * max(1 / count, 0.05)
            ratio = noise / lasting
            more = max(count * (1 + ratio) / (count + ratio) - each.weight, 0.0)
            change = (each.weight + more) * mean - each.moment
            weight, moment = each.weight, each.moment
            if max(more, abs(change)) >= 1e-3:
                if count == 1:
                    self.judge(rows[item], relevance)
                self.learn(round, position, rows[item].copy(), k > 1, more, change)
                weight, moment = weight + more, moment + change
            learnt.append((count, mean, weight, moment))
        if is_new:
            self.component += ranks.T @ scores / ranks.size
            self.squares += (scores**2).mean()
            self.n_components += 1
            self.peak = peak
        for item, row in enumerate(features):
            each = self.documents.setdefault(self.key(row), Document())
            each.listed += each.last != self.clock
            each.last, each.prior = self.clock, by_features[item]
        for item, what in zip(ranking[:k], learnt, strict=True):
            each = self.documents[self.key(features[item])]
            each.seen, each.mean, each.weight, each.moment = what

    def begin_list(self, round):
        for covariance in self.covariances:
            covariance[OF_LIST, :] = covariance[:, OF_LIST] = 0.0
            covariance[OF_LIST, OF_LIST] = 1 / 3
        self.weights[:, OF_LIST] = 0.0
        self.guesses[:, OF_LIST] = normals(self.place(round), NOISE_OF_LIST, 4) / math.sqrt(3)

    def judge(self, row, relevance):
        errors = relevance - self.weights @ row
        self.trust -= 2 * self.first_sights / self.residuals * errors**2
        self.trust = np.maximum(self.trust - self.trust.max(), -30.0)

    def learn(self, round, position, row, several, weight, moment):
        if several:
            row[OF_LIST] = 1.0
            weight, moment = 1.5 * weight, 1.5 * moment
        noise = normals(self.place(round), NOISE_OF_GUESSES, 4 * position + 4)[-4:]
        noise *= math.sqrt(weight * self.variances()[0])
        for covariance, learners in zip(
            self.covariances,
            (((self.weights[:2], moment), (self.guesses, noise)), ((self.weights[2:], moment),)),
            strict=True,
        ):
            gain = covariance @ row
            share = 1 / (1 + weight * max(row @ gain, 0.0))
            for weights, told in learners:
                if weight > 0 or weights is not self.guesses:
                    weights += np.outer(share * (told - weight * (weights @ row)), gain)
            covariance -= share * weight * np.outer(gain, gain)
