-- Keys that callers show. Of the secrets only digests are here, and what the server sealed.
CREATE TABLE api_keys (
    key_id       TEXT NOT NULL PRIMARY KEY,
    tenant_id    TEXT NOT NULL,
    name         TEXT NOT NULL,
    roles        TEXT NOT NULL,
    prefix       TEXT NOT NULL,
    digest       BLOB NOT NULL,
    sealed       TEXT,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_digest ON api_keys (digest);
CREATE INDEX api_keys_tenant ON api_keys (tenant_id, key_id);
-- Those that ended, or will end, for retention.
CREATE INDEX api_keys_end ON api_keys (coalesce(revoked_at, expires_at), key_id)
    WHERE coalesce(revoked_at, expires_at) IS NOT NULL;

-- Who did what. Ids sort by time.
CREATE TABLE audit_log (
    audit_id       BLOB NOT NULL PRIMARY KEY,
    at             INTEGER NOT NULL,
    tenant_id      TEXT NOT NULL,
    actor          TEXT NOT NULL,
    roles          TEXT NOT NULL,
    action         TEXT NOT NULL,
    object_kind    TEXT NOT NULL,
    object_id      TEXT NOT NULL,
    outcome        TEXT NOT NULL,
    correlation_id TEXT NOT NULL,
    reason         TEXT,
    source         TEXT,
    count          INTEGER NOT NULL CHECK (count > 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_log_tenant ON audit_log (tenant_id, audit_id);
CREATE INDEX audit_log_actor ON audit_log (tenant_id, actor, audit_id);
CREATE INDEX audit_log_action ON audit_log (tenant_id, action, audit_id);
CREATE INDEX audit_log_object ON audit_log (tenant_id, object_id, audit_id);

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'audit entries are never changed');
END;
