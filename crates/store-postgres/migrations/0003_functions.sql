-- Functions that are registered: the latest version of each, all its versions, and the aliases that name one of them.

CREATE TABLE functions (
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    latest bigint NOT NULL CHECK (latest > 0),
    CONSTRAINT functions_pkey PRIMARY KEY (tenant_id, name)
) WITH (fillfactor = 80);

CREATE TABLE function_versions (
    version bigint NOT NULL CHECK (version > 0),
    created_at bigint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    document text NOT NULL,
    CONSTRAINT function_versions_pkey PRIMARY KEY (tenant_id, name, version),
    CONSTRAINT function_versions_function FOREIGN KEY (tenant_id, name) REFERENCES functions (tenant_id, name)
);

CREATE TABLE function_aliases (
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    alias text COLLATE "C" NOT NULL,
    CONSTRAINT function_aliases_pkey PRIMARY KEY (tenant_id, name, alias),
    CONSTRAINT function_aliases_version FOREIGN KEY (tenant_id, name, version)
        REFERENCES function_versions (tenant_id, name, version)
);
-- For the check of the reference when versions go.
CREATE INDEX function_aliases_by_version ON function_aliases (tenant_id, name, version);

-- Row security as for all tables with a tenant. A version can be made and removed, never changed.
DO $$
DECLARE
    name text;
    own CONSTANT text := $own$tenant_id || '' = ANY (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ','))$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['functions', 'function_versions', 'function_aliases'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY app ON %I TO servo_app USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('CREATE POLICY engine ON %I TO servo_engine USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON functions, function_aliases TO servo_app, servo_engine;
GRANT SELECT, INSERT, DELETE ON function_versions TO servo_app, servo_engine;
