"""The lock, the bill of materials and the licences."""

import re
from pathlib import Path
from typing import Any

import pytest

from bench.sbom import bill, installed, licence_of, licences_page, pins

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "requirements-dev.lock").read_text()
RUNNING = (ROOT / "requirements.lock").read_text()
LOCK = list(pins(TEXT))


def test_every_package_of_the_lock_has_hashes_and_no_host_is_named():
    assert len(LOCK) > 50
    assert all(pin.hashes for pin in LOCK)
    assert len(LOCK) == len(re.findall(r"^\S+==", TEXT, re.MULTILINE))
    assert "://" not in TEXT


def test_the_makefile_installs_with_hashes_and_locks_with_them():
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes -r requirements.lock" in makefile
    assert "--require-hashes -r requirements-dev.lock" in makefile
    assert "--generate-hashes" in makefile


def test_what_runs_is_a_part_of_what_is_developed_with_and_has_no_heavy_package():
    running = {(pin.name, pin.version, pin.where): pin.hashes for pin in pins(RUNNING)}
    known = {(pin.name, pin.version): pin.hashes for pin in LOCK}
    for (name, version, _), hashes in running.items():
        assert hashes == known[name, version]
    assert "://" not in RUNNING
    assert len(running) < len(LOCK) / 2
    names = {name for name, _, _ in running}
    assert {"numba", "starlette", "matplotlib", "hatchling"} <= names
    assert not names & {"pytest", "sphinx", "playwright", "ranx", "pandas", "scikit-learn"}


def test_a_pin_is_read_whole():
    lock = (
        "# by uv\n"
        "one==1.0 ; python_version < '3.12' \\\n"
        f"    --hash=sha256:{'a' * 64} \\\n"
        f"    --hash=sha256:{'b' * 64}\n"
        "    # via two\n"
        "two==2.0rc1 \\\n"
        f"    --hash=sha256:{'c' * 64}\n"
    )
    one, two = pins(lock)
    assert (one.name, one.version, one.where) == ("one", "1.0", "python_version < '3.12'")
    assert one.hashes == ("a" * 64, "b" * 64)
    assert (two.name, two.version, two.where, two.hashes) == ("two", "2.0rc1", "", ("c" * 64,))
    with pytest.raises(ValueError, match="must pin a package"):
        list(pins("one>=1.0\n"))


def test_the_bill_has_what_the_schema_requires():
    made = bill(LOCK, "1.2.3")
    assert made["bomFormat"] == "CycloneDX"
    assert made["specVersion"] == "1.6"
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["serialNumber"])
    assert made["metadata"]["component"]["version"] == "1.2.3"
    components = made["components"]
    assert all(part["type"] == "library" and part["name"] for part in components)
    references = [part["bom-ref"] for part in components]
    assert len(set(references)) == len(references)
    assert made["dependencies"][0]["dependsOn"] == references
    assert made == bill(LOCK, "1.2.3")  # the same environment gives the same bill
    for part in components:
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        there = installed(part["name"])
        assert there is not None
        assert there.version == part["version"]
        assert list(part["licenses"][0]["license"]) == ["name"]
    assert {"numpy", "numba", "llvmlite"} <= {part["name"] for part in components}


def test_the_page_of_licences_is_true():
    page = (ROOT / "docs" / "licences.md").read_text()
    assert page == licences_page(LOCK), "make sbom writes it again"
    assert "not said" not in page


def test_a_licence_is_what_the_package_says():
    class About(dict[str, Any]):
        def __getitem__(self, name):
            return self.get(name)

        def get_all(self, name):
            return self.get(name)

    osi = "License :: OSI Approved :: "
    both = [f"{osi}MIT License", f"{osi}Apache Software License", "Typing :: Typed"]
    assert licence_of(About({"License-Expression": "MIT", "License": "x"})) == "MIT"
    assert licence_of(About({"License": "BSD", "Classifier": both})) == "BSD"
    assert licence_of(About({"License": "Long\ntext", "Classifier": both})) == (
        "MIT License and Apache Software License"
    )
    assert licence_of(About({})) == "not said"
