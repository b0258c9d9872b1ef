-- Keys that callers show. Of the secrets only digests are here, and what the server sealed.

CREATE TABLE api_keys (
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint,
    tenant_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    roles text NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL CHECK (octet_length(digest) = 32),
    sealed text,
    created_by text NOT NULL,
    CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 80);
-- Before it is known whose a key is.
CREATE INDEX api_keys_digest ON api_keys (digest);
CREATE INDEX api_keys_id ON api_keys (key_id);
-- Those that ended, or will end, for retention.
CREATE INDEX api_keys_end ON api_keys (COALESCE(revoked_at, expires_at), key_id)
    WHERE COALESCE(revoked_at, expires_at) IS NOT NULL;

-- Who did what. Ids sort by time.
CREATE TABLE audit_log (
    audit_id uuid NOT NULL,
    at bigint NOT NULL,
    count bigint NOT NULL CHECK (count > 0),
    tenant_id text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    roles text NOT NULL,
    action text COLLATE "C" NOT NULL,
    object_kind text NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    correlation_id text NOT NULL,
    reason text,
    source text,
    CONSTRAINT audit_log_pkey PRIMARY KEY (tenant_id, audit_id)
);
CREATE INDEX audit_log_id ON audit_log (audit_id);
CREATE INDEX audit_log_actor ON audit_log (tenant_id, actor, audit_id);
CREATE INDEX audit_log_action ON audit_log (tenant_id, action, audit_id);
CREATE INDEX audit_log_object ON audit_log (tenant_id, object_id, audit_id);

-- Row security as for all tables with a tenant.
DO $$
DECLARE
    name text;
    own CONSTANT text := $own$tenant_id || '' = ANY (string_to_array(NULLIF(current_setting('app.tenants', true), ''), ','))$own$;
BEGIN
    FOREACH name IN ARRAY ARRAY['api_keys', 'audit_log'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY app ON %I TO servo_app USING (%s) WITH CHECK (%s)', name, own, own);
        EXECUTE format('CREATE POLICY engine ON %I TO servo_engine USING (true) WITH CHECK (true)', name);
    END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE ON api_keys TO servo_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON api_keys TO servo_engine;
-- An entry can be made and, when it is old, removed by the engine. Nobody changes one.
GRANT SELECT ON audit_log TO servo_app;
GRANT SELECT, INSERT, DELETE ON audit_log TO servo_engine;
