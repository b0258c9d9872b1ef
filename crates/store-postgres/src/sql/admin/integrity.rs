//! Looks for damage that the database's own constraints would not allow, and for constraints that are gone; then reads every event
//! and what else has a checksum, a page at a time.

use servo_canon::Digest;
use servo_store::checksum::snapshot_checksum;
use servo_store::{Error, Integrity, Result};

use crate::pipeline::{Pipeline, params};
use crate::rows::{self, event_page};
use crate::sql::entrypoints;
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

const EVENTS: &str = event_page!(
    "FROM events e WHERE (e.run_id, e.run_seq) > ($1, $2::bigint) ORDER BY e.run_id, e.run_seq LIMIT $3",
    "e.run_id, e.run_seq",
    "$4"
);

const SNAPSHOTS: &str = "SELECT run_id, run_seq, state, checksum FROM snapshots
    WHERE (run_id, run_seq) > ($1, $2::bigint) ORDER BY run_id, run_seq LIMIT $3";

const FUNCTIONS: &str = "SELECT tenant_id, name, version, digest, document FROM function_versions
    WHERE (tenant_id, name, version) > ($1, $2, $3::bigint) ORDER BY tenant_id, name, version LIMIT $4";

const ENTRYPOINTS: &str = "SELECT * FROM entrypoints WHERE (tenant_id, entrypoint_id) > ($1, $2)
    ORDER BY tenant_id, entrypoint_id LIMIT $3";

/// Events of a page.
const PAGE: i64 = 1_000;
/// Of what may be large.
const FEW: i64 = 32;

impl PostgresStore {
    pub(super) async fn find_damage(&self) -> Result<Integrity> {
        let mut integrity = Integrity { problems: self.find_breaches().await?, without_checksum: 0 };
        self.check_events(&mut integrity).await?;
        self.check_snapshots(&mut integrity).await?;
        self.check_functions(&mut integrity).await?;
        self.check_entrypoints(&mut integrity).await?;
        Ok(integrity)
    }

    /// Every event is as it was written, and those of a run lie in the log in their order.
    async fn check_events(&self, integrity: &mut Integrity) -> Result<()> {
        let (mut run_id, mut run_seq, mut before) = (String::new(), 0_i64, None);
        loop {
            let found =
                self.engine_read(EVENTS, params![run_id.as_str(), run_seq, PAGE, self.page_bytes_max()]).await?;
            if found.is_empty() {
                return Ok(());
            }
            for row in &found {
                let (run, seq) = (rows::get::<String>(row, "run_id")?, rows::get(row, "run_seq")?);
                let position = rows::event_position(row)?;
                let problem = match rows::event(row) {
                    Ok(_) if run == run_id && before.is_some_and(|before| before >= position) => {
                        Some(format!("event {seq} of run {run} stands before an earlier one in the log"))
                    }
                    Ok(_) => None,
                    Err(Error::Corrupt { detail }) => Some(detail),
                    Err(error) => return Err(error),
                };
                integrity.problems.extend(problem);
                integrity.without_checksum += u64::from(rows::get::<Option<i64>>(row, "checksum")?.is_none());
                (run_id, run_seq, before) = (run, seq, Some(position));
            }
        }
    }

    /// A snapshot that has changed is not used: what it spares a reader is lost, and nothing else.
    async fn check_snapshots(&self, integrity: &mut Integrity) -> Result<()> {
        let (mut run_id, mut run_seq) = (String::new(), 0_i64);
        loop {
            let found = self.engine_read(SNAPSHOTS, params![run_id.as_str(), run_seq, FEW]).await?;
            let Some(last) = found.last() else { return Ok(()) };
            for row in &found {
                let (run, seq) = (rows::run_id(row, "run_id")?, rows::number(row, "run_seq")?);
                let checksum = snapshot_checksum(&run, seq, rows::get(row, "state")?);
                if rows::get::<Option<i64>>(row, "checksum")?.is_some_and(|written| written != checksum) {
                    let problem = format!("the snapshot of run {run} at event {seq} is not as written; it is not used");
                    integrity.problems.push(problem);
                }
            }
            (run_id, run_seq) = (rows::get(last, "run_id")?, rows::get(last, "run_seq")?);
        }
    }

    /// A version of a function has the digest of its document since it was registered.
    async fn check_functions(&self, integrity: &mut Integrity) -> Result<()> {
        let (mut tenant, mut name, mut version) = (String::new(), String::new(), 0_i64);
        loop {
            let params = params![tenant.as_str(), name.as_str(), version, FEW];
            let found = self.engine_read(FUNCTIONS, params).await?;
            if found.is_empty() {
                return Ok(());
            }
            for row in &found {
                let of = |column| rows::get::<String>(row, column);
                (tenant, name, version) = (of("tenant_id")?, of("name")?, rows::get(row, "version")?);
                if Digest::of(of("document")?.as_bytes()) != rows::digest(rows::get(row, "digest")?)? {
                    integrity.problems.push(format!("version {version} of function {name} is not as registered"));
                }
            }
        }
    }

    async fn check_entrypoints(&self, integrity: &mut Integrity) -> Result<()> {
        let (mut tenant, mut id) = (String::new(), String::new());
        loop {
            let found = self.engine_read(ENTRYPOINTS, params![tenant.as_str(), id.as_str(), FEW]).await?;
            let Some(last) = found.last() else { return Ok(()) };
            for row in &found {
                match entrypoints::intact(row) {
                    Ok(_) => {}
                    Err(Error::Corrupt { detail }) => integrity.problems.push(detail),
                    Err(error) => return Err(error),
                }
            }
            (tenant, id) = (rows::get(last, "tenant_id")?, rows::get(last, "entrypoint_id")?);
        }
    }

    async fn find_breaches(&self) -> Result<Vec<String>> {
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
