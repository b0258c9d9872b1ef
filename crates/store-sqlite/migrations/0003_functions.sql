-- Functions that are registered: the latest version of each, all its versions, and the aliases that name one of them.
CREATE TABLE functions (
    tenant_id TEXT NOT NULL,
    name      TEXT NOT NULL,
    latest    INTEGER NOT NULL CHECK (latest > 0),
    PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE function_versions (
    tenant_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL CHECK (version > 0),
    digest     BLOB NOT NULL,
    document   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name, version),
    FOREIGN KEY (tenant_id, name) REFERENCES functions (tenant_id, name)
) STRICT;

CREATE TRIGGER function_versions_no_update BEFORE UPDATE ON function_versions
BEGIN
    SELECT RAISE(ABORT, 'versions are never changed');
END;

CREATE TABLE function_aliases (
    tenant_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    alias      TEXT NOT NULL,
    version    INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name, alias),
    FOREIGN KEY (tenant_id, name, version) REFERENCES function_versions (tenant_id, name, version)
) STRICT, WITHOUT ROWID;

-- For the check of the reference when versions go.
CREATE INDEX function_aliases_version ON function_aliases (tenant_id, name, version);
