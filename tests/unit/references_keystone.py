"""Keystone once more, as its recipe states it, in plain Python that does everything anew."""

import math

import numpy as np

from tests.unit.references import descending, units
from tests.unit.references_fixed import place_of

TIES, SWEEP, COIN, FLOOR, FLOOR_ITEM, NOISE, THINNED = range(7)


def normal_tail(z):
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def psi(z):
    """What a guess z deviations away may gain by, read off a table in steps of 1/64."""
    z = math.floor(64.0 * z) / 64.0
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * normal_tail(z)


def relative_entropy(p, q):
    q = min(max(q, 1e-9), 1.0 - 1e-9)
    parts = ((p, q), (1.0 - p, 1.0 - q))
    return sum(x * math.log(x / y) for x, y in parts if x > 1e-15)


class Item:
    """Buckets of gains, oldest first, each (count, sum, sum of squares), and what they say."""

    def __init__(self):
        self.buckets, self.all_n, self.all_sum = [], 0.0, 0.0
        self.suspect, self.waits = False, 0
        self.mean, self.spread = 0.5, 0.5

    def totals(self):
        return tuple(sum(bucket[i] for bucket in self.buckets) for i in range(3))

    @property
    def n(self):
        return self.totals()[0]

    def add(self, gain):
        self.all_n, self.all_sum = self.all_n + 1.0, self.all_sum + gain
        self.buckets.append((1.0, gain, gain * gain))
        while True:  # at most three buckets of a size
            sizes = [bucket[0] for bucket in self.buckets]
            full = [size for size in set(sizes) if sizes.count(size) > 3]
            if not full:
                return
            first = sizes.index(full[0])
            pair = self.buckets[first : first + 2]
            merged = tuple(map(sum, zip(*pair, strict=True)))
            self.buckets[first : first + 2] = [merged]

    def most_certain_split(self):
        """Return the likelihood ratio of the best split with two older ones, and where it is."""
        n, total, squares = self.totals()
        mean = total / n
        coins = max(mean * (1.0 - mean), 1e-9)
        variance = max(squares / n - mean * mean, 0.0)
        scale = max((n * coins + 0.25) / (n * variance + 0.25), 1.0)
        best, at = 0.0, 0
        for place in range(1, len(self.buckets)):
            older = sum(bucket[0] for bucket in self.buckets[:place])
            older_sum = sum(bucket[1] for bucket in self.buckets[:place])
            if older < 2.0:
                continue
            certainty = scale * (
                older * relative_entropy(older_sum / older, mean)
                + (n - older) * relative_entropy((total - older_sum) / (n - older), mean)
            )
            if certainty > best:
                best, at = certainty, place
        return best, at

    def judge(self, blind):
        n, total, squares = self.totals()
        weight, prior = 1.0, 0.5
        if self.all_n > n:
            weight, prior = 2.0 + blind, (self.all_sum + 0.5) / (self.all_n + 1.0)
        self.mean = (total + weight * prior) / (n + weight)
        variance = (squares + 0.5) / (n + 1.0) - ((total + 0.5) / (n + 1.0)) ** 2
        self.spread = math.sqrt(max(variance, 1e-12) / (n + weight))


class Keystone:
    """The ranker, for weights of positions and gains by grade; remembers what it has shown."""

    def __init__(self, weights, k, gain, largest_gain):
        self.d, self.k, self.m = np.asarray(weights, float), k, len(weights)
        self.gain, self.largest_gain = gain, largest_gain
        self.items = [Item() for _ in range(self.m)]
        self.estimates = np.zeros(self.m)
        self.variance = self.lead = self.squares = 0.0
        self.alarms, self.next_round, self.shown = 0, 0, {}
        self.held = {}
        self.order = list(descending(0.5 + 1e-6 * units(place_of(0), TIES, self.m)))
        spread = self.d[0] - self.d[-1]
        positions = np.arange(1, self.m + 1)
        self.c = ((self.d - self.d[-1]) * np.log((self.m + 1) / positions)).sum()
        self.a = spread / (2.0 * math.e) * (1 if k == 1 else 2)
        self.kappa = 17 * (self.d - self.d[-1]).sum() / 4 + 15 * self.m * spread / (2 * math.e)
        self.first = self.a * (self.m / 0.1) ** 2

    def safe_list(self, block):
        rate = math.sqrt(self.c / (self.first + self.variance))
        noise = -np.log(-np.log(units(place_of(16 * block), NOISE, self.m)))
        return list(descending(rate * self.estimates + noise))

    def regime(self, round):
        return (round + 1.0) / (1.0 + self.alarms / 5.0)

    def price(self, order, place):
        mean = self.items[order[place]].mean
        return sum(
            (self.d[j] - self.d[j + 1]) * (self.items[order[j]].mean - mean)
            for j in range(self.k - 1, place)
        )

    def value(self, order, place):
        item, others = self.items[order[place]], [self.items[i] for i in order]
        near, first, last = [item], place, place
        for side in (range(place - 1, -1, -1), range(place + 1, self.m)):
            for j in side:
                other = others[j]
                if (other.mean - item.mean) ** 2 > 9.0 * (other.spread**2 + item.spread**2):
                    break
                near.append(other)
                first, last = min(first, j), max(last, j)
        share = 1.0
        if len(near) > 1:
            noise = np.mean([one.spread**2 for one in near])
            least = min(0.1, 30.0 / len(near) ** 2)
            real = max(np.var([one.mean for one in near], ddof=1) - noise, least * noise)
            share = real / (real + noise)
        value = 0.0
        for step, weigh in ((-1, lambda j: self.d[j] - self.d[j + 1]),
                            (1, lambda j: self.d[j - 1] - self.d[j])):  # fmt: skip
            j = place + step
            while 0 <= j < self.m:
                shrunk = math.sqrt(share) if first <= j <= last else 1.0
                z = max((others[j].mean - item.mean) * -step, 0.0) * shrunk / item.spread
                if z > 4.0:
                    break
                value += weigh(j) * psi(z) * shrunk * item.spread
                j += step
        return value

    def look(self, round, order):
        """Return the place to lift or -1, and who was looked at in vain."""
        pending = 2.0 * max(round - self.next_round, 0) / self.m
        h, in_vain = self.regime(round), [-1, -1]
        for step in range(2):
            sweep, at = divmod(2 * round + step, self.m)
            item = int(descending(units(place_of(sweep), SWEEP, self.m))[at])
            place, it = order.index(item), self.items[item]
            if place < self.k:
                continue
            is_thinned = units(place_of(round), THINNED, 2)[step] * (1.0 + pending) >= 1.0
            if (it.n == 0 or it.suspect) and not is_thinned:
                return place, in_vain
            if round >= it.waits:
                budget = min(h / 2.0, max(6.5 * h ** (2 / 3), 0.3 * h))
                if self.price(order, place) * (it.n + pending) < budget * self.value(order, place):
                    return place, in_vain
                in_vain[step] = item
        return -1, in_vain

    def seen_with(self, ranking, item, floor):
        place = ranking.index(item)
        if place < self.k - 1:
            return 1.0
        return 1.0 - floor * (1.0 - self.k / self.m) if place == self.k - 1 else floor / self.m

    def lifted(self, order, place):
        rest = order[:place] + order[place + 1 :]
        return [*rest[: self.k - 1], order[place], *rest[self.k - 1 :]]

    def rank(self, round):
        place = place_of(round)
        safe = self.held.get(round // 16) or self.safe_list(round // 16)
        place_lifted, in_vain = self.look(round, self.order)
        audited = self.order if place_lifted < 0 else self.lifted(self.order, place_lifted)
        logit = math.log(0.01 / 0.99)
        logit += self.lead * math.sqrt(math.log(100.0) / (1.0 + self.squares))
        trust = 1.0 / (1.0 + math.exp(-min(max(logit, -40.0), 40.0)))
        plays_safe = units(place, COIN, 1)[0] < trust
        ranking = list(safe if plays_safe else audited)
        floor = 0.1 * (round + 1.0) ** (-1 / 3)
        floored = units(place, FLOOR, 1)[0] < floor
        if floored:
            chosen = ranking.index(int(np.argmax(units(place, FLOOR_ITEM, self.m))))
            if chosen >= self.k:
                ranking = self.lifted(ranking, chosen)
        chances = [
            trust * self.seen_with(safe, item, floor)
            + (1.0 - trust) * self.seen_with(audited, item, floor)
            for item in ranking[: self.k]
        ]
        means = np.array([item.mean for item in self.items])
        ahead = np.zeros(self.m)
        ahead[safe] += self.d
        ahead[audited] -= self.d
        self.shown[round] = (
            chances, means, ahead, in_vain, max(round - self.next_round, 0)
        )  # fmt: skip
        return ranking, place_lifted >= 0 or plays_safe or floored, chances[-1]

    def update(self, ranking, values, round):
        chances, means, ahead, in_vain, unanswered = self.shown.pop(round)
        self.hold(round // 16)
        now = np.array([item.mean for item in self.items])
        self.estimates += now
        lead = ahead @ means
        gains = [self.gain(value) / self.largest_gain for value in values[: self.k]]
        for item, gain, chance in zip(ranking, gains, chances, strict=False):
            correction = (gain - now[item]) / chance
            self.estimates[item] += correction
            self.variance += self.a * correction**2
            lead += (gain - means[item]) / chance * ahead[item]
        self.variance += self.kappa
        self.lead, self.squares = self.lead + lead, self.squares + lead**2
        for item in in_vain:
            if item >= 0:
                self.items[item].waits = round + round // 100
        blind = 20.0 * self.alarms * unanswered / (round + 1.0)
        before = self.alarms
        for item, gain in zip(ranking, gains, strict=False):
            self.observe(self.items[item], gain, round, blind)
            self.order.sort(key=lambda i: -self.items[i].mean)
        if self.alarms > before:
            self.doubt(round, blind)
        self.next_round = max(self.next_round, round + 1)
        if round % 16 == 15:
            self.hold(round // 16 + 1)

    def hold(self, block):
        if block >= max(self.held, default=0) and block not in self.held:
            self.held = {block: self.safe_list(block)}

    def observe(self, item, gain, round, blind):
        item.waits = 0
        item.add(gain)
        certainty, at = item.most_certain_split()
        limit = 1.5 * math.log(self.regime(round) + 1.0)
        limit *= 1.0 + self.alarms / (4.0 * (round + 1.0) ** (1 / 3))
        item.suspect = limit >= certainty > 2.0
        if certainty > limit:
            item.buckets = item.buckets[at:]
            self.alarms += 1
        item.judge(blind)

    def doubt(self, round, blind):
        for item in self.items:
            while len(item.buckets) > 1 and sum(b[0] for b in item.buckets[1:]) >= 2.0:
                item.buckets.pop(0)
            item.suspect, item.waits = False, 0
            item.judge(blind)
        ties = 1e-6 * units(place_of(round), TIES, self.m)
        self.order = list(descending([i.mean for i in self.items] + ties))
