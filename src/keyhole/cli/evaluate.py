"""The command that evaluates a policy on a log."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import keyhole
from keyhole.base.display import counted
from keyhole.base.errors import InvalidInput, check_integer, check_seed, shown
from keyhole.base.files import write_atomically
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.terminal import (
    ERR,
    OUT,
    Json,
    escape,
    output_folder,
    print_json,
    say,
    show_table,
    to_json,
)
from keyhole.data.bandit.formats import read_bandit
from keyhole.game.log import Log
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.figures.values import save_values
from keyhole.offline.bounds import BOUNDS, DEFAULT_BOUND
from keyhole.offline.evaluation import evaluate
from keyhole.offline.lists import LOGGED, evaluate_lists, rankings_by
from keyhole.offline.report import Evaluation, Line, told
from keyhole.offline.target import NAMED
from keyhole.policies.files import load_policy
from keyhole.rankers.lists.models import load_model

_IN_THE_LIMIT = "student-t"
"""The bound whose intervals are shown beside those of the deciding one."""
_RANKERS_LOG = ".npz"
"""The ending of files that Log.save writes."""


def _chosen(
    text: str, option: str, names: Sequence[str], what: str, load: Callable[[Path], Any]
) -> Any:
    """Return a known name as it is, and load anything else from its file."""
    if text in names:
        return text
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):  # no valid file name
        is_file = False
    if not is_file:
        raise InvalidInput(f"{option} must be {', '.join(names)} or {what}, got {shown(text)}.")
    return load(Path(text))


def _n_actions(given: int | None, policies: list[Any]) -> int | None:
    """Return the number of actions according to the policies and the user, if known."""
    if given is not None:
        check_integer(given, "--actions", at_least=1)
    said = [given, *(None if isinstance(policy, str) else policy.n_actions for policy in policies)]
    numbers = {number for number in said if number is not None}
    if len(numbers) > 1:
        raise InvalidInput(
            f"The policies and --actions must agree on the number of actions, got "
            f"{', '.join(map(str, sorted(numbers)))}."
        )
    return numbers.pop() if numbers else None


def _names(policies: list[Any], what: str) -> list[str] | None:
    """Return the union of the policies' feature or action names, in order."""
    given = [getattr(policy, what, None) or () for policy in policies]
    return list(dict.fromkeys(name for names in given for name in names)) or None


def _check_fit(log: Path, is_rankers: bool, refused: dict[str, Any]) -> None:
    """Raise if an option for another kind of log was given."""
    for option, value in refused.items():
        if value is not None:
            wanted, found = (
                ("choices", "a ranker") if is_rankers else ("a ranker (.npz)", "choices")
            )
            raise InvalidInput(f"{option} is for the log of {wanted}; {log} is the log of {found}.")


def _evaluate_choices(
    log: Path, policy: str, baseline: str, actions: int | None, **options: Any
) -> Evaluation:
    """Evaluate a policy on a log, read with the policy's names of actions and features."""
    given = {"--policy": policy, "--baseline": baseline}
    what = "the file of a saved policy"
    policies = [_chosen(text, name, NAMED, what, load_policy) for name, text in given.items()]
    logged = read_bandit(
        log,
        n_actions=_n_actions(actions, policies),
        action_names=_names(policies, "action_names"),
        feature_names=_names(policies, "feature_names"),
    )
    return evaluate(logged, *policies, names=(Path(policy).name, Path(baseline).name), **options)


def _evaluate_lists(path: Path, policy: str, baseline: str, **options: Any) -> Evaluation:
    """Return the verdict on a model of documents."""
    log, what = Log.load(path), "a model saved by keyhole learn, for the log of a ranker"
    rankings = []
    for name, text in {"--policy": policy, "--baseline": baseline}.items():
        chosen = _chosen(text, name, (LOGGED,), what, load_model)
        rankings.append(chosen if chosen == LOGGED else rankings_by(chosen, log, text))
    return evaluate_lists(
        log, rankings[0], rankings[1], names=(Path(policy).name, Path(baseline).name), **options
    )


@command()
def evaluate_command(
    log: Annotated[
        Path,
        typer.Argument(
            help="CSV (also .gz/.bz2/.xz) or Parquet with the columns action, propensity, reward, "
            "x_NAME… and optionally position, time and group; a file of the Open Bandit "
            "Dataset; an export of keyhole db export; or a ranker's Log.save (.npz).",
            metavar="LOG",
        ),
    ],
    policy: Annotated[
        str,
        "The policy to evaluate: a file saved by keyhole train-policy, uniform, logged or "
        "best-fixed.",
    ],
    baseline: Annotated[
        str, "The baseline: a saved policy, uniform, logged or best-fixed."
    ] = "logged",
    confidence: Annotated[float, "The confidence level of the lower bounds."] = 0.95,
    bound: Annotated[
        str, "The confidence bound of the verdict: betting, empirical-bernstein, student-t, …"
    ] = DEFAULT_BOUND,
    rewards: Annotated[
        tuple[float, float] | None,
        "The range of rewards, or of the relevance of documents. Default: 0 1.",
        "LOW HIGH",
    ] = None,
    floor: Annotated[
        float | None, "The smallest propensity of the logging policy. Default: that of the log."
    ] = None,
    clip: Annotated[
        float | None, "The weight limit of the clipped estimate. Default: square root of the rows."
    ] = None,
    actions: Annotated[
        int | None, "The number of actions, if the log may lack the last ones."
    ] = None,
    allow_training_rows: Annotated[
        bool, "Accept rows that the policy was trained on: estimates are too optimistic."
    ] = False,
    measure: Annotated[
        str | None, "For the log of a ranker: DCG (default) or Precision, at a cutoff up to --top."
    ] = None,
    top: Annotated[
        int | None, "For the log of a ranker: the number of revealed items. Default: as logged."
    ] = None,
    seed: Annotated[int, "The random seed."] = 0,
    out: Annotated[Path | None, "Folder for values.png, values.svg, evaluation.json."] = None,
    as_json: Json = False,
) -> None:
    """Evaluate a policy on a log: promote it, or keep the baseline.

    The log holds the actions of another policy, their propensities and rewards. The policy is
    promoted (exit code 0) only if the lower confidence bound of its advantage is above 0;
    otherwise the baseline is kept (exit code 1). Logs with training rows are refused.

    Compare the best single advertisement with the current policy:

        keyhole evaluate log.csv --policy best-fixed --baseline logged

    Evaluate a trained policy on the log of another day, at 99 %, with a figure:

        keyhole train-policy monday.csv --out ranker.npz

        keyhole evaluate tuesday.csv --policy ranker.npz --confidence 0.99 --out out

    Find the best first item from the log of a ranker of the service:

        keyhole db export service.db shop --out shop.parquet

        keyhole evaluate shop.parquet --policy best-fixed

    Compare a model of keyhole learn with the ranker that wrote a log:

        keyhole evaluate log.npz --policy model.npz --measure DCG
    """
    if out is not None:
        check_figures()
    check_seed(seed)
    with output_folder(out) as folder:
        common = {"confidence": confidence, "bound": bound, "seed": seed}
        of_ranker = {"--measure": measure, "--top": top}
        of_choices = {"--floor": floor, "--clip": clip, "--actions": actions}
        is_rankers = log.suffix == _RANKERS_LOG
        _check_fit(log, is_rankers, of_choices if is_rankers else of_ranker)
        if is_rankers:
            result = _evaluate_lists(
                log, policy, baseline, measure=measure or "DCG", k=top,
                max_grade=None if rewards is None else rewards[1], **common,
            )  # fmt: skip
        else:
            result = _evaluate_choices(
                log, policy, baseline, actions, rewards=rewards, floor=floor, clip=clip,
                allow_training_rows=allow_training_rows, **common,
            )  # fmt: skip
        record = {
            **result.as_dict(),
            "log": str(log),
            "allow_training_rows": allow_training_rows,
            "seed": seed,
            "version": keyhole.__version__,
        }
        if folder is not None:
            write_atomically(folder / "evaluation.json", to_json(record).encode())
            save_values(folder, "values", result)
        if as_json:
            print_json(record)
        else:
            _print(result)
            if folder is not None:
                say(f"Figure and results are in {folder}.")
    if result.verdict != "promote":
        raise SystemExit(ExitCode.NO)


def _print_lines(title: str, lines: dict[str, Line]) -> None:
    headings = [f"{heading.replace('-', '-' + chr(10))}>" for heading in ("value", *BOUNDS)]
    rows = []
    for name, line in lines.items():
        bounds = [line.bounds[each].value for each in BOUNDS]
        cells = ["" if value is None else f"{value:.5f}" for value in bounds]
        rows.append([name, f"{line.estimate.value:.5f}", *cells])
    show_table(title, ["estimate", *headings], rows, boxed=False)
    OUT.print()


def show_intervals(result: Evaluation) -> None:
    """Print the deciding estimates, with the intervals of the deciding and of Student's bound."""
    names = list(dict.fromkeys([result.decided_by, _IN_THE_LIMIT]))
    rows = []
    for name, lines in result.compared:
        line = lines[result.decisive]
        ends = [end for each in names for end in line.intervals[each].ends]
        rows.append([escape(name), *(told(number) for number in (line.estimate.value, *ends))])
    headings = [f"{name}\n{end}>" for name in names for end in ("from", "to")]
    show_table(
        f"Two-sided, at {result.confidence:.3g} ({result.decisive})",
        ["", "value>", *headings],
        rows,
        boxed=False,
    )
    OUT.print()


def show_verdict(result: Evaluation) -> None:
    """Print notes, warnings and the verdict."""
    for note in result.notes:
        say(f"Note: {note}")
    for warning in result.warnings:
        say(f" {warning}", "Warning:", "yellow", ERR)
    colour = "green" if result.verdict == "promote" else "yellow"
    say(f": {result.sentence}", result.verdict, f"bold {colour}")


def _print(result: Evaluation) -> None:
    say(
        f"Reward per row of {counted(result.n_rows, 'row')}, with lower confidence bounds at "
        f"{result.confidence:.3g}.\n"
    )
    for name, lines in result.compared:
        _print_lines(escape(name), lines)
    show_intervals(result)
    for judged in (result.policy, result.baseline):
        say(judged.sentence)
    show_verdict(result)
