-- The new events of one run that reach the file together are one row, a pack, and not a row each: eight events cost one
-- insert in place of twenty-four. `events` keeps what it has, the system stream, imported runs, and events whose payload
-- lies in `blobs`, so a run's events may be partly here and partly there.
--
-- Positions of `events` and of packs are one sequence. Within a pack the sequences of its run are consecutive; positions
-- grow, but other events may stand between them.
CREATE TABLE packs (
    -- Of the pack's last event.
    last_position  INTEGER PRIMARY KEY,
    -- The last position of the transaction that wrote the pack. All of its packs end at or before it, and those of other
    -- transactions lie completely before or behind: that is how far a reader of the log must look for what comes next.
    flush_end      INTEGER NOT NULL CHECK (flush_end >= last_position),
    first_position INTEGER NOT NULL CHECK (first_position > 0 AND first_position <= last_position),
    run_number     INTEGER NOT NULL,
    first_seq      INTEGER NOT NULL CHECK (first_seq > 0),
    last_seq       INTEGER NOT NULL CHECK (last_seq >= first_seq),
    run_id         TEXT NOT NULL,
    tenant_id      TEXT NOT NULL,
    -- The events, encoded. Last, so that reading the others does not read it.
    events         BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX packs_run ON packs (run_number, last_seq);

CREATE TRIGGER packs_no_update BEFORE UPDATE ON packs
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;

CREATE TRIGGER packs_no_delete BEFORE DELETE ON packs
WHEN OLD.last_seq >= coalesce((SELECT trim_before FROM runs WHERE run_id = OLD.run_id), 0)
BEGIN
    SELECT RAISE(ABORT, 'events are deleted only below trim_before of their run');
END;

-- As before, and for packs.
DROP TRIGGER runs_no_delete;

CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
WHEN EXISTS (SELECT 1 FROM events WHERE run_number = OLD.number)
    OR EXISTS (SELECT 1 FROM packs WHERE run_number = OLD.number)
BEGIN
    SELECT RAISE(ABORT, 'the run has events');
END;
