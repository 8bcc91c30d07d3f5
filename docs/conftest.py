"""The examples of a page run in a folder of their own: some of them write files."""

import pytest

# Its examples need the packages that `make test-ecosystem` installs, which runs them.
collect_ignore = ["ecosystems.md"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
