"""The command that recommends a ranker."""

from typing import Annotated

import typer

from keyhole.cli.description_options import command
from keyhole.cli.terminal import Json, print_json, say
from keyhole.lab.advice import advise, as_record


@command(called={"rounds": "--rounds", "n_features": "--features"})
def advise_command(
    measure: Annotated[str, typer.Argument(help="The measure of a ranking: DCG, Precision@5, …")],
    items: Annotated[int, "The length of the longest list."],
    top: Annotated[int, "Number of top items whose relevance is revealed."] = 1,
    grades: Annotated[int, "Number of relevance grades, from 0; 2: binary."] = 2,
    rounds: Annotated[int | None, "Number of rounds at which to evaluate the bounds."] = None,
    features: Annotated[int, "Number of features, for query-document lists."] = 0,
    as_json: Json = False,
) -> None:
    """Recommend a ranker, with its guarantee and the limits of every ranker.

    Classifies the measure as keyhole classify does, and constructs every ranker to see which ones
    apply.

        keyhole advise DCG --items 20 --top 1 --rounds 1000000

        keyhole advise Precision@5 --items 20

        keyhole advise NDCG@10 --items 20 --features 46
    """
    advice = advise(measure, items, top, grades, rounds=rounds, n_features=features)
    record = as_record(advice)
    if as_json:
        print_json(record)
        return
    for sentence in record["advice"]:
        say(f"{sentence}.")
    if advice.without_guarantee:
        say(f"Fits too, without a guarantee: {', '.join(advice.without_guarantee)}.")
    for why in dict.fromkeys(advice.left_out.values()):
        names = [name for name, reason in advice.left_out.items() if reason == why]
        say(f" {why}", f"No choice here: {', '.join(names)}.", "dim")
