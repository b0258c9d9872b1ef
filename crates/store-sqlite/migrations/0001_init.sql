-- The log and the rows that make it fast to act on. Times are milliseconds since 1970; ids and keys compare as bytes.

-- One row per run. It changes when the visible status changes, never per event, so the head of a run is not here: it is
-- the last sequence in `events`, or `head_floor` where the last events were trimmed.
CREATE TABLE runs (
    run_id       TEXT NOT NULL PRIMARY KEY,
    tenant_id    TEXT NOT NULL,
    project      TEXT NOT NULL,
    environment  TEXT NOT NULL,
    plan_id      TEXT NOT NULL,
    plan_version TEXT NOT NULL,
    status       TEXT NOT NULL,
    visible      TEXT NOT NULL,
    request_key  BLOB,
    created_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    changed_seq  INTEGER NOT NULL,
    quarantined  TEXT,
    -- Sequences below this may be deleted. Only retention, deletion and trimming raise it, in the same transaction.
    trim_before  INTEGER NOT NULL DEFAULT 0,
    head_floor   INTEGER NOT NULL DEFAULT 0,
    -- The run is deleted for everybody; its events are leaving, a few at a time.
    purging      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant_id, request_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_listed ON runs (tenant_id, run_id) WHERE purging = 0;
CREATE INDEX runs_visible ON runs (tenant_id, visible, run_id) WHERE purging = 0;
CREATE INDEX runs_plan ON runs (tenant_id, plan_id, run_id) WHERE purging = 0;
CREATE INDEX runs_active ON runs (tenant_id) WHERE purging = 0 AND status IN ('RUNNING', 'PAUSED');
CREATE INDEX runs_finished ON runs (finished_at, run_id) WHERE purging = 0 AND finished_at IS NOT NULL;
CREATE INDEX runs_purging ON runs (run_id) WHERE purging = 1;

-- The log. AUTOINCREMENT: a position is never given twice, even after the last event was deleted.
CREATE TABLE events (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
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
    UNIQUE (run_id, run_seq),
    UNIQUE (run_id, idempotency_key)
) STRICT;

CREATE INDEX events_blob ON events (run_id, blob_digest) WHERE blob_digest IS NOT NULL;

CREATE TABLE blobs (
    run_id TEXT NOT NULL REFERENCES runs (run_id),
    digest BLOB NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (run_id, digest)
) STRICT;

-- The log is append-only for every program that writes to this file, not only for ours.
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are never changed');
END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN OLD.run_seq >= coalesce((SELECT trim_before FROM runs WHERE run_id = OLD.run_id), 0)
BEGIN
    SELECT RAISE(ABORT, 'events are deleted only below trim_before of their run');
END;

CREATE TRIGGER blobs_no_update BEFORE UPDATE ON blobs
BEGIN
    SELECT RAISE(ABORT, 'payloads are never changed');
END;

CREATE TRIGGER blobs_no_delete BEFORE DELETE ON blobs
WHEN EXISTS (SELECT 1 FROM events WHERE run_id = OLD.run_id AND blob_digest = OLD.digest)
BEGIN
    SELECT RAISE(ABORT, 'an event has this payload');
END;

-- In place of a foreign key from events, which would cost a lookup for every event appended.
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
WHEN EXISTS (SELECT 1 FROM events WHERE run_id = OLD.run_id)
BEGIN
    SELECT RAISE(ABORT, 'the run has events');
END;

CREATE TABLE snapshots (
    run_id  TEXT NOT NULL REFERENCES runs (run_id),
    run_seq INTEGER NOT NULL,
    state   TEXT NOT NULL,
    PRIMARY KEY (run_id, run_seq)
) STRICT;

-- One timer per run: its earliest due time.
CREATE TABLE timers (
    run_id    TEXT NOT NULL PRIMARY KEY REFERENCES runs (run_id),
    tenant_id TEXT NOT NULL,
    due_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX timers_due ON timers (due_at, run_id);

-- Runs that wait to be started. `free_at` is when nothing keeps the run from being claimed: the later of `not_before` and
-- the end of its lease.
CREATE TABLE queue (
    run_id      TEXT NOT NULL PRIMARY KEY REFERENCES runs (run_id),
    tenant_id   TEXT NOT NULL,
    not_before  INTEGER NOT NULL,
    queued_at   INTEGER NOT NULL,
    lease_owner TEXT,
    free_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_free ON queue (free_at);
CREATE INDEX queue_order ON queue (queued_at, run_id, free_at);

CREATE TABLE dispatches (
    request_id      TEXT NOT NULL PRIMARY KEY,
    run_id          TEXT NOT NULL,
    tenant_id       TEXT NOT NULL,
    target          TEXT NOT NULL,
    step_id         TEXT,
    logical_attempt INTEGER,
    state           TEXT NOT NULL,
    channel         TEXT,
    reason          TEXT,
    epoch           INTEGER NOT NULL,
    queued_at       INTEGER NOT NULL,
    changed_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX dispatches_run ON dispatches (run_id);
CREATE INDEX dispatches_pending ON dispatches (queued_at, request_id) WHERE state = 'pending' AND step_id IS NOT NULL;
CREATE INDEX dispatches_notified ON dispatches (epoch, queued_at, request_id)
    WHERE state = 'notified' AND step_id IS NOT NULL;

-- How many dispatches are in each state, so that asking does not mean counting all that were ever delivered.
CREATE TABLE dispatch_counts (
    state TEXT NOT NULL PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO dispatch_counts (state, count) VALUES ('pending', 0), ('notified', 0), ('delivered', 0), ('failed', 0);

CREATE TABLE authority (
    id              INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    owner           TEXT NOT NULL,
    lease_id        TEXT NOT NULL,
    leased_until    TEXT NOT NULL,
    leased_until_at INTEGER NOT NULL,
    epoch           INTEGER NOT NULL,
    resigned        INTEGER NOT NULL
) STRICT;

-- Positions as the text that readers see (`cursor-7`): they are compared for equality only.
CREATE TABLE cursors (
    name          TEXT NOT NULL PRIMARY KEY,
    position      TEXT NOT NULL,
    last_event_id BLOB,
    target        TEXT,
    deferred      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    store_epoch    INTEGER NOT NULL,
    transaction_id INTEGER NOT NULL,
    position_id    INTEGER NOT NULL,
    run_id         TEXT NOT NULL,
    run_seq        INTEGER NOT NULL,
    tenant_id      TEXT NOT NULL,
    attempts       INTEGER NOT NULL,
    next_at        INTEGER NOT NULL,
    last_error     TEXT NOT NULL,
    PRIMARY KEY (store_epoch, transaction_id, position_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_run ON outbox (run_id);

CREATE TABLE dead_letters (
    store_epoch    INTEGER NOT NULL,
    transaction_id INTEGER NOT NULL,
    position_id    INTEGER NOT NULL,
    run_id         TEXT NOT NULL,
    run_seq        INTEGER NOT NULL,
    tenant_id      TEXT NOT NULL,
    attempts       INTEGER NOT NULL,
    last_error     TEXT NOT NULL,
    buried_at      INTEGER NOT NULL,
    PRIMARY KEY (store_epoch, transaction_id, position_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letters_run ON dead_letters (run_id);

CREATE TABLE alerts (
    code      TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    subject   TEXT NOT NULL,
    run_id    TEXT,
    message   TEXT NOT NULL,
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (code, tenant_id, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX alerts_latest ON alerts (tenant_id, last_at);
CREATE INDEX alerts_run ON alerts (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
