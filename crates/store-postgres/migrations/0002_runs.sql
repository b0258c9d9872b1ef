-- What the caller calls a run, and a finer word for how it ended.
ALTER TABLE runs ADD COLUMN name text COLLATE "C", ADD COLUMN outcome text COLLATE "C";

-- By status, too: an old plan has many runs that ended, and people ask for those that did not.
DROP INDEX runs_plan;
CREATE INDEX runs_plan ON runs (tenant_id, plan_id, visible, run_id);
CREATE INDEX runs_name ON runs (tenant_id, name, run_id) WHERE name IS NOT NULL;
-- What a version still has to do.
CREATE INDEX runs_open ON runs (tenant_id, plan_id, plan_version)
    WHERE status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED');
