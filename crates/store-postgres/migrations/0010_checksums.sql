-- A checksum beside what was written, so that bytes which changed are found. NULL where an earlier version wrote, and where a node
-- of an earlier version still writes: such rows are read as they are. Nothing here rewrites a row.
ALTER TABLE events ADD COLUMN checksum bigint;
-- The version of the body's format.
ALTER TABLE events ADD COLUMN format integer NOT NULL DEFAULT 1;
ALTER TABLE snapshots ADD COLUMN checksum bigint;
-- What runs is in the document.
ALTER TABLE entrypoints ADD COLUMN checksum bigint;

GRANT INSERT (format, checksum) ON events TO servo_app, servo_engine;

-- What only the database knows of an event, to be joined with the checksum of its content. In SQL, so that the planner puts it where
-- it is called.
CREATE FUNCTION seal_of(epoch integer, writer xid8, at_time bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (epoch::bigint << 48) # (writer::text)::bigint # at_time
$$;

-- Both as before, with a checksum for each event. Those of before stay for nodes of before, until all are of this version.
CREATE FUNCTION append_expected(
    -- Who may be seen; what to lock, in this order; the time, if it is given; the epoch that must be the authority's.
    tenants text, locks bigint[], given_time bigint, fence bigint,
    -- Runs that must be there, each at its sequence.
    known_run text[], known_tenant text[], known_head bigint[],
    -- New runs.
    new_run text[], new_tenant text[], new_project text[], new_environment text[], new_plan text[], new_version text[],
    new_status text[], new_visible text[], new_request bytea[], new_created bigint[], new_finished bigint[],
    new_changed bigint[], new_quarantined text[], new_name text[], new_outcome text[], new_invocation boolean[],
    new_mode text[], new_correlation text[],
    -- Events.
    event_seq bigint[], event_occurred bigint[], event_id_ uuid[], event_run text[], event_tenant text[], event_type_ text[],
    event_key bytea[], event_by text[], event_payload text[], event_format integer, event_checksum bigint[],
    -- Rows that change, of runs that are no invocations.
    row_run text[], row_project text[], row_environment text[], row_plan text[], row_version text[], row_status text[],
    row_visible text[], row_finished bigint[], row_changed bigint[], row_name text[], row_outcome text[],
    -- Timers.
    timer_run text[], timer_tenant text[], timer_due bigint[], timer_cleared text[],
    -- Dispatches that go if nobody has taken them yet.
    withdrawn_id text[], withdrawn_tenant text[],
    -- Dispatches that must not be there.
    added_id text[], added_run text[], added_tenant text[], added_target text[], added_step text[], added_attempt bigint[],
    added_state text[], added_channel text[], added_epoch bigint[],
    -- Dispatches that must be in a state, and what becomes of them. NULL stays as it is.
    moved_id text[], moved_tenant text[], moved_before text[], moved_state text[], moved_channel text[],
    moved_reason text[], moved_epoch bigint[],
    -- Numbers of invocations.
    count_tenant text[], count_plan text[], count_visible text[], count_change bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    at_time bigint;
    found_rows bigint;
BEGIN
    PERFORM set_config('app.tenants', tenants, true);
    IF fence IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(6000000000000000001);
    END IF;
    PERFORM pg_advisory_xact_lock(key) FROM unnest(locks) AS key;
    at_time := COALESCE(given_time, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);

    IF fence IS NOT NULL AND NOT EXISTS (
        SELECT FROM authority a WHERE a.epoch = fence AND NOT a.resigned AND at_time < a.leased_until_at
    ) THEN
        RAISE EXCEPTION 'servo: the authority has passed on' USING ERRCODE = 'SV001';
    END IF;

    IF cardinality(known_run) > 0 THEN
        SELECT count(*) INTO found_rows FROM unnest(known_run, known_tenant, known_head) AS k (run_id, tenant_id, head)
            CROSS JOIN LATERAL (SELECT r.tenant_id, GREATEST(r.head_floor, COALESCE(
                    (SELECT e.run_seq FROM events e WHERE e.run_id = r.run_id ORDER BY e.run_seq DESC LIMIT 1), 0)) AS head
                FROM runs r WHERE r.run_id = k.run_id LIMIT 1) r
            WHERE r.head = k.head AND r.tenant_id = k.tenant_id;
        IF found_rows <> cardinality(known_run) THEN
            RAISE EXCEPTION 'servo: a run is not at the expected sequence' USING ERRCODE = 'SV001';
        END IF;
    END IF;

    IF cardinality(new_run) > 0 THEN
        INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, request_key,
                created_at, finished_at, changed_seq, quarantined, name, outcome, invocation, mode, correlation_id)
            SELECT * FROM unnest(new_run, new_tenant, new_project, new_environment, new_plan, new_version, new_status,
                new_visible, new_request, new_created, new_finished, new_changed, new_quarantined, new_name, new_outcome,
                new_invocation, new_mode, new_correlation);
    END IF;

    IF cardinality(event_seq) > 0 THEN
        INSERT INTO events (run_seq, emitted_at, occurred_at, event_id, store_epoch, run_id, tenant_id, event_type,
                idempotency_key, emitted_by, payload, format, checksum)
            SELECT u.run_seq, at_time, u.occurred_at, u.event_id, (SELECT m.store_epoch FROM meta m), u.run_id, u.tenant_id,
                u.event_type, u.idempotency_key, u.emitted_by, u.payload, event_format,
                u.checksum # seal_of((SELECT m.store_epoch FROM meta m), pg_current_xact_id(), at_time)
            FROM unnest(event_seq, event_occurred, event_id_, event_run, event_tenant, event_type_, event_key, event_by,
                event_payload, event_checksum)
                AS u (run_seq, occurred_at, event_id, run_id, tenant_id, event_type, idempotency_key, emitted_by, payload,
                    checksum);
    END IF;

    IF cardinality(row_run) > 0 THEN
        UPDATE runs r SET project = u.project, environment = u.environment, plan_id = u.plan_id,
                plan_version = u.plan_version, status = u.status, visible = u.visible, finished_at = u.finished_at,
                changed_seq = u.changed_seq, name = u.name, outcome = u.outcome
            FROM unnest(row_run, row_project, row_environment, row_plan, row_version, row_status, row_visible, row_finished,
                row_changed, row_name, row_outcome)
                AS u (run_id, project, environment, plan_id, plan_version, status, visible, finished_at, changed_seq, name,
                    outcome)
            WHERE r.run_id = u.run_id AND NOT r.invocation;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        IF found_rows <> cardinality(row_run) THEN
            RAISE EXCEPTION 'servo: an invocation has to be counted' USING ERRCODE = 'SV001';
        END IF;
    END IF;

    IF cardinality(timer_run) > 0 THEN
        INSERT INTO timers (run_id, tenant_id, due_at)
            SELECT * FROM unnest(timer_run, timer_tenant, timer_due)
            ON CONFLICT (run_id) DO UPDATE SET due_at = EXCLUDED.due_at;
    END IF;
    IF cardinality(timer_cleared) > 0 THEN
        DELETE FROM timers WHERE run_id = ANY (timer_cleared);
    END IF;

    -- The empty text keeps the planner from searching by tenant what is asked for by its id.
    IF cardinality(withdrawn_id) > 0 THEN
        DELETE FROM dispatches d USING unnest(withdrawn_id, withdrawn_tenant) AS u (request_id, tenant_id)
            WHERE d.request_id = u.request_id AND d.tenant_id || '' = u.tenant_id AND d.state || '' = 'pending';
    END IF;
    IF cardinality(added_id) > 0 THEN
        INSERT INTO dispatches (request_id, run_id, tenant_id, target, step_id, logical_attempt, state, channel, epoch,
                queued_at, changed_at)
            SELECT u.*, at_time, at_time FROM unnest(added_id, added_run, added_tenant, added_target, added_step,
                added_attempt, added_state, added_channel, added_epoch) AS u;
    END IF;
    IF cardinality(moved_id) > 0 THEN
        UPDATE dispatches d SET state = u.state, channel = COALESCE(u.channel, d.channel),
                reason = COALESCE(u.reason, d.reason), epoch = COALESCE(u.epoch, d.epoch), changed_at = at_time
            FROM unnest(moved_id, moved_tenant, moved_before, moved_state, moved_channel, moved_reason, moved_epoch)
                AS u (request_id, tenant_id, before, state, channel, reason, epoch)
            WHERE d.request_id = u.request_id AND d.tenant_id || '' = u.tenant_id AND d.state || '' = u.before;
        GET DIAGNOSTICS found_rows = ROW_COUNT;
        IF found_rows <> cardinality(moved_id) THEN
            RAISE EXCEPTION 'servo: a dispatch is not in the expected state' USING ERRCODE = 'SV001';
        END IF;
    END IF;

    -- The last: others that count in the same shard wait from here on.
    IF cardinality(count_plan) > 0 THEN
        INSERT INTO invocation_counts (tenant_id, plan_id, visible, shard, count)
            SELECT u.tenant_id, u.plan_id, u.visible, (pg_backend_pid() % 16)::smallint, u.count
            FROM unnest(count_tenant, count_plan, count_visible, count_change) AS u (tenant_id, plan_id, visible, count)
            ORDER BY u.tenant_id COLLATE "C", u.plan_id COLLATE "C", u.visible COLLATE "C"
            ON CONFLICT (tenant_id, plan_id, visible, shard)
            DO UPDATE SET count = invocation_counts.count + EXCLUDED.count;
    END IF;
    RETURN at_time;
END $$;

CREATE FUNCTION append_events(
    -- Who may be seen; what to lock, in this order; the time, if it is given.
    tenants text, locks bigint[], given_time bigint,
    -- Events, each with the sequence at which its run must be.
    event_head bigint[], event_seq bigint[], event_occurred bigint[], event_id_ uuid[], event_run text[],
    event_tenant text[], event_type_ text[], event_key bytea[], event_by text[], event_payload text[],
    event_format integer, event_checksum bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    at_time bigint;
    found_rows bigint;
BEGIN
    PERFORM set_config('app.tenants', tenants, true), pg_advisory_xact_lock(key) FROM unnest(locks) AS key;
    at_time := COALESCE(given_time, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
    INSERT INTO events (run_seq, emitted_at, occurred_at, event_id, store_epoch, run_id, tenant_id, event_type,
            idempotency_key, emitted_by, payload, format, checksum)
        SELECT u.run_seq, at_time, u.occurred_at, u.event_id, (SELECT m.store_epoch FROM meta m), u.run_id, u.tenant_id,
            u.event_type, u.idempotency_key, u.emitted_by, u.payload, event_format,
            u.checksum # seal_of((SELECT m.store_epoch FROM meta m), pg_current_xact_id(), at_time)
        FROM unnest(event_head, event_seq, event_occurred, event_id_, event_run, event_tenant, event_type_, event_key,
            event_by, event_payload, event_checksum)
            AS u (head, run_seq, occurred_at, event_id, run_id, tenant_id, event_type, idempotency_key, emitted_by, payload,
                checksum)
        WHERE u.head = (SELECT e.run_seq FROM events e WHERE e.run_id = u.run_id AND e.tenant_id || '' = u.tenant_id
            ORDER BY e.run_seq DESC LIMIT 1);
    GET DIAGNOSTICS found_rows = ROW_COUNT;
    IF found_rows <> cardinality(event_seq) THEN
        RAISE EXCEPTION 'servo: a run is not at the expected sequence' USING ERRCODE = 'SV001';
    END IF;
    RETURN at_time;
END $$;

-- Also where the rights of new functions are kept from everybody.
DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'servo'::regnamespace
        AND p.proname IN ('append_expected', 'append_events', 'seal_of')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO servo_app, servo_engine', made);
    END LOOP;
END $$;
