"""Alert rules and the dashboard of Grafana ask for metrics that the service has."""

import json
import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from keyhole.service.events import Event
from keyhole.service.metrics import Metrics
from tests.service.desks import engine_of

DEPLOY = Path(__file__).parents[2] / "deploy"
pytestmark = pytest.mark.interpreted


def rules():
    (group,) = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text())["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def panels():
    board = json.loads((DEPLOY / "grafana.json").read_text())
    return {each["title"]: [to["expr"] for to in each["targets"]] for each in board["panels"]}


def labels_of_metrics():
    """Return the labels of each metric of a service that has done a little of everything."""
    metrics = Metrics(engine_of().rankers.values)
    metrics.count("rank", 201, 0.01)
    metrics.count_commit([Event("animals", 1, "rank", None, None, 0, b"", b"")], 0.01)
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", metrics.text().decode(), re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


@pytest.mark.parametrize("asked", [rules, panels])
def test_what_is_asked_for_is_there(asked):
    there, n_asked = labels_of_metrics(), 0
    for name, expressions in asked().items():
        for expression in [expressions] if isinstance(expressions, str) else expressions:
            used = re.findall(r"\b(keyhole_\w+)(?:\{([^}]*)\})?", expression)
            assert used, name
            for metric, labels in used:
                assert metric in there, (name, metric)
                assert set(re.findall(r"(\w+)\s*=", labels)) <= there[metric], (name, labels)
                n_asked += 1
    assert n_asked >= len(asked())


def test_every_metric_is_on_the_dashboard():
    shown = " ".join(expression for each in panels().values() for expression in each)
    families = {re.sub(r"_(bucket|sum|count|created)$", "", name) for name in labels_of_metrics()}
    ours = {name for name in families if name.startswith("keyhole_")}
    missing = {name for name in ours if name not in shown}
    assert missing == {
        "keyhole_commit_events",
        "keyhole_ranker_seq",
    }  # one in the filter of the board
