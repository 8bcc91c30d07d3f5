"""The command that tells whether a measure can be learnt from the feedback."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import keyhole
from keyhole.base.errors import InvalidInput, shown
from keyhole.base.files import check_file, write_atomically
from keyhole.base.limits import size_in_words
from keyhole.cli.description_options import command
from keyhole.cli.exit_codes import VerdictIsNo
from keyhole.cli.terminal import ERR, OUT, Json, escape, print_json, say, to_json
from keyhole.monitoring.board import InvalidCertificate, UnreadableCertificate
from keyhole.monitoring.classification import RATES, Classification, classify, classify_matrices
from keyhole.monitoring.exact import read_number
from keyhole.monitoring.verify import check_certificate

_LARGEST_FILE = 64 * 2**20
"""The maximum size of a loss matrix or a certificate in bytes."""

_MEANINGS = {
    "trivial": "one ranking is always best",
    "local": "neighbouring rankings can be compared by showing one of the two",
    "global": "all rankings can be compared, some only by showing a third, worse one",
    "hopeless": "two crowds give the same feedback but have different best rankings",
    "unknown": "no rule applies and the game is too large to enumerate",
}


@command()
def classify_command(
    measure: Annotated[
        str | None, typer.Argument(help="The measure of a ranking: NDCG, DCG@10, AP, …")
    ] = None,
    items: Annotated[int | None, "Length of the list."] = None,
    top: Annotated[int | None, "Number of top items whose relevance is revealed."] = None,
    grades: Annotated[int, "Number of relevance grades, from 0; 2: binary."] = 2,
    method: Annotated[
        str, "auto, enumeration (small games) or rule (any number of items)."
    ] = "auto",
    certificate: Annotated[Path | None, "Write the certificate to this JSON file.", "FILE"] = None,
    check: Annotated[Path | None, "Check this certificate instead.", "FILE"] = None,
    loss: Annotated[
        Path | None,
        "Classify your own game instead: a .csv of losses without a header, with a row per action "
        "and a column per outcome. 1/3 and 0.25 are read exactly.",
        "FILE",
    ] = None,
    feedback: Annotated[
        Path | None, "With --loss: the feedback symbols, as a .csv of the same shape.", "FILE"
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell whether a measure can be learnt from the feedback, at which rate, and why.

    With the number of rounds T, the regret of the best algorithm grows as T (hopeless: no ranker
    can learn the measure), T^(2/3) (global), T^(1/2) (local) or not at all (trivial).

    NDCG of twenty items with feedback on the first, and possible remedies:

        keyhole classify NDCG --items 20 --top 1

    Write a certificate and check it:

        keyhole classify NDCG --items 4 --top 2 --certificate proof.json

        keyhole classify --check proof.json

    Classify your own game:

        keyhole classify --loss loss.csv --feedback feedback.csv
    """
    given = [measure is not None, check is not None, loss is not None or feedback is not None]
    if sum(given) != 1:
        raise InvalidInput("Exactly one of MEASURE, --check and --loss must be given.")
    if measure is None and (items is not None or top is not None):
        raise InvalidInput("--items and --top need a measure.")
    if check is not None:
        if certificate is not None:
            raise InvalidInput("At most one of --certificate and --check can be given.")
        _print_check(check, as_json)
        return
    if certificate is not None:
        check_file(certificate, "--certificate")
    if measure is None:
        answer = _classify_files(loss, feedback)
    elif items is None or top is None:
        raise InvalidInput("--items and --top must be given with a measure.")
    else:
        answer = classify(measure, items, top, grades, method=method)
    if as_json:
        print_json({**answer.as_dict(), "version": keyhole.__version__})
    else:
        _print_answer(answer)
    if certificate is not None:  # after the answer, which may have no certificate
        _write_certificate(answer, certificate)


def _write_certificate(answer: Classification, path: Path) -> None:
    try:
        proof = answer.certificate()
    except InvalidInput as error:
        raise InvalidInput(f"No certificate was written: {error}") from None
    write_atomically(path, to_json(proof).encode())
    say(f"The certificate is in {path}.", console=ERR)


def _classify_files(loss: Path | None, feedback: Path | None) -> Classification:
    if loss is None or feedback is None:
        raise InvalidInput("--loss and --feedback must be given together.")
    losses, seen = _read_matrix(loss), _read_matrix(feedback)
    for row, entries in enumerate(losses, start=1):
        for column, entry in enumerate(entries, start=1):
            try:
                read_number(entry)
            except InvalidInput:
                raise InvalidInput(
                    f"{loss} must hold numbers such as 2, 0.25 or 1/3, of at most 2000 characters "
                    f"and exponents up to 300, got {shown(entry)} in row {row}, column {column}."
                ) from None
    return classify_matrices(losses, seen)


def _read_matrix(path: Path) -> list[list[str]]:
    try:
        lines = io.StringIO(_read_text(path), newline="")
        rows = [[entry.strip() for entry in row] for row in csv.reader(lines) if row]
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InvalidInput(f"{path} must be a readable .csv file: {why}.") from None
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InvalidInput(
                f"{path} must have rows of equal length ({len(rows[0])}), got {len(row)} in row "
                f"{number}."
            )
    return rows


def _read_text(path: Path) -> str:
    """Return the text of a file up to the size limit: a device may be endless."""
    with path.open("rb") as file:
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise InvalidInput(f"it is larger than {size_in_words(_LARGEST_FILE)}")
    return content.decode("utf-8-sig")


# --------------------------------------------------------------------------- answers


def _print_answer(answer: Classification) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    if answer.measure is not None:
        shown = f"{answer.n_items} items, the top {answer.k} revealed, {answer.grades} grades"
        table.add_row("game", f"{answer.measure}, {shown}")
    table.add_row("class", f"{answer.class_}: {_MEANINGS[answer.class_]}")
    table.add_row("rate", _rate(answer))
    table.add_row("why", escape(answer.reason))
    if answer.source is not None:
        table.add_row("source", _source(answer))
    for index, sentence in enumerate(answer.advice):
        table.add_row("advice" if index == 0 else "", escape(sentence.replace("`", "")))
    OUT.print(table, highlight=False)


def _rate(answer: Classification) -> str:
    if answer.class_ == "unknown":
        return "not known"
    return f"{answer.rate}: the growth of the best algorithm's regret with the rounds T"


def _source(answer: Classification) -> str:
    theorem = "classes of Bartók et al. 2014, Theorem 2"
    if answer.source == "rule":
        return f"rule, by the interaction order of loss differences; {theorem}"
    if answer.exact:
        return f"enumeration, exact; {theorem}"
    margin = "" if answer.margin is None else f", smallest margin {answer.margin:.1e} of it"
    return f"enumeration, with tolerance {answer.tolerance:g}{margin}; {theorem}"


def _print_check(path: Path, as_json: bool) -> None:
    """Check a certificate and print what it proves, or raise."""
    try:
        content = json.loads(_read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InvalidInput(f"{path} must be a certificate in a JSON file: {why}.") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{path} must be a certificate in a JSON file, got no JSON object.")
    try:
        class_ = check_certificate(content)
    except UnreadableCertificate as error:
        raise InvalidInput(f"{path} proves nothing: {error}") from None
    except InvalidCertificate as error:
        raise VerdictIsNo(f"{path} proves nothing: {error}") from None
    game = content["game"]
    constant = content["proofs"].get("hopeless", {}).get("constant")
    if as_json:
        record = {"proves": True, "class": class_, "rate": RATES[class_]}
        print_json({**record, "constant": constant, "game": game})
        return
    name = f"a game of {len(game.get('loss', []))} actions"
    if "measure" in game:
        name = f"{game['measure']} on {game['n_items']} items with {game['grades']} grades"
        name += f" and the top {game['k']} revealed"
    forced = "" if constant is None else f", at least {float(Fraction(constant)):.6g} T"
    say(f"The certificate is valid: {name} is {class_}, regret {RATES[class_]}{forced}.")
