"""Results in MLflow's runs, read back through its client with equal numbers."""

import json
from dataclasses import replace

import mlflow
import numpy as np
import pytest
from matplotlib.figure import Figure
from mlflow import MlflowClient
from typer.testing import CliRunner

from keyhole import Flips, RTopK, play
from keyhole.base.errors import InvalidInput
from keyhole.base.files import plain
from keyhole.cli.app import app
from keyhole.data.bandit.formats import read_bandit
from keyhole.ecosystem.mlflow import log_evaluation, log_folder, log_trace
from keyhole.lab.run import reproduce
from keyhole.lab.study import find_study
from keyhole.offline.evaluation import evaluate
from keyhole.policies.base import Softmax
from keyhole.policies.training import fit_classifiers


@pytest.fixture(scope="module", params=["sqlite", "files"])
def experiment(request, tmp_path_factory):
    """Track to a database, or to files; return where runs go."""
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # it asks to be told so
        is_file = request.param == "sqlite"
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db" if is_file else f"{folder}/runs")
        yield MlflowClient().create_experiment("keyhole", str(folder / "artifacts"))
    mlflow.set_tracking_uri(None)


@pytest.fixture
def logged(experiment):
    """Return what logs a result and reads its run back."""

    def log_and_read(log, *arguments, **options):
        with mlflow.start_run(experiment_id=experiment) as run:
            log(*arguments, **options)
        client = MlflowClient()
        return client, client.get_run(run.info.run_id)

    return log_and_read


def file_of(client, run, name):
    return client.download_artifacts(run.info.run_id, name)


def history(client, run, name):
    points = client.get_metric_history(run.info.run_id, name)
    return [(point.step, point.value) for point in sorted(points, key=lambda point: point.step)]


def some_axes():
    axes = Figure().add_subplot()
    axes.plot([1, 2], [3, 4])
    return axes


def test_a_game(logged):
    ranker, world = RTopK(5, horizon=2000), Flips(5, n_relevant=2)
    trace = play(ranker, world, rounds=2000, runs=3)
    client, run = logged(
        log_trace, trace, figure=some_axes(), ranker=ranker, world=world, measure="DCG", seed=0
    )
    rounds, means, errors = trace.curve()
    assert len(rounds) > 50
    assert history(client, run, "average_regret") == list(zip(rounds, means, strict=True))
    assert history(client, run, "average_regret_error") == list(zip(rounds, errors, strict=True))
    assert history(client, run, "average_score")[-1] == (2000, trace.average_score.mean)
    assert run.data.metrics["average_regret"] == trace.average_regret.mean
    parameters = run.data.params
    assert parameters["ranker.name"] == "rtopk"
    assert parameters["ranker.horizon"] == "2000"
    assert parameters["world.n_relevant"] == "2"
    assert (parameters["measure"], parameters["runs"], parameters["seed"]) == ("DCG", "3", "0")
    with open(file_of(client, run, "trace.json")) as file:
        kept = json.load(file)
    assert np.array_equal(np.array(kept["best"]) - np.array(kept["scores"]), trace.regret)
    with open(file_of(client, run, "regret.png"), "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


def test_a_game_of_one_run_has_no_errors(logged):
    trace = play(RTopK(5, horizon=300), Flips(5, n_relevant=2), rounds=300)
    client, run = logged(log_trace, trace)
    assert "average_regret_error" not in run.data.metrics
    assert len(history(client, run, "average_regret")) == len(trace.rounds)
    assert [each.path for each in client.list_artifacts(run.info.run_id)] == ["trace.json"]


def test_an_evaluation(logged, real_data):
    log = read_bandit(real_data / "obd_small" / "random_men.csv.gz")
    train, test = log.rows(slice(5000)), log.rows(slice(5000, None))
    scorer = fit_classifiers(
        train.contexts, train.actions, train.rewards, n_actions=log.n_actions, no_click="never"
    )
    found = evaluate(test, Softmax(scorer), "uniform")
    client, run = logged(log_evaluation, found, policy="softmax", figure=some_axes().figure)
    metrics = run.data.metrics
    for name, line in found.difference.items():
        assert metrics[f"difference/{name}/value"] == line.estimate.value
    place = f"policy/estimates/importance-weighted/bounds/{found.decided_by}"
    decisive = found.policy.lines["importance-weighted"].bounds[found.decided_by].value
    assert metrics[place] == decisive
    assert metrics["lower_bound"] == found.lower_bound
    assert run.data.tags["verdict"] == found.verdict
    assert (run.data.params["policy"], run.data.params["rows"]) == ("softmax", "5000")
    with open(file_of(client, run, "evaluation.json")) as file:
        assert json.load(file) == plain(found.as_dict())
    assert file_of(client, run, "evaluation.png")


def test_the_folder_of_a_command(logged, tmp_path):
    out = tmp_path / "out"
    arguments = "play --ranker rtopk --items 5 --rounds 300 --world flips --runs 3 --against random"
    ran = CliRunner().invoke(app, [*arguments.split(), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    client, run = logged(log_folder, out, seed=0)
    files = {path.name for path in out.iterdir()}
    assert {each.path for each in client.list_artifacts(run.info.run_id)} == files
    assert {"curves.csv", "regret.png"} <= files
    rows = [line.rsplit(",", 4) for line in (out / "curves.csv").read_text().splitlines()[1:]]
    first = [(int(x), float(y)) for label, x, y, *_ in rows if label == rows[0][0]]
    names = [name for name in run.data.metrics if name.endswith("/average_regret")]
    assert len(names) == 2
    assert history(client, run, f"{_plain(rows[0][0])}/average_regret") == first
    numbers = json.loads((out / "results.json").read_text())
    assert run.data.metrics["average_score"] == numbers["average_score"]
    assert run.data.params["seed"] == "0"


def test_a_study(logged, tmp_path):
    study = find_study("thesis-fig3.2", quick=True)
    study = replace(study, curves=study.curves[:2], lines=(), claims=())
    result = reproduce(study, tmp_path / "out")
    client, run = logged(log_folder, tmp_path / "out")
    for curve in result.curves.values():
        means, errors = curve.mean
        for name, values in (("average_regret", means), ("standard_error", errors)):
            points = history(client, run, f"{_plain(curve.label)}/{name}")
            assert points == list(zip(curve.x, values, strict=True))
    assert (run.data.params["key"], run.data.params["holds"]) == ("thesis-fig3.2", "True")
    files = {each.path for each in client.list_artifacts(run.info.run_id)}
    assert {"verdicts.json", "curves.csv", "thesis-fig3.2.png", "thesis-fig3.2.svg"} <= files


def test_a_long_curve_is_logged_whole(logged, tmp_path):
    rows = [f"a,{round},{1 / round!r},,1" for round in range(1, 2501)]
    header = "curve,round,average_regret,standard_error,runs"
    (tmp_path / "curves.csv").write_text("\n".join([header, *rows]))
    client, run = logged(log_folder, tmp_path)
    points = history(client, run, "a/average_regret")
    assert points == [(round, 1 / round) for round in range(1, 2501)]


def _plain(label):
    return "".join("_" if each in ',()"=' else each for each in label.strip('"'))


def test_a_run_must_be_open(experiment):
    trace = play(RTopK(5, horizon=300), Flips(5, n_relevant=2), rounds=300)
    with pytest.raises(InvalidInput, match="An MLflow run must be open"):
        log_trace(trace)
    with (
        mlflow.start_run(experiment_id=experiment),
        pytest.raises(InvalidInput, match="must be a folder"),
    ):
        log_folder("nowhere")
