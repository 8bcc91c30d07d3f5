"""Numbers that pages quote: where they stand, at which precision, and whether they still agree.

A quotation is the text around numbers with the numbers cut out, such as ``ftpl {mean} ± {error}``:
what a page says at these places is compared with the measured values of these names, rounded as
the page rounds them. The quoted numbers themselves stand in the page alone.
"""

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CLAIM = "claim: "
"""What begins the name of a value that says whether a claim of a study holds: 1 or 0."""

_NUMBER = r"-?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e-?\d+)?"
_PLACE = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Comparison:
    """A quoted number or word beside what was measured; ``agrees`` is None where nothing was."""

    file: str
    text: str
    quoted: str
    measured: float | None
    agrees: bool | None


@cache
def _page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _pattern(text: str) -> re.Pattern[str]:
    """Return what finds a quotation: any number in each place, any space where there is space."""
    parts = _PLACE.split(text)[::2]
    spaced = (r"\s+".join(re.escape(word) for word in re.split(r"\s+", part)) for part in parts)
    return re.compile(rf"(?<![\d.])({_NUMBER})(?![\d])".join(spaced))


def find(quotation: dict[str, Any], root: Path = ROOT) -> list[str]:
    """Return the numbers that stand at the places of a quotation, as they are written.

    The text must stand in its file exactly once, or it would be unclear what is compared.
    """
    found = [match.groups() for match in _pattern(quotation["text"]).finditer(
        _page(root / quotation["file"])
    )]  # fmt: skip
    if len(found) != 1:
        raise ValueError(
            f"{quotation['text']!r} must stand in {quotation['file']} once, "
            f"but stands there {len(found)} times."
        )
    return list(found[0])


def _value(quoted: str) -> float:
    return float(quoted.replace(",", ""))


def agrees(quoted: str, measured: float, digits: int | None = None) -> bool:
    """Return whether a number is what is quoted, to the last decimal that is written.

    With ``digits`` so many digits count in both, which is for numbers that a page calls about.
    """
    if not math.isfinite(measured):
        return False
    if digits is not None:
        return float(f"{_value(quoted):.{digits}g}") == float(f"{measured:.{digits}g}")
    mantissa, _, power = quoted.partition("e")
    n_decimals = len(mantissa.partition(".")[2]) - int(power or 0)
    half_unit = 0.5 * 10.0**-n_decimals
    return abs(measured - _value(quoted)) <= half_unit * (1.0 + 1e-9)


def names_of(quotation: dict[str, Any]) -> list[str]:
    """Return the names of the measured values that a quotation asks for."""
    if "value" in quotation:
        return [quotation["value"]]
    return [place.partition("|")[0] for place in _PLACE.findall(quotation["text"])]


def compare(
    quotation: dict[str, Any], values: dict[str, float] | None, root: Path = ROOT
) -> list[Comparison]:
    """Return every number of a quotation beside the value of its name.

    Words, such as "half as much", have a ``value`` between ``low`` and ``high`` in place of places.
    """
    file, text = quotation["file"], quotation["text"]
    written = find(quotation, root)
    if "value" in quotation:
        low, high = quotation["low"], quotation["high"]
        measured = None if values is None else float(values[quotation["value"]])
        holds = None if measured is None else low <= measured <= high
        return [Comparison(file, text, f"{low:g} to {high:g}", measured, holds)]
    compared = []
    for quoted, place in zip(written, _PLACE.findall(text), strict=True):
        name, _, digits = place.partition("|")
        measured = None if values is None else float(values[name])
        holds = None if measured is None else agrees(quoted, measured, int(digits or 0) or None)
        compared.append(Comparison(file, text, quoted, measured, holds))
    return compared
