-- The log in PostgreSQL, version 1: the tables of the log in SQLite, and who may write.
-- Names compare by code points, as in Python, whatever the locale of the database.

CREATE SCHEMA keyhole;

CREATE TABLE keyhole.migrations (
    version integer PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE keyhole.events (
    ranker text COLLATE "C" NOT NULL,
    seq bigint NOT NULL CHECK (seq >= 1),
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    idem text COLLATE "C",
    at bigint NOT NULL,
    body bytea NOT NULL,
    link bytea NOT NULL CHECK (octet_length(link) = 16),
    PRIMARY KEY (ranker, seq)
);

-- Features are numbers: compressing them takes time and saves nothing.
ALTER TABLE keyhole.events ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX events_by_key ON keyhole.events (ranker, key, kind) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX events_by_idem ON keyhole.events (ranker, idem) WHERE idem IS NOT NULL;

CREATE FUNCTION keyhole.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are never changed or deleted';
END $$;

CREATE TRIGGER events_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON keyhole.events
FOR EACH STATEMENT EXECUTE FUNCTION keyhole.refuse_change();

CREATE TABLE keyhole.snapshots (
    ranker text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    sha256 text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (ranker, seq)
);

ALTER TABLE keyhole.snapshots ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE keyhole.keys (
    prefix text COLLATE "C" PRIMARY KEY,
    sha256 bytea NOT NULL,
    scopes text[] NOT NULL,
    rankers text[] NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    name text NOT NULL DEFAULT '',
    used_at bigint
);

CREATE TABLE keyhole.once (
    name text PRIMARY KEY,
    value bytea NOT NULL
);

-- One row: the epoch of the process that writes. Each process that takes over begins a new epoch.

CREATE TABLE keyhole.writer (
    is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    epoch bigint NOT NULL
);

INSERT INTO keyhole.writer (epoch) VALUES (0);

CREATE FUNCTION keyhole.take_over() RETURNS bigint LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE keyhole.writer SET epoch = epoch + 1 RETURNING epoch
$$;

-- Whoever appends holds the row of the epoch until its commit: a process that takes over waits for
-- appends in progress, and every append after it must name the new epoch.

CREATE FUNCTION keyhole.check_writer() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM keyhole.writer
    WHERE epoch = nullif(current_setting('keyhole_writer.epoch', true), '')::bigint FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another process writes to this log' USING ERRCODE = 'object_in_use';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER events_of_the_writer BEFORE INSERT ON keyhole.events
FOR EACH STATEMENT EXECUTE FUNCTION keyhole.check_writer();

REVOKE ALL ON FUNCTION keyhole.take_over(), keyhole.check_writer(), keyhole.refuse_change()
FROM PUBLIC;
