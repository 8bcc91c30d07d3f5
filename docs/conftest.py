"""The examples of a page run in a folder of their own: some of them write files."""

import pytest

collect_ignore = ["conf.py", "start", "tutorials", "concepts", "papers", "ecosystems.md"]
"""Pages of these folders have commands between their examples: tests/unit/test_pages.py follows
them from the first block to the last. Those of ecosystems.md need the packages that
``make test-ecosystem`` installs, which runs them."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
