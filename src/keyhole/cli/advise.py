"""The command that says which ranker to take."""

from typing import Annotated

import typer

from keyhole.cli.description_options import command
from keyhole.cli.terminal import Json, print_json, say
from keyhole.lab.advice import advise, as_record


@command(called={"rounds": "--rounds", "n_features": "--features"})
def advise_command(
    measure: Annotated[str, typer.Argument(help="How rankings are judged: DCG, Precision@5, …")],
    items: Annotated[int, "Length of the list, or of the longest."],
    top: Annotated[int, "How many of its first items are shown."] = 1,
    grades: Annotated[int, "Relevance is one of 0 to this less one; 2: yes or no."] = 2,
    rounds: Annotated[int | None, "How long it is to be used, for what bounds say by then."] = None,
    features: Annotated[int, "Features of a document, where lists come with queries."] = 0,
    as_json: Json = False,
) -> None:
    """Say which ranker to take, what it guarantees, and what no ranker can.

    The oracle of keyhole classify says whether what is shown can teach the measure at all; every
    ranker is asked whether it fits.

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
