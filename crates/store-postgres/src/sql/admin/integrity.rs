//! Looks for damage that the database's own constraints would not allow, and for constraints that are gone. Reads every
//! run once and no payload.

use servo_store::Result;

use crate::pipeline::{Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

/// Each gives a text per finding, a few at most.
const CHECKS: [&str; 11] = [
    "SELECT 'run ' || r.run_id || ' has no events' AS finding FROM runs r
        WHERE r.run_id <> '_system' AND NOT EXISTS (SELECT FROM events e WHERE e.run_id = r.run_id) LIMIT 20",
    "SELECT 'event ' || e.run_seq || ' of run ' || e.run_id || ' has lost its payload' AS finding FROM events e
        WHERE e.blob_digest IS NOT NULL
            AND NOT EXISTS (SELECT FROM blobs b WHERE b.run_id = e.run_id AND b.run_seq = e.run_seq) LIMIT 20",
    "SELECT 'a payload of run ' || b.run_id || ' has no event' AS finding FROM blobs b
        WHERE NOT EXISTS (SELECT FROM events e WHERE e.run_id = b.run_id AND e.run_seq = b.run_seq) LIMIT 20",
    // One look into the index for each run.
    "WITH RECURSIVE found AS (
            (SELECT run_id FROM events ORDER BY run_id LIMIT 1)
            UNION ALL
            SELECT (SELECT e.run_id FROM events e WHERE e.run_id > f.run_id ORDER BY e.run_id LIMIT 1)
                FROM found f WHERE f.run_id IS NOT NULL)
        SELECT 'events of ' || f.run_id || ' have no run' AS finding FROM found f
        WHERE f.run_id IS NOT NULL AND NOT EXISTS (SELECT FROM runs r WHERE r.run_id = f.run_id) LIMIT 20",
    "SELECT 'the system stream has no row' AS finding WHERE NOT EXISTS (SELECT FROM runs WHERE run_id = '_system')",
    "SELECT 'the store has no epoch' AS finding WHERE NOT EXISTS (SELECT FROM meta)",
    // The guards of the log: triggers on each of its tables and on the runs they belong to, none switched off.
    "SELECT 'table ' || name || ' is not guarded' AS finding
        FROM (VALUES ('events', 4), ('blobs', 3), ('runs', 2), ('timers', 1), ('dispatches', 1)) AS guarded (name, triggers)
        WHERE triggers <> (SELECT count(*) FROM pg_trigger t WHERE t.tgrelid = ('servo.' || name)::regclass
            AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A'))",
    "SELECT 'table ' || c.relname || ' has no forced row security' AS finding FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
        WHERE c.relnamespace = 'servo'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
    "SELECT 'role ' || rolname || ' is exempt from row security' AS finding FROM pg_roles
        WHERE rolname IN ('servo_app', 'servo_engine') AND (rolsuper OR rolbypassrls)",
    // Older minor versions let statistics show rows past row security (CVE-2025-8713).
    "SELECT 'PostgreSQL ' || current_setting('server_version') || ' does not hold row security: update it' AS finding
        FROM (VALUES (15, 14), (16, 10), (17, 6)) AS fixed (major, minor)
        WHERE current_setting('server_version_num')::int BETWEEN major * 10000 AND major * 10000 + minor - 1",
    "SELECT 'index ' || i.indexrelid::regclass || ' is not valid' AS finding FROM pg_index i
        JOIN pg_class c ON c.oid = i.indrelid
        WHERE c.relnamespace = 'servo'::regnamespace AND NOT i.indisvalid",
];

impl PostgresStore {
    pub(super) async fn find_damage(&self) -> Result<Vec<String>> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.engine).await?;
        let mut pipeline = Pipeline::new();
        for sql in CHECKS {
            pipeline.query(sql, params![]);
        }
        let answers = connection.ask(pipeline).await?;
        connection.release();
        answers.iter().flat_map(|answer| &answer.rows).map(|row| rows::get(row, "finding")).collect()
    }
}
