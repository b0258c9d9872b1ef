-- Entrypoints that are registered while the server runs. The document comes last: lists that pass over a row do not
-- read it.
CREATE TABLE entrypoints (
    tenant_id     TEXT NOT NULL,
    entrypoint_id TEXT NOT NULL,
    owner_type    TEXT NOT NULL,
    owner_id      TEXT NOT NULL,
    address       TEXT NOT NULL,
    version       TEXT NOT NULL,
    status        TEXT NOT NULL,
    adapter       TEXT NOT NULL,
    title         TEXT NOT NULL,
    -- A JSON array of texts.
    tags          TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    revision      INTEGER NOT NULL CHECK (revision > 0),
    document      TEXT NOT NULL,
    PRIMARY KEY (tenant_id, entrypoint_id),
    UNIQUE (tenant_id, address)
) STRICT;

CREATE INDEX entrypoints_id ON entrypoints (entrypoint_id, tenant_id);
CREATE INDEX entrypoints_created ON entrypoints (tenant_id, created_at, entrypoint_id);
CREATE INDEX entrypoints_updated ON entrypoints (tenant_id, updated_at, entrypoint_id);
CREATE INDEX entrypoints_counted ON entrypoints (tenant_id) WHERE status <> 'archived';
