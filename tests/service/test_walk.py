"""The walks of a rank and of its feedback, from the door to the disk: no file is entered twice."""

import sys
from pathlib import Path

import pytest

import keyhole
from bench.load import Templates
from keyhole.service import group_commit
from keyhole.service.keys import new_key
from keyhole.service.store.sqlite import SqliteStore
from tests.lab.test_walks import is_on_the_map
from tests.service.asking import Asked

PACKAGE = Path(keyhole.__file__).parent
SERVICE = PACKAGE / "service"
MOST_FILES = {
    "door": (6, ("service/http/", "service/keys.py", "service/metrics.py")),
    "store": (3, ("service/store/",)),
    "service": (10, ("service/",)),
}
"""How many files each part has: HTTP with access keys is to the service what the command line is
to a command, and the store is a row of a table; the walks of commands do not count either."""


class Walk:
    """The files of the service that calls go through, and the stacks that enter one twice."""

    def __init__(self):
        self.files: set[str] = set()
        self.twice: set[tuple[str, ...]] = set()

    def __call__(self, frame, event, _argument):
        if event != "call" or not frame.f_code.co_filename.startswith(str(SERVICE)):
            return
        stack: list[str] = []
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(str(SERVICE)):
                name = Path(file).relative_to(PACKAGE).as_posix()
                if not stack or stack[-1] != name:
                    stack.append(name)
            frame = frame.f_back
        self.files.update(stack)
        if len(set(stack)) < len(stack):
            self.twice.add(tuple(reversed(stack)))

    def parts(self):
        """Return the files of each part."""
        parts, rest = {}, sorted(self.files)
        for part, (_, begins) in MOST_FILES.items():
            parts[part] = [name for name in rest if name.startswith(begins)]
            rest = [name for name in rest if not name.startswith(begins)]
        return parts


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """As keyhole.client asks: with its fields, a key, and an idempotency key of each rank."""
    path = tmp_path_factory.mktemp("walk") / "log.db"
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(group_commit, "_TICK", 600.0)  # what looks after the log is no step
        with Asked(SqliteStore(path, create=True)) as asked:
            text, key = new_key(["admin"], ["*"])
            asked.desk.store.add_key(key)
            fields = Templates(text).rank.headers
            assert {"authorization", "idempotency-key"} <= set(fields)
            left = ("host", "content-length", "content-type")
            asked.headers = {name: value for name, value in fields.items() if name not in left}
            asked.put()
            yield asked


def ranked(asked, key):
    return asked.rank(headers={"idempotency-key": key}).json()["event_id"]


@pytest.mark.parametrize("step", ["rank", "feedback"])
def test_walk(asked, step):
    asked.feedback(ranked(asked, f"first {step}"))
    event_id = ranked(asked, f"before {step}")
    walk = Walk()
    sys.setprofile(walk)
    try:
        if step == "rank":
            ranked(asked, "within")
        else:
            asked.feedback(event_id)
    finally:
        sys.setprofile(None)
    assert not walk.twice
    assert [name for name in sorted(walk.files) if not is_on_the_map(name)] == []
    assert {"service/http/middleware.py", "service/api/impressions.py"} <= walk.files
    assert {"service/keys.py", "service/store/sqlite.py"} <= walk.files
    parts = walk.parts()
    assert sum(map(len, parts.values())) == len(walk.files) > 12
    for part, (most, _) in MOST_FILES.items():
        assert len(parts[part]) <= most, parts
    if step == "rank":
        assert asked.desk.store.find_idem("animals", "within") is not None
