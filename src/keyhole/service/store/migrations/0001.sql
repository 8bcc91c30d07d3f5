-- The log of version 1: events, snapshots of rankers, access keys, and what is said once of a log.
-- Names are in full, kinds are checked by Python: a new kind of event needs no new table.

PRAGMA application_id = 1262836040; -- "KEYH"

CREATE TABLE events (
    ranker TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    kind TEXT NOT NULL,
    key TEXT,
    idem TEXT,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    link BLOB NOT NULL CHECK (length(link) = 16),
    PRIMARY KEY (ranker, seq)
) STRICT;

CREATE UNIQUE INDEX events_by_key ON events (ranker, key, kind) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX events_by_idem ON events (ranker, idem) WHERE idem IS NOT NULL;

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;

CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never deleted');
END;

CREATE TABLE snapshots (
    ranker TEXT NOT NULL,
    seq INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (ranker, seq)
) STRICT;

CREATE TABLE keys (
    prefix TEXT PRIMARY KEY,
    sha256 BLOB NOT NULL,
    scopes TEXT NOT NULL,
    rankers TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;

CREATE TABLE once (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
