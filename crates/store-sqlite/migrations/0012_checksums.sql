-- A checksum beside what was written, so that bytes which changed are found. NULL where an earlier version wrote: such rows are
-- read as they are. Nothing here rewrites a row.
ALTER TABLE events ADD COLUMN checksum INTEGER;
-- The version of the body's format.
ALTER TABLE events ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
ALTER TABLE packs ADD COLUMN checksum INTEGER;
ALTER TABLE snapshots ADD COLUMN checksum INTEGER;
-- What runs is in the document.
ALTER TABLE entrypoints ADD COLUMN checksum INTEGER;
