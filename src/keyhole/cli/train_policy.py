"""The command that trains a policy on a log and evaluates it on held-out rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import keyhole
from keyhole.base.display import counted, some_of
from keyhole.base.errors import InvalidInput, check_choice, check_integer, check_number, check_seed
from keyhole.base.files import check_file
from keyhole.cli.description_options import command
from keyhole.cli.evaluate import show_intervals, show_verdict
from keyhole.cli.terminal import (
    Json,
    output_folder,
    parse_options,
    print_json,
    progress_bar,
    say,
    show_table,
)
from keyhole.data.bandit.files import write_bandit_csv, write_bandit_parquet
from keyhole.data.bandit.formats import read_bandit
from keyhole.data.bandit.log import BanditLog
from keyhole.data.bandit.splitting import SPLITS
from keyhole.offline.evaluation import evaluate
from keyhole.offline.report import Evaluation
from keyhole.offline.target import NAMED
from keyhole.policies import POLICIES
from keyhole.policies.base import ScorePolicy
from keyhole.policies.choosing import MODELS, Trained, n_fits, train_policy
from keyhole.policies.files import save_policy

_STEPS = 200_000
_SCORED = [name for name, kind in POLICIES.items() if issubclass(kind, ScorePolicy)]


@dataclass(frozen=True)
class _Parts:
    """A log with its training part and its held-out part, if any."""

    train: BanditLog
    held_out: BanditLog | None
    split: str


def _parts(log: BanditLog, hold_out: float, split: str | None, seed: int) -> _Parts:
    """Split a log into training and held-out rows, by time if it has times."""
    check_number(hold_out, "--hold-out", at_least=0.0, at_most=0.99)
    by = ("random" if log.times is None else "time") if split is None else split
    check_choice(by, "--split", SPLITS)
    if hold_out == 0.0:
        return _Parts(log, None, by)
    train, held_out = log.split(1.0 - hold_out, by=by, seed=seed)
    return _Parts(train, held_out, by)


def _check_held_out(path: Path | None, hold_out: float) -> None:
    if path is None:
        return
    if hold_out == 0.0:
        raise InvalidInput("--held-out needs held-out rows, got --hold-out 0.")
    check_file(path, "--held-out")


def _settings(model: str, steps: int | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a model from --set and --steps."""
    if steps is not None and model != "rankers":
        raise InvalidInput(f"--steps is for --model rankers, got --model {model}.")
    own = {"n_steps": _STEPS if steps is None else steps} if model == "rankers" else {}
    return {**own, **given}


@command(called={"n_folds": "--folds", "l2": "--penalty", "share": "--hold-out", "by": "--split"})
def train_policy_command(
    log: Annotated[
        Path,
        typer.Argument(
            help="CSV (also .gz/.bz2/.xz) or Parquet with the columns action, propensity, reward "
            "(0 or 1), x_NAME… and optionally position, time and group; or a file of the Open "
            "Bandit Dataset.",
            metavar="LOG",
        ),
    ],
    out: Annotated[Path, "The file to save the policy to (.npz)."],
    model: Annotated[
        str, "The models, one per action: rankers, classifiers or forests."
    ] = "rankers",
    policy: Annotated[
        str, "The policy over their scores: greedy, epsilon-greedy or softmax."
    ] = "epsilon-greedy",
    penalty: Annotated[
        list[float] | None,
        "An l2 penalty to try; repeatable: cross-validation chooses one. Default: a grid.",
    ] = None,
    folds: Annotated[int, "The number of folds of the cross-validation."] = 5,
    steps: Annotated[int | None, f"Steps of a ranker's descent. Default: {_STEPS:,}."] = None,
    hold_out: Annotated[float, "The share of held-out rows for the evaluation; 0: none."] = 0.3,
    split: Annotated[
        str | None,
        "Held-out rows: the last by time, the last rows, or random ones (groups stay together). "
        "Default: time if the log has times, else random.",
    ] = None,
    held_out: Annotated[
        Path | None, "Write the held-out rows to this file (.csv, .csv.gz, .parquet)."
    ] = None,
    baseline: Annotated[
        str, "The baseline of the evaluation: logged, uniform or best-fixed."
    ] = "logged",
    confidence: Annotated[float, "The confidence level of the bounds."] = 0.95,
    actions: Annotated[
        int | None, "The number of actions, if the log may lack the last ones."
    ] = None,
    settings: Annotated[
        list[str] | None,
        "Another option, such as policy.epsilon=0.2, model.negatives_per_click=2 or "
        "model.n_trees=500.",
        "--set",
        "OWNER.NAME=VALUE",
    ] = None,
    seed: Annotated[int, "The random seed."] = 0,
    as_json: Json = False,
) -> None:
    """Train a policy on a log of actions and rewards, and evaluate it on held-out rows.

    Trains one model of clicks per action; cross-validation within the training part chooses its
    penalty. The policy is then evaluated on the held-out rows, as keyhole evaluate does.

        keyhole train-policy log.csv --out ranker.npz

        keyhole train-policy log.csv --out forest.npz --model forests --set model.n_trees=500

    The file stores the names of features and digests of the training rows: keyhole evaluate finds
    features by name and refuses training rows. Save the held-out rows for it:

        keyhole train-policy log.csv --out ranker.npz --held-out rest.csv

        keyhole evaluate rest.csv --policy ranker.npz --baseline logged
    """
    check_choice(model, "--model", MODELS)
    check_choice(policy, "--policy", _SCORED)
    check_choice(baseline, "--baseline", NAMED)
    check_seed(seed)
    check_integer(folds, "--folds", at_least=2)
    given = parse_options(settings or [], ("policy", "model"))
    fitted = _settings(model, steps, given["model"])
    _check_held_out(held_out, hold_out)
    with output_folder(out.parent):
        check_file(out, "--out")
        parts = _parts(read_bandit(log, n_actions=actions), hold_out, split, seed)
        with progress_bar(
            model, n_fits(model, penalty, folds), quiet=as_json, unit="fits"
        ) as advance:
            trained = train_policy(
                parts.train, model, policy=policy, policy_options=given["policy"],
                penalties=penalty, n_folds=folds, seed=seed, progress=advance, **fitted,
            )  # fmt: skip
        judged = None
        if parts.held_out is not None:
            judged = evaluate(
                parts.held_out, trained.policy, baseline, confidence,
                names=(out.name, baseline), seed=seed,
            )  # fmt: skip
        save_policy(trained.policy, out)
        if held_out is not None and parts.held_out is not None:
            _write(parts.held_out, held_out)
        files = {"out": str(out), "log": str(log), "held_out": held_out and str(held_out)}
        record = {**files, "model": model, "seed": seed, **_record(trained, parts, judged, model)}
        if as_json:
            print_json(record)
        else:
            _print(record, trained, parts, judged)


def _write(log: BanditLog, path: Path) -> None:
    (write_bandit_parquet if path.suffix == ".parquet" else write_bandit_csv)(log, path)


def _never_clicked(log: BanditLog) -> list[str]:
    clicked = set(log.actions[log.rewards > 0.0].tolist())
    return [log.name_of(action) for action in range(log.n_actions) if action not in clicked]


def _record(
    trained: Trained, parts: _Parts, judged: Evaluation | None, model: str
) -> dict[str, Any]:
    return {
        "penalty": trained.penalty,
        "penalties": [
            {"penalty": penalty, "score": score} for penalty, score in trained.scores.items()
        ],
        "judged_by": MODELS[model].judged_by or None,
        "training_rows": len(parts.train),
        "held_out_rows": 0 if parts.held_out is None else len(parts.held_out),
        "split": parts.split,
        "actions": parts.train.n_actions,
        "features": parts.train.feature_names or parts.train.contexts.shape[1],
        "never_clicked": _never_clicked(parts.train),
        "evaluation": None if judged is None else judged.as_dict(),
        "version": keyhole.__version__,
    }


def _print(
    record: dict[str, Any], trained: Trained, parts: _Parts, judged: Evaluation | None
) -> None:
    train, rest = parts.train, parts.held_out
    by = {"time": "the first by time", "rows": "the first rows", "random": "at random"}[parts.split]
    of_all = "" if rest is None else f" of {len(train) + len(rest):,} ({by})"
    say(
        f"Trained {record['model']} on {counted(len(train), 'row')}{of_all}: "
        f"{counted(train.n_actions, 'action')}, {counted(train.contexts.shape[1], 'feature')}, "
        f"{counted(int(train.rewards.sum()), 'click')}."
    )
    if trained.scores:
        rows = [
            (f"{penalty:g}", f"{score:.5f}", "chosen" if penalty == trained.penalty else "")
            for penalty, score in trained.scores.items()
        ]
        show_table("", ("penalty>", f"{record['judged_by']}>", ""), rows, boxed=False)
    if record["never_clicked"]:
        never = some_of(record["never_clicked"])
        say(f"Note: {never} have no clicks and are never the best.")
    if judged is not None:
        say(f"\nJudged on the {counted(judged.n_rows, 'row')} held out, reward per row:\n")
        show_intervals(judged)
        show_verdict(judged)
    say(f"The policy is in {record['out']}.")
    if record["held_out"] is not None:
        say(f"The held-out rows are in {record['held_out']}.")
