"""The command that runs simulated users against a service."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, TextColumn

import keyhole
from keyhole.base.errors import check_integer, check_number, check_seed
from keyhole.cli.data_options import RatingsOptions
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import ExitCode
from keyhole.cli.simulated_users import (
    Crowd,
    Results,
    Visits,
    find_or_create,
    judge,
)
from keyhole.cli.terminal import (
    ERR,
    Json,
    escape,
    parse_options,
    print_json,
    say,
    show_table,
    shown_number,
)
from keyhole.experiment.worlds import check_fixed, make_world

if TYPE_CHECKING:
    from keyhole.client import AsyncClient

_LEAST_WAIT = 5.0


@dataclass(frozen=True)
class Plan:
    """A simulation: the users, their ranker, and their rate."""

    ranker: str
    crowd: Crowd
    asked: dict[str, Any]
    """The requested items, measure and k of the ranker, if given."""
    wait_seconds: float
    rounds: int
    rate: float | None
    concurrency: int


async def play_plan(
    client: "AsyncClient", plan: Plan, watch: Callable[[Results], None] | None, begun: list[Visits]
) -> None:
    """Find or create the ranker and play; ``begun`` has the visits even after an interrupt."""
    info = await find_or_create(
        client, plan.ranker, plan.crowd.world, plan.asked, plan.wait_seconds
    )
    names = plan.asked.get("items", info.request["items"])
    begun.append(Visits(client, info, names, plan.crowd))
    await begun[0].play(plan.rounds, rate=plan.rate, concurrency=plan.concurrency, watch=watch)


@command()
def simulate_command(
    *,
    url: Annotated[
        str, typer.Argument(help="The URL of the service, such as http://localhost:8360.")
    ],
    ranker: Annotated[str, "The ranker of the service; created if it does not exist."] = "crowd",
    items: Annotated[
        str | None, "The length of the list, or its items: tea,coffee,milk. Default: the world's."
    ] = None,
    world: Annotated[
        str,
        "The source of relevance: a world of 'keyhole list', or a .csv file of ratings, wide or "
        "long.",
    ] = "flips",
    ratings: RatingsOptions,
    settings: Annotated[
        list[str] | None,
        "Another option of the world, such as world.flip=0.2.",
        "--set",
        "world.NAME=VALUE",
    ] = None,
    measure: Annotated[
        str | None, "The measure. Default: DCG, or that of the existing ranker."
    ] = None,
    top: Annotated[
        int | None, "Number of revealed items. Default: 1, or that of the existing ranker."
    ] = None,
    rounds: Annotated[int, "Users who come."] = 10_000,
    rate: Annotated[float | None, "Users per second. Default: as fast as possible."] = None,
    concurrency: Annotated[int, "Users at once."] = 1,
    delay: Annotated[float, "Mean delay of feedback in seconds."] = 0.0,
    delay_rounds: Annotated[float, "Mean delay of feedback in rounds."] = 0.0,
    lose: Annotated[float, "Share of feedback that never arrives."] = 0.0,
    drift: Annotated[
        float | None,
        "Reverse the preferences after this share of the rounds, such as 0.5: the first item is "
        "then liked as the last one was before, and so on.",
    ] = None,
    wait: Annotated[
        float | None,
        "Seconds that a new ranker waits for feedback. Default: four times the delay, at least "
        "5 seconds.",
    ] = None,
    seed: Annotated[int, "The random seed of the users."] = 0,
    key: Annotated[
        str | None,
        typer.Option(envvar="KEYHOLE_KEY", help="An access key, if the service asks for one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run simulated users against a running service.

    Every user gets a list and gives feedback on its first items, late or never with the options
    below. The ranker is created if it does not exist. Prints the average regret against the best
    fixed list for the same users, and that of a learner with full information.

    A fifth of the users never answers, on a list of 20; watch http://localhost:8360:

        keyhole simulate-users http://localhost:8360 --items 20 --lose 0.2 --delay-rounds 30

    A hundred users per second, whose preferences change half way:

        keyhole simulate-users http://localhost:8360 --rate 100 --drift 0.5 --ranker changing

    Your own ratings, of which 4 or more are relevant:

        keyhole simulate-users http://localhost:8360 --world ratings.csv --threshold 4

    The users depend only on the seed, not on the lists. Ctrl-C prints the results so far.
    """
    options = parse_options(settings or [], owners=("world",))["world"] | ratings.given
    check_integer(rounds, "--rounds", at_least=1)
    n_items, names = _items_of(items)
    check_fixed(world)
    people, _, _ = make_world(world, n_items, options)
    if people.length is not None:
        check_integer(rounds, "--rounds", at_least=1, at_most=people.length)
    change = None
    if drift is not None:
        change = int(check_number(drift, "--drift", at_least=0.0, at_most=1.0) * rounds)
    crowd = Crowd(people, check_seed(seed), lose, delay_rounds, delay, change)
    asked = {"items": names or people.item_names, "measure": measure, "k": top}
    plan = Plan(
        ranker,
        crowd,
        {name: value for name, value in asked.items() if value is not None},
        max(_LEAST_WAIT, 4 * delay) if wait is None else wait,
        rounds,
        None if rate is None else check_number(rate, "--rate", above=0.0),
        check_integer(concurrency, "--concurrency", at_least=1, at_most=1_000),
    )
    _play(keyhole.client.AsyncClient(url, key=key, retries=6), plan, as_json)


def _items_of(text: str | None) -> tuple[int | None, list[str] | None]:
    """Parse ``--items``: the length of the list, and its names if given.

    Examples
    --------
    >>> _items_of("20"), _items_of("tea, milk"), _items_of(None)
    ((20, None), (2, ['tea', 'milk']), (None, None))
    """
    if text is None or text.isdecimal():
        return (None if text is None else int(text)), None
    names = [name.strip() for name in text.split(",")]
    return len(names), names


def _play(client: "AsyncClient", plan: Plan, as_json: bool) -> None:
    """Play, and print the results, also after an interrupt or an error."""
    begun: list[Visits] = []
    ended: BaseException | None = None

    async def play_and_close(watch: Callable[[Results], None]) -> None:
        async with client:
            await play_plan(client, plan, watch, begun)

    with _progress(plan.rounds, quiet=as_json) as watch:
        try:
            asyncio.run(play_and_close(watch))
        except BaseException as error:
            ended = error
    if not begun or not begun[0].seen.scores:
        if ended is not None:
            raise ended
        return
    record = {
        **judge(begun[0].seen, begun[0].measure, plan.crowd.seed),
        "ranker": plan.ranker,
        "world": plan.crowd.world.spec,
        "seed": plan.crowd.seed,
    }
    if as_json:
        print_json(record)
    else:
        _print_table(record)
    if isinstance(ended, KeyboardInterrupt):
        say(f"Interrupted after {record['rounds']} rounds.", console=ERR)
        raise SystemExit(int(ExitCode.INTERRUPTED))
    if ended is not None:
        raise ended


@contextmanager
def _progress(rounds: int, quiet: bool) -> Iterator[Callable[[Results], None]]:
    """Show a progress line on a terminal: rounds, rate and mean relevance."""
    line = TextColumn(
        "{task.completed:.0f} of {task.total} rounds, {task.fields[speed]:.0f} per second, "
        "mean relevance {task.fields[relevance]:.3f}"
    )
    with Progress(line, console=ERR, disable=quiet or not ERR.is_terminal) as bar:
        task = bar.add_task("", total=rounds, speed=0.0, relevance=0.0)

        def watch(seen: Results) -> None:
            n_rounds = len(seen.scores)
            speed = n_rounds / seen.seconds if seen.seconds else 0.0
            bar.update(task, completed=n_rounds, speed=speed, relevance=seen.mean_relevance)

        yield watch


def _print_table(record: dict[str, Any]) -> None:
    informed, best = record["full_information"], record["best_fixed_score"]
    rows = [
        (f"{record['ranker']}, served", shown_number(record["average_regret"]),
         shown_number(record["average_score"])),
        (f"{informed['ranker']} with the noise of its theorem, full information",
         shown_number(informed["average_regret"]), shown_number(informed["average_score"])),
        ("best fixed list", shown_number(None if best is None else 0.0), shown_number(best)),
    ]  # fmt: skip
    show_table(
        escape(f"{record['measure']}, {record['rounds']} rounds"),
        ("", "average regret>", "average score>"),
        [(escape(first), *rest) for first, *rest in rows],
    )
    told = ", ".join(f"{count} {name}" for name, count in record["feedback"].items())
    speed = record["rounds_per_second"] or 0.0
    say(f"Feedback: {told}. {speed:.0f} rounds per second.")
    for note in record["notes"]:
        say(f"Note: {note}.")
