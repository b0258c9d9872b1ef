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

-- Runs of entrypoints are invocations. Lists of them never meet other runs.
ALTER TABLE runs ADD COLUMN invocation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN mode TEXT;
ALTER TABLE runs ADD COLUMN correlation_id TEXT;

DROP INDEX runs_visible;
CREATE INDEX runs_visible ON runs (tenant_id, invocation, visible, run_id) WHERE purging = 0;
CREATE INDEX runs_created ON runs (tenant_id, created_at, run_id) WHERE purging = 0 AND invocation = 1;
CREATE INDEX runs_correlation ON runs (tenant_id, correlation_id, run_id)
    WHERE purging = 0 AND correlation_id IS NOT NULL;

-- How many invocations are in each status. Triggers keep it, so that no way of writing a run can forget it.
CREATE TABLE invocation_counts (
    tenant_id TEXT NOT NULL,
    plan_id   TEXT NOT NULL,
    visible   TEXT NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, plan_id, visible)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER invocations_counted_in AFTER INSERT ON runs
WHEN NEW.invocation = 1 AND NEW.purging = 0
BEGIN
    INSERT INTO invocation_counts (tenant_id, plan_id, visible, count)
        VALUES (NEW.tenant_id, NEW.plan_id, NEW.visible, 1)
        ON CONFLICT (tenant_id, plan_id, visible) DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER invocations_counted_again AFTER UPDATE OF visible, plan_id ON runs
WHEN NEW.invocation = 1 AND NEW.purging = 0 AND (OLD.visible <> NEW.visible OR OLD.plan_id <> NEW.plan_id)
BEGIN
    UPDATE invocation_counts SET count = count - 1
        WHERE tenant_id = OLD.tenant_id AND plan_id = OLD.plan_id AND visible = OLD.visible;
    INSERT INTO invocation_counts (tenant_id, plan_id, visible, count)
        VALUES (NEW.tenant_id, NEW.plan_id, NEW.visible, 1)
        ON CONFLICT (tenant_id, plan_id, visible) DO UPDATE SET count = count + 1;
END;

-- A run that is being deleted counts no more. Here, where they are rare, rows that count nothing leave as well.
CREATE TRIGGER invocations_counted_out AFTER UPDATE OF purging ON runs
WHEN OLD.invocation = 1 AND OLD.purging = 0 AND NEW.purging = 1
BEGIN
    UPDATE invocation_counts SET count = count - 1
        WHERE tenant_id = OLD.tenant_id AND plan_id = OLD.plan_id AND visible = OLD.visible;
    DELETE FROM invocation_counts WHERE tenant_id = OLD.tenant_id AND plan_id = OLD.plan_id AND count = 0;
END;
