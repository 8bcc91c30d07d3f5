"""The walk of a rank, from the door down to the disk: no file is entered again from below it."""

import sys
from pathlib import Path

import keyhole
from bench.load import Templates
from keyhole.service.keys import new_key
from tests.lab.test_walks import is_on_the_map
from tests.service.asking import Asked

PACKAGE = Path(keyhole.__file__).parent
SERVICE = PACKAGE / "service"


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


def test_the_walk_of_a_rank_and_of_its_feedback():
    """As keyhole.client asks: with its fields, a key, and an idempotency key of each rank."""
    with Asked() as asked:
        text, key = new_key(["admin"], ["*"])
        asked.desk.store.add_key(key)
        fields = Templates(text).rank.headers
        assert {"authorization", "idempotency-key"} <= set(fields)
        left = ("host", "content-length", "content-type")
        asked.headers = {name: value for name, value in fields.items() if name not in left}
        asked.put()
        asked.feedback(asked.rank(headers={"idempotency-key": "first"}).json()["event_id"])
        walk = Walk()
        sys.setprofile(walk)
        try:
            shown = asked.rank(headers={"idempotency-key": "second"})
            asked.feedback(shown.json()["event_id"])
        finally:
            sys.setprofile(None)
    assert not walk.twice
    assert [name for name in sorted(walk.files) if not is_on_the_map(name)] == []
    ways = {"service/http/middleware.py", "service/api/impressions.py"}
    assert ways | {"service/keys.py", "service/store/memory.py"} <= walk.files
    assert asked.desk.store.find_idem("animals", "second") is not None
