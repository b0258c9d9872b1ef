//! Removing whole runs, and the beginning of the system stream. Each transaction is small: writers of other runs never
//! wait for it, and readers of the log only briefly.

use servo_model::{RunId, Timestamp};
use servo_store::{Error, Result, Scope};

use crate::pipeline::{Pipeline, params};
use crate::pool::Connection;
use crate::rows;
use crate::sql::{counts, lock};
use crate::store::PostgresStore;

/// Runs removed in one transaction, and the events after which it takes no further one.
const RUNS_MAX: usize = 64;
const EVENTS_MAX: u64 = 20_000;

const DUE: &str = "SELECT r.run_id, COALESCE(
        (SELECT e.run_seq FROM events e WHERE e.run_id = r.run_id ORDER BY e.run_seq DESC LIMIT 1), 0) AS head
    FROM runs r WHERE r.finished_at < $1 ORDER BY r.finished_at, r.run_id LIMIT $2";

/// Asked again under the lock: a finished run may have been queued anew.
const STILL_DUE: &str = "SELECT run_id FROM runs WHERE run_id = ANY ($1) AND finished_at < $2";

const OWN: &str = "SELECT run_id FROM runs WHERE run_id = $1 AND ($2::text IS NULL OR tenant_id = $2)";

/// Opens the guard of the log for this transaction.
const MARK: &str = "UPDATE runs SET trim_before = 9223372036854775807, trim_xid = pg_current_xact_id()
    WHERE run_id = ANY ($1)";

/// In this order: what refers to the run goes first.
const REMOVE: [&str; 12] = [
    "DELETE FROM events WHERE run_id = ANY ($1)",
    "DELETE FROM blobs WHERE run_id = ANY ($1)",
    "DELETE FROM snapshots WHERE run_id = ANY ($1)",
    "DELETE FROM lines WHERE run_id = ANY ($1)",
    "DELETE FROM line_heads WHERE run_id = ANY ($1)",
    "DELETE FROM timers WHERE run_id = ANY ($1)",
    "DELETE FROM queue WHERE run_id = ANY ($1)",
    "DELETE FROM dispatches WHERE run_id = ANY ($1)",
    "DELETE FROM outbox WHERE run_id = ANY ($1)",
    "DELETE FROM dead_letters WHERE run_id = ANY ($1)",
    "DELETE FROM alerts WHERE run_id = ANY ($1)",
    counts::REMOVE,
];

const REMOVE_RUNS: &str = "DELETE FROM runs WHERE run_id = ANY ($1)";

/// The end of the leading events that are old, at most so many.
const OLD: &str = "SELECT COALESCE(max(run_seq), 0) AS last, count(*) AS count FROM (
        SELECT run_seq FROM events WHERE run_id = $1 AND run_seq < COALESCE(
            (SELECT run_seq FROM events WHERE run_id = $1 AND emitted_at >= $2 ORDER BY run_seq LIMIT 1),
            9223372036854775807)
        ORDER BY run_seq LIMIT $3) old";

/// The head is kept in the row, because its event may go.
const MARK_OLD: &str = "UPDATE runs SET trim_before = $2::bigint + 1, trim_xid = pg_current_xact_id(),
        head_floor = GREATEST(head_floor, COALESCE(
            (SELECT run_seq FROM events WHERE run_id = $1 ORDER BY run_seq DESC LIMIT 1), 0))
    WHERE run_id = $1";

const REMOVE_OLD: [&str; 2] =
    ["DELETE FROM events WHERE run_id = $1 AND run_seq <= $2", "DELETE FROM blobs WHERE run_id = $1 AND run_seq <= $2"];

const REMOVE_OLD_DISPATCHES: &str =
    "DELETE FROM dispatches WHERE run_id = $1 AND state IN ('delivered', 'failed') AND changed_at < $2";

impl PostgresStore {
    pub(super) async fn retire_runs(&self, finished_before: Timestamp, limit: u32) -> Result<u32> {
        let before = finished_before.as_millis();
        let mut retired = 0;
        while retired < limit {
            let wanted = limit - retired;
            let due = self.engine_read(DUE, params![before, i64::from(wanted)]).await?;
            let mut found = Vec::with_capacity(due.len());
            for row in &due {
                found.push((rows::run_id(row, "run_id")?, rows::number(row, "head")?));
            }
            let mut removed = 0;
            for chunk in chunks(&found) {
                removed += self.retire_chunk(chunk, before).await?;
            }
            retired += removed;
            // Fewer than asked for means that no more are due. None although some were found: they are in use again.
            if due.len() < wanted as usize || removed == 0 {
                break;
            }
        }
        Ok(retired)
    }

    async fn retire_chunk(&self, runs: &[(RunId, u64)], before: i64) -> Result<u32> {
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let ids: Vec<&str> = runs.iter().map(|(run, _)| run.as_str()).collect();
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(lock::RUNS, params![lock::runs(runs.iter().map(|(run, _)| run))]);
        let due = pipeline.query(STILL_DUE, params![ids, before]);
        let answers = connection.ask(pipeline).await?;
        let due = answers[due].rows.iter().map(|row| rows::run_id(row, "run_id")).collect::<Result<Vec<_>>>()?;
        crashpoint!("postgres.retire.before_commit");
        remove(connection, &due).await?;
        crashpoint!("postgres.retire.after_commit");
        Ok(u32::try_from(due.len()).unwrap_or(u32::MAX))
    }

    pub(super) async fn delete_one(&self, scope: &Scope, run_id: &RunId) -> Result<()> {
        self.core.check_open()?;
        if run_id.is_system() {
            return Err(Error::NotFound);
        }
        let tenant = match scope {
            Scope::Tenant(tenant) => Some(tenant.as_str()),
            Scope::System => None,
        };
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(lock::RUNS, params![lock::runs([run_id])]);
        let own = pipeline.query(OWN, params![run_id.as_str(), tenant]);
        let answers = connection.ask(pipeline).await?;
        if answers[own].rows.is_empty() {
            connection.roll_back().await;
            return Err(Error::NotFound);
        }
        remove(connection, std::slice::from_ref(run_id)).await
    }

    pub(super) async fn trim(&self, before: Timestamp, limit: u32) -> Result<u32> {
        self.core.check_open()?;
        let system = RunId::system();
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(lock::RUNS, params![lock::runs([&system])]);
        let old = pipeline.query(OLD, params![system.as_str(), before.as_millis(), i64::from(limit)]);
        let answers = connection.ask(pipeline).await?;
        let row = answers[old].rows.first().ok_or(Error::NotFound)?;
        let (last, count): (i64, u32) = (rows::get(row, "last")?, rows::small(row, "count")?);
        let mut pipeline = Pipeline::new();
        if count > 0 {
            pipeline.query(MARK_OLD, params![system.as_str(), last]);
            for sql in REMOVE_OLD {
                pipeline.query(sql, params![system.as_str(), last]);
            }
        }
        pipeline.query(REMOVE_OLD_DISPATCHES, params![system.as_str(), before.as_millis()]);
        crashpoint!("postgres.trim.before_commit");
        connection.commit(pipeline).await?;
        crashpoint!("postgres.trim.after_commit");
        Ok(count)
    }
}

/// Removes runs whose locks are held, and commits.
async fn remove(connection: Connection, runs: &[RunId]) -> Result<()> {
    let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    let mut pipeline = Pipeline::new();
    if !ids.is_empty() {
        pipeline.query(MARK, params![ids.clone()]);
        for sql in REMOVE {
            pipeline.query(sql, params![ids.clone()]);
        }
        pipeline.query(REMOVE_RUNS, params![ids]);
    }
    connection.commit(pipeline).await
}

/// Runs that go together: few, with few events, or a single large one.
fn chunks(runs: &[(RunId, u64)]) -> Vec<&[(RunId, u64)]> {
    let (mut chunks, mut start, mut events) = (Vec::new(), 0, 0);
    for (index, (_, head)) in runs.iter().enumerate() {
        events += head;
        if index > start && (events > EVENTS_MAX || index - start == RUNS_MAX) {
            chunks.push(&runs[start..index]);
            (start, events) = (index, *head);
        }
    }
    if start < runs.len() {
        chunks.push(&runs[start..]);
    }
    chunks
}
