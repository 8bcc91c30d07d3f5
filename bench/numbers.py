"""Every number that pages quote, measured again from an empty cache of compiled code.

    python -m bench.numbers                  # all of it: about an hour and a half
    python -m bench.numbers --only fig3      # rows whose name has this pattern
    python -m bench.numbers --again          # nothing that was finished before counts

``numbers.toml`` says what is measured and where it is quoted. Each row is measured in a process of
its own; all share one cache of compiled code, which was empty when the first began. Finished rows
and studies are kept under out/numbers for as long as the code and the study stay the same. The
record goes to out/numbers/numbers.json and numbers.md, and to docs/numbers.md once every row is
measured. Exit code 1 if a quoted number is not what was measured, a row fails, or a claim of a
study does that is not known to, or one that is known to fail holds.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.numbers_quoted import CLAIM, ROOT, Comparison, compare
from bench.numbers_record import as_markdown, circumstances
from keyhole.base.files import write_atomically

TABLE = Path(__file__).with_name("numbers.toml")
OUT = ROOT / "out" / "numbers"
PAGES, PAGE = ROOT, ROOT / "docs" / "numbers.md"


@dataclass(frozen=True)
class Outcome:
    """A row as it was measured: ``values`` is None where it was not, and ``error`` says why."""

    name: str
    values: dict[str, float] | None
    seconds: float
    error: str
    compared: tuple[Comparison, ...]

    @property
    def agrees(self) -> bool:
        """Whether the row was measured and every number of it is what is quoted."""
        return self.values is not None and all(each.agrees for each in self.compared)


def read_table(path: Path = TABLE) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that are measured here, and the quotations that other commands measure."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    for row in table["measured"]:
        if "study" in row:  # its claims are what it measures, and where its curves end
            key = row["study"]
            row["name"] = key
            row["code"] = (
                f"result = reproduced({key!r})\nvalues |= of_study(result)\n{row.get('code', '')}"
            )
    return table


def code_stamp() -> str:
    """Return a digest of all code that decides about what is measured."""
    return _digest((ROOT / "src" / "keyhole").rglob("*.py"), ROOT / "bench" / "numbers_tools.py")


def row_stamp(row: dict[str, Any]) -> str:
    """Return a digest of what decides about one row besides: its own code and its study."""
    return _digest((ROOT / "papers" / row.get("study", "none")).glob("*.toml"), text=row["code"])


def _digest(files: Iterable[Path], *more: Path, text: str = "") -> str:
    digest = hashlib.sha256(text.encode())
    for path in sorted([*files, *more]):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def measure(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a row measures, from its file or by a process of its own."""
    kept = folder / "rows" / f"{row_stamp(row)}.json"
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-m", "bench.numbers_tools", str(folder / "studies")],
        input=row["code"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")},
        check=False,
    )
    seconds = time.perf_counter() - began
    if ran.returncode:
        return {"values": None, "seconds": seconds, "error": ran.stderr.strip()[-2000:]}
    found = {"values": json.loads(ran.stdout), "seconds": seconds, "error": ""}
    write_atomically(kept, json.dumps(found, indent=2).encode())
    return found


def judged(row: dict[str, Any], found: dict[str, Any]) -> Outcome:
    """Return a measured row with every number that is quoted of it."""
    values = found["values"]
    try:
        quotations = row.get("quoted", [])
        compared = [each for one in quotations for each in compare(one, values, PAGES)]
    except (KeyError, ValueError) as error:  # a name without a value, a text that is not there
        return Outcome(row["name"], None, found["seconds"], f"{error}", ())
    if "study" in row:
        compared += claims_of(row, values)
    return Outcome(row["name"], values, found["seconds"], found["error"], tuple(compared))


def claims_of(row: dict[str, Any], values: dict[str, float] | None) -> list[Comparison]:
    """Return how many claims of a study fail, and each that fails or is known to.

    ``known_failures`` of a row gives the reason of each by its claim: one that holds after all
    disagrees as well, for then the reason is no longer true.
    """
    file, known = f"papers/{row['study']}/expected.toml", row.get("known_failures", {})
    if values is None:
        return [Comparison(file, "claims that fail", str(len(known)), None, None)]
    judged = {
        name.removeprefix(CLAIM): held for name, held in values.items() if name.startswith(CLAIM)
    }
    failing = {claim for claim, held in judged.items() if not held}
    named = [
        Comparison(
            file,
            f"{claim}: {known.get(claim, 'not known to fail')}",
            "fails" if claim in known else "holds",
            judged.get(claim),
            None if claim not in judged else claim in known and claim in failing,
        )
        for claim in sorted(failing | known.keys())
    ]
    found, agrees = float(len(failing)), failing == known.keys() & judged.keys()
    return [Comparison(file, "claims that fail", str(len(known)), found, agrees), *named]


def write_record(outcomes: Iterable[Outcome], table: dict[str, Any], stamp: str) -> bool:
    """Write the record, also as a page where it is whole; return whether everything agrees."""
    outcomes = list(outcomes)
    where = circumstances(stamp)
    elsewhere = table["elsewhere"]
    record = {**where, "rows": [asdict(each) for each in outcomes], "elsewhere": elsewhere}
    write_atomically(OUT / "numbers.json", (json.dumps(record, indent=2) + "\n").encode())
    page = as_markdown(outcomes, elsewhere, where).encode()
    write_atomically(OUT / "numbers.md", page)
    if all(each.values is not None for each in outcomes):
        write_atomically(PAGE, page)
    return all(each.agrees for each in outcomes)


def main(arguments: list[str] | None = None) -> int:
    """Measure, compare, write the record; return 1 if anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.numbers")
    parser.add_argument("--only", default="", help="measure rows whose name has this pattern")
    parser.add_argument("--again", action="store_true", help="forget what was finished before")
    options = parser.parse_args(arguments)
    table, stamp = read_table(), code_stamp()
    folder = OUT / stamp
    if options.again:
        shutil.rmtree(folder, ignore_errors=True)
    (folder / "compiled").mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number, row in enumerate(table["measured"], 1):
        if re.search(options.only, row["name"]):
            print(f"[{number}/{len(table['measured'])}] {row['name']} …", end=" ", flush=True)
            outcome = judged(row, measure(row, folder))
            n_wrong = sum(not each.agrees for each in outcome.compared)
            word = "agrees" if outcome.agrees else f"{n_wrong} of {len(outcome.compared)} disagree"
            print(outcome.error or f"{word} ({outcome.seconds:.0f} s)", flush=True)
            for each in outcome.compared:
                if each.agrees is False:
                    print(f"    {each.file}: {each.text!r}: {each.quoted}, not {each.measured!r}")
            outcomes.append(outcome)
        else:
            outcomes.append(judged(row, {"values": None, "seconds": 0.0, "error": "not asked for"}))
    everything = write_record(outcomes, table, stamp)
    asked = [each for each in outcomes if each.error != "not asked for"]
    print(f"The record is in {OUT}.")
    return 0 if everything or (options.only and all(each.agrees for each in asked)) else 1


if __name__ == "__main__":
    sys.exit(main())
