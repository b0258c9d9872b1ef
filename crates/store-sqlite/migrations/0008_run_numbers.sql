-- Every run has a number, and the indexes of the log name runs by it. A run's id is 36 letters, and both unique indexes
-- repeated it for each event: they were two thirds of the pages that a commit of many runs' events had to write. The key
-- index takes the first half of the digest, 16 bytes, which no two keys share.
--
-- The number is the position of the run's first event: unique and never given twice, as positions are. The system stream
-- has zero. A run without events has none yet.
ALTER TABLE runs ADD COLUMN number INTEGER;

UPDATE runs SET number = CASE run_id WHEN '_system' THEN 0
    ELSE (SELECT min(position) FROM events WHERE events.run_id = runs.run_id) END;

DROP TRIGGER events_no_update;
DROP TRIGGER events_no_delete;
DROP TRIGGER blobs_no_delete;
DROP TRIGGER runs_no_delete;
DROP INDEX events_blob;
ALTER TABLE events RENAME TO old_events;

CREATE TABLE events (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    run_number      INTEGER NOT NULL,
    run_id          TEXT NOT NULL,
    run_seq         INTEGER NOT NULL CHECK (run_seq > 0),
    tenant_id       TEXT NOT NULL,
    event_id        BLOB NOT NULL,
    event_type      TEXT NOT NULL,
    idempotency_key BLOB NOT NULL,
    emitted_at      INTEGER NOT NULL,
    emitted_by      TEXT NOT NULL,
    occurred_at     INTEGER,
    -- The body, or the digest under which a large one lies in `blobs`.
    payload         TEXT,
    blob_digest     BLOB,
    UNIQUE (run_number, run_seq)
) STRICT;

INSERT INTO events (position, run_number, run_id, run_seq, tenant_id, event_id, event_type, idempotency_key, emitted_at,
                    emitted_by, occurred_at, payload, blob_digest)
    -- Events of a run that has no row, which is damage, stay for whoever looks into it.
    SELECT position, coalesce(number, (SELECT min(position) FROM old_events o WHERE o.run_id = e.run_id)), e.run_id, run_seq, e.tenant_id, event_id, event_type, idempotency_key, emitted_at,
           emitted_by, occurred_at, payload, blob_digest
    FROM old_events e LEFT JOIN runs ON runs.run_id = e.run_id ORDER BY position;

-- The last position that was given may be of an event that is gone.
DELETE FROM sqlite_sequence WHERE name = 'events';
UPDATE sqlite_sequence SET name = 'events' WHERE name = 'old_events';
DROP TABLE old_events;

CREATE UNIQUE INDEX events_key ON events (run_number, substr(idempotency_key, 1, 16));
CREATE INDEX events_blob ON events (run_number, blob_digest) WHERE blob_digest IS NOT NULL;

-- As before. A run keeps the number that it has.
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN OLD.run_seq >= coalesce((SELECT trim_before FROM runs WHERE run_id = OLD.run_id), 0)
BEGIN
    SELECT RAISE(ABORT, 'events are deleted only below trim_before of their run');
END;

CREATE TRIGGER blobs_no_delete BEFORE DELETE ON blobs
WHEN EXISTS (SELECT 1 FROM events WHERE blob_digest = OLD.digest
             AND run_number = (SELECT number FROM runs WHERE run_id = OLD.run_id))
BEGIN
    SELECT RAISE(ABORT, 'an event has this payload');
END;

CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
WHEN EXISTS (SELECT 1 FROM events WHERE run_number = OLD.number)
BEGIN
    SELECT RAISE(ABORT, 'the run has events');
END;

CREATE TRIGGER runs_keep_number BEFORE UPDATE OF number ON runs
WHEN OLD.number IS NOT NULL AND OLD.number IS NOT NEW.number
BEGIN
    SELECT RAISE(ABORT, 'the number of a run is never changed');
END;
