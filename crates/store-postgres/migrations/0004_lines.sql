-- The latest log lines of a run's user code, and what they add up to.

CREATE TABLE line_heads (
    first_number bigint NOT NULL,
    last_number bigint NOT NULL,
    bytes bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    CONSTRAINT line_heads_pkey PRIMARY KEY (run_id),
    CONSTRAINT line_heads_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id)
) WITH (fillfactor = 70);

CREATE TABLE lines (
    number bigint NOT NULL,
    at bigint NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    request_id text NOT NULL,
    source text COLLATE "C" NOT NULL,
    text text NOT NULL,
    CONSTRAINT lines_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT lines_run FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, run_id)
);

-- Row security as for all tables with a tenant.
DO $$
DECLARE
    name text;
    own CONSTANT text := $own$tenant_id || '' = ANY (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ','))$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['line_heads', 'lines'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY app ON %I TO servo_app USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('CREATE POLICY engine ON %I TO servo_engine USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON line_heads, lines TO servo_app, servo_engine;
