"""``python -m bench.sbom``: a bill of what is installed, and the licence of each part.

Writes ``out/sbom.json`` (CycloneDX) and ``docs/licences.md``. Both follow from the lock file and
from what the installed packages say about themselves, which the standard library reads: a tool for
it would bring a dozen packages, each of them one more to trust.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SPECIFICATION = "1.6"

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; ([^\\]+?))? *\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_OF_CLASSIFIERS = "License :: OSI Approved :: "

NOT_ON_EVERY_SYSTEM = {"colorama": "BSD-3-Clause", "tzdata": "Apache-2.0"}
"""Licences of what the lock installs on other systems only, where it cannot be asked."""

IN_THEIR_FILES_ONLY = {"axe-playwright-python": "MIT, with axe-core under MPL-2.0"}
"""Licences that packages have a file of, and do not say."""


@dataclass(frozen=True)
class Pin:
    """A package of the lock file: one version, where it is installed, and what it may hash to."""

    name: str
    version: str
    where: str
    hashes: tuple[str, ...]


def pins(lock: str) -> Iterator[Pin]:
    """Return the packages that a lock file names."""
    parts: list[str] = []
    for line in [*lock.splitlines(), ""]:
        if parts and not line.startswith(" "):
            match = _PIN.match(parts[0])
            if match is None:
                raise ValueError(f"A line of the lock must pin a package, got {parts[0]!r}.")
            yield Pin(match[1], match[2], match[3] or "", tuple(_HASH.findall("\n".join(parts))))
            parts = []
        if line and not line.startswith("#"):
            parts.append(line)


def licence_of(about: Any) -> str:
    """Return the licence that a package says it has: an expression, its classifiers, a word."""
    if expression := about["License-Expression"]:
        return str(expression)
    said = [c.removeprefix(_OF_CLASSIFIERS) for c in about.get_all("Classifier") or []
            if c.startswith(_OF_CLASSIFIERS)]  # fmt: skip
    word = str(about["License"] or "").strip()
    if said and not (word and len(word) < 40 and "\n" not in word):
        return " and ".join(said)
    return word.splitlines()[0][:80] if word else "not said"


def installed(name: str) -> metadata.Distribution | None:
    """Return an installed package, if it is installed."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def licences(lock: Sequence[Pin]) -> dict[str, str]:
    """Return the licence of every package of a lock, by name."""
    found = {}
    for pin in lock:
        there = installed(pin.name)
        found[pin.name] = (
            NOT_ON_EVERY_SYSTEM.get(pin.name, "not said")
            if there is None
            else IN_THEIR_FILES_ONLY.get(pin.name) or licence_of(there.metadata)
        )
    return found


def _component(pin: Pin, licence: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{pin.name}@{pin.version}",
        "name": pin.name,
        "version": pin.version,
        "purl": f"pkg:pypi/{pin.name}@{pin.version}",
        "licenses": [{"license": {"name": licence}}],
        "properties": [
            {"name": "keyhole:sha256-of-a-distribution", "value": value} for value in pin.hashes
        ],
    }


def bill(lock: Sequence[Pin], version: str) -> dict[str, Any]:
    """Return the bill of materials: what of the lock is installed, in the version of the lock."""
    said = licences(lock)
    here = [pin for pin in lock if getattr(installed(pin.name), "version", "") == pin.version]
    own = f"pkg:pypi/keyhole@{version}"
    inside = json.dumps([(pin.name, pin.version) for pin in here])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own} {inside}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library", "bom-ref": own, "name": "keyhole", "version": version,
                "purl": own, "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [_component(pin, said[pin.name]) for pin in here],
        "dependencies": [
            {"ref": own, "dependsOn": [f"pkg:pypi/{pin.name}@{pin.version}" for pin in here]}
        ],
    }  # fmt: skip


def licences_page(lock: Sequence[Pin]) -> str:
    """Return the page of licences."""
    said = licences(lock)
    lines = [
        "# Licences of what Keyhole is developed and run with",
        "",
        "Keyhole itself is under the Apache License 2.0. This page lists every package of",
        "`requirements-dev.lock` with the licence it states; `make sbom` writes it again, and a",
        "test compares it with the lock. NumPy and Numba (with llvmlite) are all that the core",
        "needs; the others come with the extras and with the tools of development.",
        "",
        "| package | version | licence |",
        "|---|---|---|",
        *(f"| {pin.name} | {pin.version} | {_cell(said[pin.name])} |" for pin in lock),
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/")


def main() -> int:
    from keyhole.base.version import __version__

    lock = list(pins((ROOT / "requirements-dev.lock").read_text()))
    out = ROOT / "out" / "sbom.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(bill(lock, __version__), indent=2) + "\n")
    (ROOT / "docs" / "licences.md").write_text(licences_page(lock))
    print(f"{len(lock)} packages: out/{out.name}, docs/licences.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
