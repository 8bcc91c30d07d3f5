"""What Prometheus can ask for; every application has a registry of its own."""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keyhole.service.events import Event
from keyhole.service.live import LiveRanker

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_EVENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts and times of requests; ``read_rankers`` gives the rankers when they are asked for."""

    def __init__(self, read_rankers: Callable[[], Iterable[LiveRanker]]) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "keyhole_requests",
            "Requests answered.",
            ("operation", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "keyhole_request_seconds",
            "Time to answer a request.",
            ("operation",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.in_flight = 0
        Gauge(
            "keyhole_requests_in_flight", "Requests being answered now.", registry=self.registry
        ).set_function(lambda: self.in_flight)
        self._events = Counter(
            "keyhole_events_appended", "Events on the disk.", ("kind",), registry=self.registry
        )
        self._batches = Histogram(
            "keyhole_commit_events",
            "Events committed together.",
            buckets=_EVENTS,
            registry=self.registry,
        )
        self._commits = Histogram(
            "keyhole_commit_seconds", "Time of a commit.", buckets=_SECONDS, registry=self.registry
        )
        self._children: dict[tuple[str, int], tuple[Any, Any]] = {}
        self.registry.register(_Rankers(read_rankers))

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Note that a request was answered."""
        children = self._children.get((operation, status))
        if children is None:
            counter = self._requests.labels(operation, str(status))
            children = counter, self._seconds.labels(operation)
            self._children[operation, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def count_commit(self, events: Sequence[Event], seconds: float) -> None:
        """Note that events are on the disk."""
        for kind, n_events in Tally(event.kind for event in events).items():
            self._events.labels(kind).inc(n_events)
        self._batches.observe(len(events))
        self._commits.observe(seconds)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry)


class _Rankers(Collector):
    """How far each ranker has come, read when it is asked for."""

    def __init__(self, read_rankers: Callable[[], Iterable[LiveRanker]]) -> None:
        self._read_rankers = read_rankers

    def collect(self) -> Iterable[Metric]:
        seq = GaugeMetricFamily("keyhole_ranker_seq", "Events of a ranker.", labels=["ranker"])
        round = GaugeMetricFamily("keyhole_ranker_round", "Lists shown.", labels=["ranker"])
        waiting = GaugeMetricFamily(
            "keyhole_ranker_waiting", "Lists whose feedback is awaited.", labels=["ranker"]
        )
        for ranker in self._read_rankers():
            seq.add_metric([ranker.name], ranker.seq)
            round.add_metric([ranker.name], ranker.round)
            waiting.add_metric([ranker.name], len(ranker.waiting))
        return [seq, round, waiting]
