-- Entrypoints that are registered while the server runs.
CREATE TABLE entrypoints (
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    revision bigint NOT NULL CHECK (revision > 0),
    tenant_id text COLLATE "C" NOT NULL,
    entrypoint_id text COLLATE "C" NOT NULL,
    owner_type text COLLATE "C" NOT NULL,
    owner_id text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    adapter text COLLATE "C" NOT NULL,
    title text NOT NULL,
    tags text[] COLLATE "C" NOT NULL,
    document text NOT NULL,
    CONSTRAINT entrypoints_pkey PRIMARY KEY (tenant_id, entrypoint_id),
    CONSTRAINT entrypoints_address UNIQUE (tenant_id, address)
) WITH (fillfactor = 80);
CREATE INDEX entrypoints_id ON entrypoints (entrypoint_id, tenant_id);
CREATE INDEX entrypoints_created ON entrypoints (tenant_id, created_at, entrypoint_id);
CREATE INDEX entrypoints_updated ON entrypoints (tenant_id, updated_at, entrypoint_id);
CREATE INDEX entrypoints_counted ON entrypoints (tenant_id) WHERE status <> 'archived';

-- Runs of entrypoints are invocations. Lists of them never meet other runs.
ALTER TABLE runs ADD COLUMN invocation boolean NOT NULL DEFAULT false, ADD COLUMN mode text COLLATE "C",
    ADD COLUMN correlation_id text COLLATE "C";

DROP INDEX runs_visible;
CREATE INDEX runs_visible ON runs (tenant_id, invocation, visible, run_id);
CREATE INDEX runs_created ON runs (tenant_id, created_at, run_id) WHERE invocation;
CREATE INDEX runs_correlation ON runs (tenant_id, correlation_id, run_id) WHERE correlation_id IS NOT NULL;

-- How many invocations are in each status, of each entrypoint and, as '*', of all of them. The sum over the shards counts:
-- each connection has its own, so that appends at the same time do not wait for each other's commits. One shard alone may
-- be below zero.
CREATE TABLE invocation_counts (
    count bigint NOT NULL,
    shard smallint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    plan_id text COLLATE "C" NOT NULL,
    visible text COLLATE "C" NOT NULL,
    CONSTRAINT invocation_counts_pkey PRIMARY KEY (tenant_id, plan_id, visible, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Row security as for all tables with a tenant. Whoever reads what the system shares names its tenant beside the own.
DO $$
DECLARE
    name text;
    own CONSTANT text := $own$tenant_id || '' = ANY (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ','))$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['entrypoints', 'invocation_counts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY app ON %I TO servo_app USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('CREATE POLICY engine ON %I TO servo_engine USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON entrypoints TO servo_app, servo_engine;
GRANT SELECT, INSERT, UPDATE ON invocation_counts TO servo_app, servo_engine;
