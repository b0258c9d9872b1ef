-- The run with which a tree of runs that start runs began; NULL for a run that nobody else's run has started.
ALTER TABLE runs ADD COLUMN root_id TEXT;

-- What is open of such a tree: counted before one more begins, and found when a run of it is cancelled.
CREATE INDEX runs_root ON runs (tenant_id, root_id, run_id)
    WHERE purging = 0 AND root_id IS NOT NULL AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED');
