"""The command that learns from query-document lists."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.base.described import described
from keyhole.base.errors import InvalidInput, check_integer, check_seed
from keyhole.base.files import check_file
from keyhole.cli.data_options import Reading
from keyhole.cli.description_options import but, command
from keyhole.cli.learn_report import Learnt, print_results, record_of, say_where, write_results
from keyhole.cli.settings import SettingsFile
from keyhole.cli.terminal import (
    Json,
    output_folder,
    parse_options,
    print_json,
    progress_bar,
    short_name,
)
from keyhole.contracts.measures import Measure
from keyhole.contracts.registry import options_of
from keyhole.data.letor.reader import letor_columns
from keyhole.experiment.description import Experiment
from keyhole.experiment.fitting import check_kind
from keyhole.experiment.worlds import how_to_read, read_lists
from keyhole.lab.figures.canvas import check_figures
from keyhole.lab.heldout import held_out_scores, read_held_out
from keyhole.measures import measure as named_measure
from keyhole.rankers import RANKERS
from keyhole.rankers.lists.models import model_arrays, save_model


def _ranker_options(ranker: str, surrogate: str | None, settings: list[str]) -> dict[str, Any]:
    """Return the options of a ranker, its surrogate as a mapping if that has options too."""
    parsed = parse_options(settings, ("ranker", "surrogate"))
    options, of_surrogate = parsed["ranker"], parsed["surrogate"]
    if surrogate is not None:
        options["surrogate"] = surrogate
    if of_surrogate:
        name = options.get(
            "surrogate",
            options_of(check_kind(ranker, RANKERS.find(ranker), queries=True)).get("surrogate"),
        )
        options["surrogate"] = {"name": name, **of_surrogate}
    return options


def _contenders(ranker: str | None, *, papers: bool) -> list[str]:
    """Return the rankers to play: by default recall and the papers' algorithm for comparison."""
    if ranker is not None:
        return [ranker]
    return ["contextual-rtopk"] if papers else ["recall", "contextual-rtopk"]


@command()
def learn_command(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(help="LETOR or SVMLight files, also .gz/.bz2/.xz.", metavar="FILE…"),
    ],
    ranker: Annotated[
        str | None,
        "A name of 'keyhole list', or file.py:Class or module:Class for your own class. Default: "
        "recall, with the papers' contextual-rtopk for comparison; with --surrogate or --model "
        "contextual-rtopk alone, because recall has neither.",
    ] = None,
    surrogate: Annotated[
        str | None, "The loss that contextual-rtopk or listnet descends: kl, squared, ranksvm, …"
    ] = None,
    measures: Annotated[
        list[str] | None,
        "The measure of a list: NDCG@10 (default), … With --test it may be repeated: held-out "
        "lists are judged by all measures, training lists by the first.",
        "--measure",
    ] = None,
    rounds: Annotated[int | None, "Number of lists to show."] = None,
    passes: Annotated[int | None, "Passes over all queries, instead of --rounds."] = None,
    experiment: Annotated[
        Experiment,
        but(
            top=described(
                None,
                "Number of top documents whose relevance is revealed. Default: the fewest that "
                "contextual-rtopk can learn from; other rankers see all or none.",
            ),
            runs=described(1, "Runs with different orders of the lists; the mean is reported."),
            world=None,
            measure=None,
            items=None,
            reveal=None,
            same_users=None,
            comparator=None,
        ),
    ],
    test: Annotated[
        list[Path] | None,
        "A file of held-out lists to evaluate the learnt ranker on; repeatable.",
    ] = None,
    test_groups: Annotated[
        list[Path] | None, "Group file of each --test that has no qid: (list lengths)."
    ] = None,
    reading: Reading,
    stream: Annotated[
        bool,
        "For files larger than memory: read and learn from one chunk of queries at a time. Lists "
        "are shuffled within a chunk only.",
    ] = False,
    settings: Annotated[
        list[str] | None,
        "Any other option of the ranker or its surrogate, such as ranker.mix=0.2 or "
        "surrogate.max_grade=4.",
        "--set",
        "OWNER.NAME=VALUE",
    ] = None,
    model: Annotated[Path | None, "Save the scorer here, for keyhole rank."] = None,
    out: Annotated[
        Path | None, "Folder for learn.png, learn.svg, curves.csv, results.json."
    ] = None,
    settings_file: SettingsFile = None,
    as_json: Json = False,
) -> None:
    """Learn a ranker online from query-document lists.

    In each round the ranker orders the documents of a query, the relevance of the first few is
    revealed, and the ranker learns. The score is the running mean over the lists shown; beside it
    is the mean of the greedy lists, without exploration. With --test, the final ranker is evaluated
    on held-out lists.

        keyhole learn train.txt --top 1

        keyhole learn train.txt --test test.txt --measure NDCG@10 --measure AP --out out

        keyhole learn train.txt --surrogate kl --top 1 --rounds 100000 --model m.npz

        keyhole learn train.txt --surrogate ordinal --set surrogate.max_grade=4 --top 5

        keyhole rank m.npz test.txt
    """
    ranker, *beside = _contenders(ranker, papers=surrogate is not None or model is not None)
    options = _ranker_options(ranker, surrogate, settings or [])
    runs, seed = experiment.runs, check_seed(experiment.seed)
    _check_numbers(rounds=rounds, passes=passes, top=experiment.top, runs=runs)
    if runs > 1 and model is not None:
        raise InvalidInput(f"--runs must be 1 where a --model is saved, got {runs}.")
    if stream and (reading.shuffle or reading.permute_at is not None):
        raise InvalidInput("--shuffle and --permute-at need lists in memory, without --stream.")
    names = measures or ["NDCG@10"]
    judges = _judges(names, test, test_groups)
    if out is not None:
        check_figures()
    with output_folder(None if model is None else model.parent), output_folder(out) as folder:
        if model is not None:
            check_file(model, "--model")
        paths = [str(path) for path in files]
        streamed = {"stream": True} if stream else {}
        lists = read_lists(paths, reading.how | streamed)
        how = how_to_read(test_groups, raw=reading.raw, keep_empty=reading.keep_empty)
        held_out = read_held_out(test, files, lists.read.n_features, how) if test else None
        if passes is not None:
            rounds = lists.read.n_queries * passes
        rounds = 100_000 if rounds is None else rounds
        asked = replace(
            experiment, ranker=ranker, world=paths, measure=names[0], rounds=rounds,
            ranker_options=options, world_options=reading.world_options(rounds, seed) | streamed,
        )  # fmt: skip
        chosen = asked.build_on(lists.shown(asked.world_options), (), lists)
        if model is not None:
            what = chosen.ranker.state._asdict()
            model_arrays(chosen.ranker, what)  # what cannot be saved is not learnt
        learnt = []
        for each in (chosen, *(chosen.beside(name, {}) for name in beside)):
            with progress_bar(each.experiment.ranker, asked.work, quiet=as_json) as advance:
                trace = each.play(advance)
            order = asked.world_options.get("document_seed")
            scores = held_out_scores(each.ranker, trace.states, held_out, judges, order)
            learnt.append(Learnt(each.experiment, trace, scores))
        if model is not None:
            first_index = letor_columns(files)[0]
            save_model(
                model, chosen.ranker, learnt[0].trace.states[0], not reading.raw, first_index
            )
        records = [record_of(each, lists.read, held_out, judges) for each in learnt]
        record = {
            **records[0],
            **({} if model is None else {"model": str(model)}),
            "against": records[1:],
        }
        if folder is not None:
            write_results(folder, learnt, record, judges[0], _title(judges[0], files))
        if as_json:
            print_json(record)
        else:
            print_results(records)
            say_where(model, folder)


def _check_numbers(**given: int | None) -> None:
    """Raise if a number of rounds and the like is none, or if rounds are counted in two ways."""
    if given["rounds"] is not None and given["passes"] is not None:
        raise InvalidInput("At most one of --rounds and --passes can be given.")
    for name, number in given.items():
        if number is not None:
            check_integer(number, name, at_least=1)


def _judges(
    names: list[str], test: list[Path] | None, test_groups: list[Path] | None
) -> list[Measure]:
    """Return the measures asked for, the first of which judges the lists learnt from, or raise."""
    judges = [named_measure(name) for name in names]
    labels = [judge.label for judge in judges]
    if len(set(labels)) < len(labels):
        raise InvalidInput(f"--measure must be different measures, got {', '.join(labels)}.")
    if len(judges) > 1 and not test:
        raise InvalidInput(
            f"--measure can be repeated for lists held out, with --test, got {', '.join(labels)}."
        )
    if test_groups and not test:
        raise InvalidInput("--test-groups needs the --test that it is about.")
    return judges


def _title(measure: Measure, files: list[Path]) -> str:
    names = [short_name(path.name) for path in files[:2]] + ["…"] * (len(files) > 2)
    return f"{measure.label}, lists of {', '.join(names)}"
