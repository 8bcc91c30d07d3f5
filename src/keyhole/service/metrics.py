"""Prometheus metrics; every application has its own registry."""

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from keyhole.service.events import Event
from keyhole.service.ranker_state import LiveRanker

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_EVENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters and latencies of requests and commits.

    They are plain numbers, because one thread answers all requests; the collectors convert them at
    scrape time. ``read_rankers`` returns the rankers then.
    """

    def __init__(self, read_rankers: Callable[[], Iterable[LiveRanker]]) -> None:
        self.registry = CollectorRegistry()
        self.in_flight = 0
        self.requests: dict[tuple[str, int], Spread] = {}
        self.events: Tally[str] = Tally()
        self.commit_events, self.commit_seconds = Spread(_EVENTS), Spread(_SECONDS)
        self.registry.register(_Requests(self))
        self.registry.register(_Commits(self))
        self.registry.register(_Rankers(read_rankers))

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        times = self.requests.get((operation, status))
        if times is None:
            times = self.requests[operation, status] = Spread(_SECONDS)
        times.add(seconds)

    def count_commit(self, events: Sequence[Event], seconds: float) -> None:
        """Count a commit."""
        self.events.update([event.kind for event in events])
        self.commit_events.add(len(events))
        self.commit_seconds.add(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus text format."""
        return generate_latest(self.registry)


class Spread:
    """A histogram: cumulative counts up to each bound, and the sum."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, number: float) -> None:
        """Add an observation."""
        self.buckets[bisect_left(self.bounds, number)] += 1
        self.total += number

    def up_to(self) -> list[tuple[str, float]]:
        """Return the bucket bounds in Prometheus notation with their cumulative counts."""
        bounds = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self.buckets)), strict=True))


class _Requests(Collector):
    """Collects requests by operation and status at scrape time."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        labels = ["operation", "status"]
        requests = CounterMetricFamily("keyhole_requests", "Requests answered.", labels=labels)
        seconds = HistogramMetricFamily(
            "keyhole_request_seconds", "Time to answer a request.", labels=labels
        )
        for (operation, status), times in sorted(self._metrics.requests.items()):
            named = [operation, str(status)]
            requests.add_metric(named, sum(times.buckets))
            seconds.add_metric(named, times.up_to(), times.total)
        in_flight = GaugeMetricFamily("keyhole_requests_in_flight", "Requests being answered now.")
        in_flight.add_metric([], self._metrics.in_flight)
        return [requests, seconds, in_flight]


class _Commits(Collector):
    """Collects commits and their events at scrape time."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        events = CounterMetricFamily(
            "keyhole_events_appended", "Events on the disk.", labels=["kind"]
        )
        for kind, n_events in sorted(self._metrics.events.items()):
            events.add_metric([kind], n_events)
        found: list[Metric] = [events]
        for name, told, spread in (
            ("keyhole_commit_events", "Events committed together.", self._metrics.commit_events),
            ("keyhole_commit_seconds", "Time of a commit.", self._metrics.commit_seconds),
        ):
            found.append(HistogramMetricFamily(name, told, spread.up_to(), spread.total))
        return found


class _Rankers(Collector):
    """Collects the progress of each ranker at scrape time."""

    def __init__(self, read_rankers: Callable[[], Iterable[LiveRanker]]) -> None:
        self._read_rankers = read_rankers

    def collect(self) -> Iterable[Metric]:
        seq = GaugeMetricFamily("keyhole_ranker_seq", "Events of a ranker.", labels=["ranker"])
        round = GaugeMetricFamily("keyhole_ranker_round", "Lists shown.", labels=["ranker"])
        waiting = GaugeMetricFamily(
            "keyhole_ranker_waiting", "Lists whose feedback is awaited.", labels=["ranker"]
        )
        preparing = GaugeMetricFamily(
            "keyhole_ranker_preparing_seconds",
            "Seconds since the code of a ranker began to compile; 0 once it is ready.",
            labels=["ranker"],
        )
        for ranker in self._read_rankers():
            seq.add_metric([ranker.name], ranker.seq)
            round.add_metric([ranker.name], ranker.round)
            waiting.add_metric([ranker.name], len(ranker.waiting))
            going_on = ranker.preparation if ranker.is_preparing else None
            preparing.add_metric([ranker.name], 0.0 if going_on is None else going_on.seconds)
        return [seq, round, waiting, preparing]
