-- Appends whose writers say at which sequence they expect their runs, in one call: it looks whether everything is as
-- expected, writes, and gives back the time of it. Anything else is an error, which undoes all of it; then the writer asks and
-- judges by itself. Locks come first, because each statement of a function sees what was committed before it began, and so
-- the checks see what those wrote who had the locks before.
--
-- It runs with the rights of its caller, under row security.
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
    event_key bytea[], event_by text[], event_payload text[],
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
                idempotency_key, emitted_by, payload)
            SELECT u.run_seq, at_time, u.occurred_at, u.event_id, (SELECT m.store_epoch FROM meta m), u.run_id, u.tenant_id,
                u.event_type, u.idempotency_key, u.emitted_by, u.payload
            FROM unnest(event_seq, event_occurred, event_id_, event_run, event_tenant, event_type_, event_key, event_by,
                event_payload)
                AS u (run_seq, occurred_at, event_id, run_id, tenant_id, event_type, idempotency_key, emitted_by, payload);
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

-- A foreign key looks its row up and locks it for every row that refers to it, by a plan that was made when there were no runs:
-- a third of what an append cost the server, and more with every run of the tenant. The tables that an append writes most have
-- their runs looked up once for a whole statement instead, and a run stays while something of it is left. Locking the row is
-- not needed: whoever appends holds the lock without which no run is removed.
ALTER TABLE events DROP CONSTRAINT events_run;
ALTER TABLE timers DROP CONSTRAINT timers_run;
ALTER TABLE dispatches DROP CONSTRAINT dispatches_run;

CREATE FUNCTION refuse_strays() RETURNS trigger LANGUAGE plpgsql SET search_path = servo, pg_catalog AS $$
BEGIN
    IF EXISTS (
        SELECT FROM fresh WHERE NOT EXISTS (
            SELECT FROM runs r WHERE r.run_id = fresh.run_id AND r.tenant_id || '' = fresh.tenant_id)
    ) THEN
        RAISE EXCEPTION 'servo: INSERT on % is refused: its tenant has no such run', TG_TABLE_NAME
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION refuse_orphans() RETURNS trigger LANGUAGE plpgsql SET search_path = servo, pg_catalog AS $$
BEGIN
    IF EXISTS (
        SELECT FROM gone WHERE EXISTS (SELECT FROM events e WHERE e.run_id = gone.run_id)
            OR EXISTS (SELECT FROM timers t WHERE t.run_id = gone.run_id)
            OR EXISTS (SELECT FROM dispatches d WHERE d.run_id = gone.run_id)
    ) THEN
        RAISE EXCEPTION 'servo: % on runs is refused: something of the run is left', TG_OP
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['events', 'timers', 'dispatches'] LOOP
        EXECUTE format('CREATE TRIGGER %1$s_run AFTER INSERT ON %1$I REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION refuse_strays()', name);
    END LOOP;
END $$;
CREATE TRIGGER runs_delete AFTER DELETE ON runs REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION refuse_orphans();
CREATE TRIGGER runs_no_truncate BEFORE TRUNCATE ON runs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Also where the rights of new functions are kept from everybody.
GRANT EXECUTE ON FUNCTION append_expected TO servo_app;
