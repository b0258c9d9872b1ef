-- Appends that are events and nothing else, which most are: every checkpoint of a function. The same as `append_expected` in
-- fewer statements, and without some sixty parameters that would be empty.
--
-- A run is at the sequence of its last event, which must be its tenant's. One that has lost its events, or has none yet, is not
-- for this function.
CREATE FUNCTION append_events(
    -- Who may be seen; what to lock, in this order; the time, if it is given.
    tenants text, locks bigint[], given_time bigint,
    -- Events, each with the sequence at which its run must be.
    event_head bigint[], event_seq bigint[], event_occurred bigint[], event_id_ uuid[], event_run text[],
    event_tenant text[], event_type_ text[], event_key bytea[], event_by text[], event_payload text[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    at_time bigint;
    found_rows bigint;
BEGIN
    PERFORM set_config('app.tenants', tenants, true), pg_advisory_xact_lock(key) FROM unnest(locks) AS key;
    at_time := COALESCE(given_time, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
    INSERT INTO events (run_seq, emitted_at, occurred_at, event_id, store_epoch, run_id, tenant_id, event_type,
            idempotency_key, emitted_by, payload)
        SELECT u.run_seq, at_time, u.occurred_at, u.event_id, (SELECT m.store_epoch FROM meta m), u.run_id, u.tenant_id,
            u.event_type, u.idempotency_key, u.emitted_by, u.payload
        FROM unnest(event_head, event_seq, event_occurred, event_id_, event_run, event_tenant, event_type_, event_key,
            event_by, event_payload)
            AS u (head, run_seq, occurred_at, event_id, run_id, tenant_id, event_type, idempotency_key, emitted_by, payload)
        WHERE u.head = (SELECT e.run_seq FROM events e WHERE e.run_id = u.run_id AND e.tenant_id || '' = u.tenant_id
            ORDER BY e.run_seq DESC LIMIT 1);
    GET DIAGNOSTICS found_rows = ROW_COUNT;
    IF found_rows <> cardinality(event_seq) THEN
        RAISE EXCEPTION 'servo: a run is not at the expected sequence' USING ERRCODE = 'SV001';
    END IF;
    RETURN at_time;
END $$;

-- Also where the rights of new functions are kept from everybody.
GRANT EXECUTE ON FUNCTION append_events TO servo_app;
