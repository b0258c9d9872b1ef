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

-- Row security as for all tables with a tenant. Whoever reads what the system shares names its tenant beside the own.
DO $$
DECLARE
    name text;
    own CONSTANT text := $own$tenant_id || '' = ANY (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ','))$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['entrypoints'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY app ON %I TO servo_app USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('CREATE POLICY engine ON %I TO servo_engine USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON entrypoints TO servo_app, servo_engine;
