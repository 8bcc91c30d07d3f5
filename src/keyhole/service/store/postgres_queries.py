"""What is asked of a log in PostgreSQL, in SQL."""

# The fields of Event, in order.
COLUMNS = "ranker, seq, kind, key, idem, at, body, link"
TYPES = ["text", "int8", "text", "text", "text", "int8", "bytea", "bytea"]
SELECT = f"SELECT {COLUMNS} FROM events WHERE ranker = %s"  # noqa: S608
LAST = SELECT + " ORDER BY seq DESC LIMIT 1"
KEY_COLUMNS = "prefix, sha256, scopes, rankers, created_at, expires_at, name, used_at"
PAGE_OF_EVENTS = f"""
    SELECT {COLUMNS} FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before FROM (
            SELECT {COLUMNS} FROM events WHERE ranker = %s AND seq > %s
            ORDER BY seq LIMIT %s
        ) AS page
    ) AS summed WHERE before < %s ORDER BY seq
"""  # noqa: S608
RANKERS = """
    WITH RECURSIVE names AS (
        (SELECT ranker FROM events ORDER BY ranker LIMIT 1)
        UNION ALL
        SELECT (
            SELECT ranker FROM events WHERE ranker > names.ranker ORDER BY ranker LIMIT 1
        ) FROM names WHERE names.ranker IS NOT NULL
    ) SELECT ranker FROM names WHERE ranker IS NOT NULL
"""
"""One index seek per ranker instead of a scan of all events."""
COPY = f"COPY events ({COLUMNS}) FROM STDIN (FORMAT binary)".encode()
FIND_SECRET = "SELECT value FROM once WHERE name = 'secret'"  # noqa: S105
PUT_SNAPSHOT = """
    INSERT INTO snapshots VALUES (%s, %s, %s, %b)
    ON CONFLICT (ranker, seq) DO UPDATE SET sha256 = excluded.sha256, body = excluded.body
"""
DROP_OLDER = """
    DELETE FROM snapshots WHERE ranker = %s AND seq NOT IN (
        SELECT seq FROM snapshots WHERE ranker = %s ORDER BY seq DESC LIMIT 2
    )
"""
SNAPSHOTS = "SELECT ranker, seq, sha256, body FROM snapshots WHERE ranker = %s ORDER BY seq DESC"
KEYS = f"SELECT {KEY_COLUMNS} FROM keys ORDER BY prefix"  # noqa: S608
ADD_KEY = (
    f"INSERT INTO keys ({KEY_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "  # noqa: S608
    "ON CONFLICT DO NOTHING"
)
MISSING = """
    SELECT ranker, count(*), max(seq) FROM events GROUP BY ranker
    HAVING count(*) <> max(seq) ORDER BY ranker LIMIT 10
"""
"""The rankers of which some event is missing, and how many there are and should be."""
