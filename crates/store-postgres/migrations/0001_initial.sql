-- The first schema. A migration that was released is never edited: its checksum is recorded where it ran.
--
-- Ids are compared byte by byte (COLLATE "C"), whatever the database's language is. Times are milliseconds since 1970.
-- A run's id is unique across tenants, so keys that hold it need no tenant; all the others begin with one.

CREATE TABLE meta (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- Part of every position in the log; grows when the data turns up in another database (see identity).
    store_epoch integer NOT NULL CHECK (store_epoch > 0),
    -- Cluster, database and timeline: where the transaction ids of this epoch come from.
    identity text NOT NULL
);

-- Apart from meta, so that only the engine's role can read it.
CREATE TABLE secret (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    secret bytea NOT NULL CHECK (octet_length(secret) = 32)
);

CREATE TABLE runs (
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    plan_id text COLLATE "C" NOT NULL,
    plan_version text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    visible text COLLATE "C" NOT NULL,
    request_key bytea,
    created_at bigint NOT NULL,
    finished_at bigint,
    changed_seq bigint NOT NULL,
    quarantined text,
    -- The highest sequence that was ever trimmed away, so that the head never falls back.
    head_floor bigint NOT NULL DEFAULT 0,
    -- Events below trim_before may be deleted by the transaction trim_xid, and by no other.
    trim_before bigint NOT NULL DEFAULT 0,
    trim_xid xid8,
    CONSTRAINT runs_pkey PRIMARY KEY (run_id),
    CONSTRAINT runs_tenant_key UNIQUE (tenant_id, run_id),
    CONSTRAINT runs_request_key UNIQUE (tenant_id, request_key)
) WITH (fillfactor = 80);
CREATE INDEX runs_visible ON runs (tenant_id, visible, run_id);
CREATE INDEX runs_plan ON runs (tenant_id, plan_id, run_id);
CREATE INDEX runs_active ON runs (tenant_id, run_id) WHERE status IN ('RUNNING', 'PAUSED');
CREATE INDEX runs_finished ON runs (finished_at, run_id) WHERE finished_at IS NOT NULL;

-- The log. Columns of fixed width first: no padding between them.
CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    run_seq bigint NOT NULL CHECK (run_seq > 0),
    emitted_at bigint NOT NULL,
    occurred_at bigint,
    event_id uuid NOT NULL,
    store_epoch integer NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    idempotency_key bytea NOT NULL CHECK (octet_length(idempotency_key) = 32),
    emitted_by text NOT NULL,
    payload text,
    blob_digest bytea,
    CONSTRAINT events_pkey PRIMARY KEY (run_id, run_seq),
    CONSTRAINT events_key UNIQUE (run_id, idempotency_key),
    CONSTRAINT events_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id),
    CONSTRAINT events_body CHECK ((payload IS NULL) <> (blob_digest IS NULL))
);
CREATE INDEX events_position ON events (store_epoch, xid, id);

-- Large payloads, one per event that has no inline one.
CREATE TABLE blobs (
    run_seq bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    CONSTRAINT blobs_pkey PRIMARY KEY (run_id, run_seq),
    CONSTRAINT blobs_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id)
);

CREATE TABLE snapshots (
    run_seq bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    CONSTRAINT snapshots_pkey PRIMARY KEY (run_id, run_seq),
    CONSTRAINT snapshots_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id)
);

CREATE TABLE timers (
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    due_at bigint NOT NULL,
    CONSTRAINT timers_pkey PRIMARY KEY (run_id),
    CONSTRAINT timers_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX timers_due ON timers (due_at, run_id);

-- Claims change only columns that no index holds, so the updates stay on their page.
CREATE TABLE queue (
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    not_before bigint NOT NULL,
    queued_at bigint NOT NULL,
    leased_by text COLLATE "C",
    leased_until bigint,
    CONSTRAINT queue_pkey PRIMARY KEY (run_id),
    CONSTRAINT queue_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id),
    CONSTRAINT queue_lease CHECK ((leased_by IS NULL) = (leased_until IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX queue_order ON queue (queued_at, run_id);

-- A request id holds its run's id, or is an operator's own choice on the system stream.
CREATE TABLE dispatches (
    request_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    target text NOT NULL,
    step_id text COLLATE "C",
    logical_attempt bigint,
    state text COLLATE "C" NOT NULL,
    channel text,
    reason text,
    epoch bigint NOT NULL,
    queued_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    CONSTRAINT dispatches_pkey PRIMARY KEY (request_id),
    CONSTRAINT dispatches_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id),
    CONSTRAINT dispatches_step CHECK ((step_id IS NULL) = (logical_attempt IS NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX dispatches_by_run ON dispatches (run_id);
CREATE INDEX dispatches_open ON dispatches (queued_at, request_id)
    WHERE step_id IS NOT NULL AND state IN ('pending', 'notified');

CREATE TABLE authority (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    owner text NOT NULL,
    lease_id text NOT NULL,
    leased_until text NOT NULL,
    leased_until_at bigint NOT NULL,
    epoch bigint NOT NULL CHECK (epoch > 0),
    resigned boolean NOT NULL
);

CREATE TABLE cursors (
    name text COLLATE "C" PRIMARY KEY,
    store_epoch bigint NOT NULL,
    xid bigint NOT NULL,
    id bigint NOT NULL,
    last_event_id uuid,
    target_store_epoch bigint,
    target_xid bigint,
    target_id bigint,
    deferred boolean NOT NULL
);

CREATE TABLE outbox (
    store_epoch bigint NOT NULL,
    xid bigint NOT NULL,
    id bigint NOT NULL,
    run_seq bigint NOT NULL,
    attempts bigint NOT NULL,
    next_at bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    last_error text NOT NULL,
    CONSTRAINT outbox_pkey PRIMARY KEY (store_epoch, xid, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX outbox_by_run ON outbox (run_id);

CREATE TABLE dead_letters (
    store_epoch bigint NOT NULL,
    xid bigint NOT NULL,
    id bigint NOT NULL,
    run_seq bigint NOT NULL,
    attempts bigint NOT NULL,
    buried_at bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    last_error text NOT NULL,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (store_epoch, xid, id)
);
CREATE INDEX dead_letters_by_run ON dead_letters (run_id);

CREATE TABLE alerts (
    code text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    message text NOT NULL,
    first_at bigint NOT NULL,
    last_at bigint NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT alerts_pkey PRIMARY KEY (tenant_id, code, subject)
) WITH (fillfactor = 70);
CREATE INDEX alerts_by_run ON alerts (run_id) WHERE run_id IS NOT NULL;

-- The log only grows. Events go with their whole run, or from the start of the system stream, and only in a transaction
-- that has said so on the run's row. The functions run with the rights of whoever deletes, never with more.

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = servo, pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'servo: % on % is refused: the log only grows', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION refuse_stray_delete() RETURNS trigger LANGUAGE plpgsql SET search_path = servo, pg_catalog AS $$
BEGIN
    IF EXISTS (
        SELECT FROM gone LEFT JOIN runs
            ON runs.run_id = gone.run_id AND gone.run_seq < runs.trim_before AND runs.trim_xid = pg_current_xact_id()
        WHERE runs.run_id IS NULL
    ) THEN
        RAISE EXCEPTION 'servo: DELETE on % is refused: the run is not being retired', TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['events', 'blobs'] LOOP
        EXECUTE format('CREATE TRIGGER %1$s_no_update BEFORE UPDATE ON %1$I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
        EXECUTE format('CREATE TRIGGER %1$s_no_truncate BEFORE TRUNCATE ON %1$I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
        EXECUTE format('CREATE TRIGGER %1$s_delete AFTER DELETE ON %1$I REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_stray_delete()', name);
    END LOOP;
END $$;

-- Row security: the tenants of the transaction for servo_app, everything for servo_engine. Forced, so that it holds for
-- the owner too; without tenants there are no rows, and an insert is refused. The empty text behind tenant_id keeps the
-- planner from searching by tenant what a query asks for by run.
DO $$
DECLARE
    name text;
    own CONSTANT text := $own$tenant_id || '' = ANY (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ','))$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['runs', 'events', 'blobs', 'snapshots', 'timers', 'queue', 'dispatches', 'outbox', 'dead_letters', 'alerts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY app ON %I TO servo_app USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('CREATE POLICY engine ON %I TO servo_engine USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

-- Tenants' calls and appends never delete a run; the engine does. Nobody updates an event, or has a say in its transaction
-- and number.
GRANT USAGE ON SCHEMA servo TO servo_app, servo_engine;
GRANT SELECT ON meta TO servo_app, servo_engine;
GRANT SELECT ON secret TO servo_engine;
GRANT SELECT, INSERT, UPDATE ON authority, cursors TO servo_app, servo_engine;
GRANT SELECT, INSERT, UPDATE ON runs, snapshots TO servo_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON timers, queue, dispatches TO servo_app;
GRANT SELECT ON events, blobs, alerts, outbox, dead_letters TO servo_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON runs, snapshots, timers, queue, dispatches, outbox, dead_letters, alerts
    TO servo_engine;
GRANT SELECT, DELETE ON events, blobs TO servo_engine;
GRANT INSERT (run_seq, run_id, tenant_id, payload) ON blobs TO servo_app, servo_engine;
GRANT INSERT (run_seq, emitted_at, occurred_at, event_id, store_epoch, run_id, tenant_id, event_type, idempotency_key,
    emitted_by, payload, blob_digest) ON events TO servo_app, servo_engine;
