"""The command that makes a policy of a log, and judges it on what it held out."""

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
from keyhole.data import BanditLog, read_bandit, write_bandit_csv, write_bandit_parquet
from keyhole.data.bandit.splitting import SPLITS
from keyhole.offline.evaluation import NAMED, Evaluation, evaluate
from keyhole.policies import MODELS, POLICIES, Trained, save_policy, train_policy
from keyhole.policies.base import ScorePolicy
from keyhole.policies.choosing import n_fits

_STEPS = 200_000
_SCORED = [name for name, kind in POLICIES.items() if issubclass(kind, ScorePolicy)]


@dataclass(frozen=True)
class _Parts:
    """A log and its two parts; there is no second where nothing is held out."""

    train: BanditLog
    held_out: BanditLog | None
    split: str


def _parts(log: BanditLog, hold_out: float, split: str | None, seed: int) -> _Parts:
    """Return what to train on and what is held out: by time where the log has times."""
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
        raise InvalidInput("--held-out needs rows that are held out, got --hold-out 0.")
    check_file(path, "--held-out")


def _settings(model: str, steps: int | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a model: those of --set, and --steps for rankers."""
    if steps is not None and model != "rankers":
        raise InvalidInput(f"--steps is for rankers, which take steps; got --model {model}.")
    own = {"n_steps": _STEPS if steps is None else steps} if model == "rankers" else {}
    return {**own, **given}


@command(called={"n_folds": "--folds", "l2": "--penalty", "share": "--hold-out", "by": "--split"})
def train_policy_command(
    log: Annotated[
        Path,
        typer.Argument(
            help="CSV (also .gz/.bz2/.xz) or Parquet with the columns action, propensity, reward "
            "(0 or 1), x_NAME… and, where there are any, position, time and group; or a file of "
            "the Open Bandit Dataset.",
            metavar="LOG",
        ),
    ],
    out: Annotated[Path, "The policy goes into this file (.npz)."],
    model: Annotated[str, "One per action: rankers, classifiers or forests."] = "rankers",
    policy: Annotated[
        str, "What is made of scores: greedy, epsilon-greedy or softmax."
    ] = "epsilon-greedy",
    penalty: Annotated[
        list[float] | None,
        "A penalty (l2) to try; several times for several, of which cross-validation chooses. "
        "Default: a grid.",
    ] = None,
    folds: Annotated[int, "Folds of the cross-validation."] = 5,
    steps: Annotated[int | None, f"Steps of a ranker's descent. Default: {_STEPS:,}."] = None,
    hold_out: Annotated[
        float, "Share of the rows to judge by, never trained on; 0 for none."
    ] = 0.3,
    split: Annotated[
        str | None,
        "What is held out: the last by time, the last rows, or random ones (whole groups, where "
        "there are any). Default: time where the log has times, else random.",
    ] = None,
    held_out: Annotated[
        Path | None, "Write the rows held out here (.csv, .csv.gz, .parquet)."
    ] = None,
    baseline: Annotated[
        str, "What it is judged against: logged, uniform or best-fixed."
    ] = "logged",
    confidence: Annotated[float, "How sure the bounds are."] = 0.95,
    actions: Annotated[
        int | None, "How many actions there are, if the log may not show the last."
    ] = None,
    settings: Annotated[
        list[str] | None,
        "Any other option, such as policy.epsilon=0.2, model.negatives_per_click=2 or "
        "model.n_trees=500.",
        "--set",
        "OWNER.NAME=VALUE",
    ] = None,
    seed: Annotated[int, "Everything random follows from it."] = 0,
    as_json: Json = False,
) -> None:
    """Train a policy on a log of what was shown, and judge it on rows that were held out.

    One model per action learns who clicks; its penalty is chosen by cross-validation within the
    training part. The policy is then judged on the rest, as keyhole evaluate would.

        keyhole train-policy log.csv --out ranker.npz

        keyhole train-policy log.csv --out forest.npz --model forests --set model.n_trees=500

    The file remembers the names of its features and which rows it was trained on: keyhole evaluate
    finds features by name, and refuses rows it was trained on. Keep what was held out for it:

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
        say(f"Note: nobody clicked on {never}; these are never the best.")
    if judged is not None:
        say(f"\nJudged on the {counted(judged.n_rows, 'row')} held out, reward per row:\n")
        show_intervals(judged)
        show_verdict(judged)
    say(f"The policy is in {record['out']}.")
    if record["held_out"] is not None:
        say(f"The rows held out are in {record['held_out']}.")
