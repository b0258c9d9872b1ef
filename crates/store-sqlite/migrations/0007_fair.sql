-- Open dispatches by tenant: each tenant's first ones are found however many another has. In place of the index by time
-- alone, so that a dispatch costs as many index entries as before.
DROP INDEX dispatches_pending;
CREATE INDEX dispatches_pending ON dispatches (tenant_id, queued_at, request_id)
    WHERE state = 'pending' AND step_id IS NOT NULL;

-- The same for runs that wait to be started.
DROP INDEX queue_order;
CREATE INDEX queue_order ON queue (tenant_id, queued_at, run_id, free_at);
