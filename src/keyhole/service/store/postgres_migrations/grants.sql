-- What the role of the running service may do, named by `keyhole db migrate --grant`: insert and
-- select events, never change or delete them. Snapshots are a cache; keys come and go.

GRANT USAGE ON SCHEMA keyhole TO :role;
GRANT SELECT, INSERT ON keyhole.events TO :role;
GRANT SELECT, INSERT, UPDATE, DELETE ON keyhole.snapshots TO :role;
GRANT SELECT, INSERT, UPDATE (used_at), DELETE ON keyhole.keys TO :role;
GRANT SELECT ON keyhole.once, keyhole.writer, keyhole.migrations TO :role;
GRANT EXECUTE ON FUNCTION keyhole.take_over() TO :role;
