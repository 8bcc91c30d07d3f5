"""Requests of an access key are limited by a token bucket, and told so in every response."""

import random
import re

import pytest

from keyhole.service.http.rate_limits import RateLimits
from keyhole.service.keys import new_key
from tests.service.asking import Asked, problem

pytestmark = pytest.mark.interpreted
RANK = "/v1/rankers/animals/rank"


class Clock:
    def __init__(self):
        self.at = 1_000.0

    def __call__(self):
        return self.at


def numbers_of(taken):
    """Return what the fields of a response say: the quota, its window, what is left, until when."""
    (policy, quota), (name, left) = taken.fields
    assert (policy, name) == (b"ratelimit-policy", b"ratelimit")
    pattern = rb'"key";q=(\d+);w=(\d+)|"key";r=(\d+);t=(\d+)'
    (quota, window, *_), (*_, tokens, seconds) = (
        re.findall(pattern, value)[0] for value in (quota, left)
    )
    return int(quota), int(window), int(tokens), int(seconds)


@pytest.mark.parametrize(("rate", "burst"), [(1.0, 1), (2.0, 5), (0.25, 3), (1_000.0, 10)])
def test_a_bucket_of_tokens_decides(rate, burst):
    """Beside a bucket that is filled by steps of time, in whole units of a sixteenth of a token."""
    rng, clock = random.Random(int(rate * burst)), Clock()
    limits, tokens = RateLimits(rate, burst, clock), 16 * burst
    n_refused = 0
    for _ in range(400):
        taken = limits.take("a")
        allowed = tokens >= 16
        tokens -= 16 * allowed
        assert (taken.retry_after == 0) == allowed
        quota, window, left, until_full = numbers_of(taken)
        assert (quota, window) == (burst, -(-burst // rate))
        assert left == tokens // 16
        assert until_full == -((tokens - 16 * burst) // (16 * rate))
        if not allowed:
            n_refused += 1
            assert taken.retry_after == -((tokens - 16) // (16 * rate))
        steps = rng.randrange(24)  # of the time in which a sixteenth of a token comes back
        clock.at += steps / (16 * rate)
        tokens = min(tokens + steps, 16 * burst)
    assert 20 < n_refused < 380


def test_after_the_told_seconds_a_request_is_taken():
    clock = Clock()
    limits = RateLimits(0.3, 2, clock)
    for _ in range(5):
        while not (wait := limits.take("a").retry_after):
            pass
        clock.at += wait - 1
        assert limits.take("a").retry_after
        clock.at += 1
        assert not limits.take("a").retry_after


@pytest.fixture
def limited():
    """A service whose keys may make three requests, and the next one in a hundred seconds."""
    with Asked(key_rate=0.01, key_burst=3) as service:
        service.put()  # without a key: there is none
        texts = []
        for _ in range(2):
            text, key = new_key(["admin"], ["*"])
            service.desk.store.add_key(key)
            texts.append({"authorization": f"Bearer {text}"})
        service.app.service.keyring.forget()
        yield service, *texts


def test_a_key_over_its_limit_gets_a_429_and_others_are_served(limited):
    service, one, other = limited
    for left in (2, 1, 0):
        answer = service.ask("POST", RANK, json={}, headers=one)
        assert answer.status_code == 201
        assert answer.headers["ratelimit-policy"] == '"key";q=3;w=300'
        assert answer.headers["ratelimit"].startswith(f'"key";r={left};t=')
        assert "retry-after" not in answer.headers
    told = service.ask("POST", RANK, json={}, headers=one)
    assert "retry in 100 s" in problem(told, 429, "rate-limited")["detail"]
    assert told.headers["retry-after"] == "100"
    assert told.headers["ratelimit"] == '"key";r=0;t=300'
    assert service.ask("POST", RANK, json={}, headers=other).status_code == 201
    assert service.desk.store.last("animals").seq == 5  # what was refused did nothing


def test_refused_requests_count_and_unknown_keys_do_not(limited):
    service, one, _ = limited
    for _ in range(5):
        unknown = service.ask("POST", RANK, json={}, headers={"authorization": "Bearer kh_00_x"})
        assert unknown.status_code == 401
        assert "ratelimit" not in unknown.headers
    for _ in range(3):
        answer = service.ask("POST", "/v1/rankers/nobody/rank", json={}, headers=one)
        assert answer.status_code == 404
        assert "ratelimit" in answer.headers
    assert service.ask("GET", "/v1/rankers", headers=one).status_code == 429
    assert service.ask("GET", "/healthz", headers=one).status_code == 200


def test_without_a_limit_nothing_is_said():
    with Asked() as service:
        answer = service.put()
        assert answer.status_code == 201
        assert not [name for name in answer.headers if name.startswith("ratelimit")]
