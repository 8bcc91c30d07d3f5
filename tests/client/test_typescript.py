"""The OpenAPI document is good enough for TypeScript: types, strict compilation, two calls."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

FOLDER = Path(__file__).parent / "typescript"
SECONDS = 120


def test_a_typescript_client_compiles_and_calls(service_url, tmp_path):
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm and node are not installed")
    for path in FOLDER.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    install = [npm, "ci", "--ignore-scripts", "--prefer-offline"]
    try:
        installed = _run(install, tmp_path)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm could not install within {SECONDS} seconds")
    if installed.returncode:
        pytest.skip(f"npm cannot install: {installed.stderr.strip().splitlines()[-1:]}")
    (tmp_path / "openapi.json").write_bytes(httpx.get(f"{service_url}/openapi.json").content)
    tools = tmp_path / "node_modules" / ".bin"
    compiled = [
        # What has a default may be left out, and an object of no stated shape may hold anything.
        [
            tools / "openapi-typescript", "openapi.json", "--output", "service.ts",
            "--default-non-nullable", "false", "--empty-objects-unknown",
        ],
        [
            tools / "tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022",
            "--module", "nodenext", "--lib", "es2022,dom", "client.ts",
        ],
        [node, "client.js", service_url],
    ]  # fmt: skip
    for command in compiled:
        ran = _run(command, tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert sorted(told["ranking"]) == ["coffee", "milk", "tea"]
    assert told["learned"] == "learned"


def _run(command, folder):
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_what_is_pinned_names_no_host():
    lock = json.loads((FOLDER / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    for path in FOLDER.iterdir():
        if path.is_file():
            assert "://" not in path.read_text(), path
