"""The command for bounds: on the excess risk on new lists, or on the regret of a game."""

from dataclasses import asdict, replace
from typing import Annotated

import keyhole
from keyhole.base.errors import InvalidInput
from keyhole.bounds.guarantees import Problem, RiskBound, guarantees, smallest
from keyhole.bounds.regrets import RegretBound, largest_regret, regret_bounds
from keyhole.cli.description_options import command
from keyhole.cli.terminal import Json, escape, print_json, say, show_table
from keyhole.contracts.registry import options_of
from keyhole.surrogates import SURROGATES, surrogate as named_surrogate
from keyhole.surrogates.base import Surrogate


@command(called={"eps": "--epsilon", "k": "--top"})
def bound_command(
    *,
    problem: Problem,
    epsilon: Annotated[float | None, "Softness of smooth_dcg (default 0.1)."] = None,
    safe: Annotated[bool, "Keep the ceilings of covering numbers, which papers omit."] = False,
    rounds: Annotated[
        int | None, "Instead: bound the regret of a game of this many rounds on one list."
    ] = None,
    top: Annotated[int, "With --rounds: number of positions revealed per round."] = 1,
    measure: Annotated[str, "With --rounds: the measure."] = "DCG",
    as_json: Json = False,
) -> None:
    """Bound the excess risk on new lists of a ranker trained on n lists.

    Prints all applicable bounds of the thesis's chapter on generalisation, smallest first, with
    their assumptions, and the older bound that grows with the length of lists. Values are in
    units of the loss: a bound above the range of the loss is vacuous.

        keyhole bound --surrogate listnet --queries 10000 --items 100

    If the best weights have a small loss, smooth losses have faster rates:

        keyhole bound --surrogate squared --items 10 --queries 1000000 --optimal-loss 0.01

    Many features, few of them relevant:

        keyhole bound --ball l1 --features 100000 --radius 3 --norm 1 --queries 1000000000

    With --rounds, bounds the regret of rankers of a fixed list against an oblivious adversary:

        keyhole bound --rounds 100000000 --items 20 --top 1 --measure DCG
    """
    if rounds is not None:
        items = problem.n_items
        most = largest_regret(measure, items, rounds, problem.max_grade)
        regrets = regret_bounds(measure, items, rounds, top, problem.max_grade)
        if as_json:
            print_json(_regret_record(measure, items, rounds, top, most, regrets))
        else:
            _print_regrets(measure, items, rounds, most, regrets)
        return
    problem = replace(problem, surrogate=_loss(problem.loss.name, epsilon, problem.max_grade))
    found = guarantees(problem, safe=safe)
    if as_json:
        print_json(_record(problem, found))
    else:
        _print(problem, found)


def _loss(name: str, epsilon: float | None, grade: float) -> Surrogate:
    cls = SURROGATES.get(name)
    options: dict[str, float] = {}
    if cls is not None and "max_grade" in options_of(cls):
        options["max_grade"] = grade
    if epsilon is not None:
        if cls is None or "eps" not in options_of(cls):
            raise InvalidInput(f"--epsilon must be omitted for {name}: only smooth_dcg takes it.")
        options["eps"] = epsilon
    return named_surrogate(name, **options)


def _record(problem: Problem, found: list[RiskBound]) -> object:
    best = smallest(found)
    return {
        "surrogate": problem.loss.name,
        "queries": problem.n_queries,
        "items": problem.n_items,
        "radius": problem.radius,
        "norm": problem.norm,
        "ball": problem.ball,
        "features": problem.n_features,
        "confidence": problem.confidence,
        "grade": problem.max_grade,
        "loss_range": problem.range,
        "lipschitz": problem.constant("lipschitz"),
        "lipschitz_l2": problem.constant("lipschitz", "l2"),
        "smoothness": problem.constant("smoothness"),
        "optimal_loss": problem.optimal_loss,
        "smallest": None if best is None else best.name,
        "bounds": [
            {
                "name": row.name,
                "source": row.source,
                "learner": row.learner,
                "holds": row.holds,
                "value": row.value,
                "applies": row.value is not None,
                "says_something": row.value is not None and row.value < problem.range,
                "needs": row.needs,
            }
            for row in found
        ],
        "version": keyhole.__version__,
    }


def _print(problem: Problem, found: list[RiskBound]) -> None:
    title = f"{problem.loss.name}: excess risk on new lists after {problem.n_queries:,} lists"
    rows = []
    for row in found:
        if row.value is not None:
            empty = "\nsays nothing" if row.value >= problem.range else ""
            name = f"{row.name}\n[dim]{row.source}[/]"
            rows.append((name, f"{row.value:.4g}{empty}", row.holds, row.needs))
    show_table(title, ("bound", "at most>", "holds", "asks for"), rows)
    best = smallest(found)
    if best is not None:
        say(f"Smallest: {best.name}, {best.value:.4g}.")
    for row in found:
        if row.value is None:
            say(f"Not applicable: {row.name}, which needs {row.needs}.")
    constants = [("G", problem.constant("lipschitz")), ("H", problem.constant("smoothness"))]
    known = ", ".join(f"{name} = {value:.4g}" for name, value in constants if value is not None)
    say(
        f"Losses range over {problem.range:.4g}; {known or 'no constant'} for the largest change "
        f"of a score."
    )


def _regret_record(
    measure: str, items: int, rounds: int, top: int, most: float, found: list[RegretBound]
) -> object:
    return {
        "measure": measure,
        "items": items,
        "rounds": rounds,
        "top": top,
        "largest_regret": most,
        "bounds": [asdict(row) | {"says_something": row.value < most} for row in found],
        "version": keyhole.__version__,
    }


def _print_regrets(
    measure: str, items: int, rounds: int, most: float, found: list[RegretBound]
) -> None:
    rows = [
        (
            f"{row.ranker}\n[dim]{row.source}[/]",
            f"{row.value:.4g}",
            f"{row.value / rounds:.4g}" + ("" if row.value < most else "\nsays nothing"),
            row.sees,
            row.needs,
        )
        for row in found
    ]
    title = f"{escape(measure)}: regret after {rounds:,} rounds on {items} items, any crowd"
    show_table(title, ("ranker", "at most>", "per round>", "sees", "must know"), rows)
    say(f"The regret of any ranker is at most {most / rounds:.4g} per round.")
