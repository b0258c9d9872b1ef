-- The run with which a tree of runs that start runs began; NULL for a run that nobody else's run has started.
ALTER TABLE runs ADD COLUMN root_id text COLLATE "C";

-- What is open of such a tree: counted before one more begins, and found when a run of it is cancelled.
CREATE INDEX runs_root ON runs (tenant_id, root_id, run_id)
    WHERE root_id IS NOT NULL AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED');

-- Notes the roots of runs that the same statement has just written: its first argument is what `append_expected` gives back, so
-- that this comes after it. Runs with a root are few beside all others, whose appends need not know of it.
--
-- It runs with the rights of its caller, under row security.
CREATE FUNCTION note_roots(at_time bigint, new_run text[], new_root text[]) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs r SET root_id = u.root_id FROM unnest(new_run, new_root) AS u (run_id, root_id) WHERE r.run_id = u.run_id;
    RETURN at_time;
END $$;

-- Also where the rights of new functions are kept from everybody.
GRANT EXECUTE ON FUNCTION note_roots TO servo_app;
