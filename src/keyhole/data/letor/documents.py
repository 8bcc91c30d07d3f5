"""What documents are called: LETOR's files say it in a comment behind each of them."""

import re
from collections.abc import Sequence
from pathlib import Path

from keyhole.data.packed import read_unpacked

_NAMED = re.compile(rb"(?:^|\s)doc(?:id|no|_id)?\s*[=:]\s*(\S+)", re.IGNORECASE)


def document_ids(paths: Sequence[Path]) -> list[str | None]:
    r"""Return the id of every document of some files, None where its comment has none.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "test.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 #docid = GX8 inc = 1\n\n# docid = no\n0 qid:7 1:3\n")
    >>> document_ids([path])
    ['GX8', None]
    """
    ids: list[str | None] = []
    for path in paths:
        for line in read_unpacked(path, "LETOR").split(b"\n"):
            document, _, comment = line.partition(b"#")
            if document.strip():
                found = _NAMED.search(comment)
                ids.append(None if found is None else found[1].decode(errors="replace"))
    return ids
