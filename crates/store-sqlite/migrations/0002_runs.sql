-- What the caller calls a run, and a finer word for how it ended.
ALTER TABLE runs ADD COLUMN name TEXT;
ALTER TABLE runs ADD COLUMN outcome TEXT;

-- By status, too: an old plan has many runs that ended, and people ask for those that did not.
DROP INDEX runs_plan;
CREATE INDEX runs_plan ON runs (tenant_id, plan_id, visible, run_id) WHERE purging = 0;
CREATE INDEX runs_name ON runs (tenant_id, name, run_id) WHERE purging = 0 AND name IS NOT NULL;
-- What a version still has to do.
CREATE INDEX runs_open ON runs (tenant_id, plan_id, plan_version)
    WHERE purging = 0 AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED');
