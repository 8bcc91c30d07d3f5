-- Access keys have names, and when they were last used.

ALTER TABLE keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN used_at INTEGER;
