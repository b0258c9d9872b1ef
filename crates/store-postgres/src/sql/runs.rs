//! The `runs` rows. Lists of them are in `list`.

mod filter;
mod list;

use std::collections::BTreeMap;

use async_trait::async_trait;
use servo_canon::Digest;
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{RunId, TenantId};
use servo_store::runs::RunQuery;
use servo_store::{Result, RunRow, RunStore, Scope};

use super::{counts, lock};
use crate::append::NewRun;
use crate::pipeline::{Param, Pipeline, params};
use crate::rows;
use crate::store::PostgresStore;

const INSERT: &str =
    "INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible,
        request_key, created_at, finished_at, changed_seq, quarantined, name, outcome, invocation, mode, correlation_id, root_id)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::bytea[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[],
        $16::boolean[], $17::text[], $18::text[], $19::text[])";

/// What came with the run's start stays: its request, its time and how it was called. So does why it was set aside.
const UPDATE: &str = "UPDATE runs r SET project = u.project, environment = u.environment, plan_id = u.plan_id,
        plan_version = u.plan_version, status = u.status, visible = u.visible, finished_at = u.finished_at,
        changed_seq = u.changed_seq, name = u.name, outcome = u.outcome
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
        $9::bigint[], $10::text[], $11::text[])
        AS u (run_id, project, environment, plan_id, plan_version, status, visible, finished_at, changed_seq, name, outcome)
    WHERE r.run_id = u.run_id";

pub(super) const GET: &str = "SELECT * FROM runs WHERE run_id = $1 AND ($2::text IS NULL OR tenant_id = $2)";

const OPEN: &str = "SELECT plan_version, count(*) AS count FROM runs
    WHERE tenant_id = $1 AND plan_id = $2 AND run_id <> '_system'
        AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED')
    GROUP BY plan_version ORDER BY plan_version";

/// The condition of the partial index, word for word.
macro_rules! open_below {
    ($what:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM runs WHERE tenant_id = $1 AND root_id = $2 AND root_id IS NOT NULL
                AND status IN ('PENDING', 'APPROVED', 'RUNNING', 'PAUSED')",
            $rest
        )
    };
}

const COUNT_BELOW: &str = concat!("SELECT count(*) AS count FROM (", open_below!("", " LIMIT $3"), ") below");

const OPEN_BELOW: &str = open_below!("run_id", " AND run_id > $3 ORDER BY run_id LIMIT $4");

const REQUEST: &str = "SELECT run_id FROM runs WHERE tenant_id = $1 AND request_key = $2";

const RELEASE: &str = "UPDATE runs SET request_key = NULL WHERE run_id = $1 AND tenant_id = $2 AND request_key = $3";

const ACTIVE: &str = "SELECT count(*) AS count FROM (SELECT FROM runs
    WHERE tenant_id = $1 AND status IN ('RUNNING', 'PAUSED') AND run_id <> '_system' LIMIT $2) active";

pub(crate) fn insert<'a>(pipeline: &mut Pipeline<'a>, runs: &[NewRun<'a>]) -> Result<()> {
    if !runs.is_empty() {
        let mut columns = new_columns(runs)?;
        columns.extend(params![runs.iter().map(|run| run.row.root.as_ref().map(RunId::as_str)).collect::<Vec<_>>()]);
        pipeline.query(INSERT, columns);
    }
    Ok(())
}

/// New runs as parallel arrays, without their roots.
pub(crate) fn new_columns<'a>(runs: &[NewRun<'a>]) -> Result<Vec<Param<'a>>> {
    let text = |of: fn(&'a RunRow) -> &'a str| runs.iter().map(|run| of(run.row)).collect::<Vec<&'a str>>();
    let maybe = |of: fn(&'a RunRow) -> Option<&'a str>| runs.iter().map(|run| of(run.row)).collect::<Vec<_>>();
    let seqs = runs.iter().map(|run| rows::exact("changed_seq", run.row.changed_seq)).collect::<Result<Vec<_>>>()?;
    let keys: Vec<_> = runs.iter().map(|run| run.row.request_key.map(|key| key.as_bytes().to_vec())).collect();
    let finished: Vec<_> = runs.iter().map(|run| run.row.finished_at.map(|at| at.as_millis())).collect();
    Ok(params![
        runs.iter().map(|run| run.run_id.as_str()).collect::<Vec<&'a str>>(),
        runs.iter().map(|run| run.tenant.as_str()).collect::<Vec<&'a str>>(),
        text(|row| &row.project),
        text(|row| &row.environment),
        text(|row| &row.plan_id),
        text(|row| &row.plan_version),
        text(|row| row.status.as_str()),
        text(|row| row.visible.as_str()),
        keys,
        runs.iter().map(|run| run.row.created_at.as_millis()).collect::<Vec<_>>(),
        finished,
        seqs,
        maybe(|row| row.quarantined.as_deref()),
        maybe(|row| row.name.as_deref()),
        maybe(|row| row.outcome.as_deref()),
        runs.iter().map(|run| run.row.invocation).collect::<Vec<_>>(),
        runs.iter().map(|run| run.row.mode.map(InvocationMode::as_str)).collect::<Vec<_>>(),
        maybe(|row| row.correlation_id.as_deref()),
    ])
}

pub(crate) fn update<'a>(pipeline: &mut Pipeline<'a>, runs: &BTreeMap<&'a RunId, &'a RunRow>) -> Result<()> {
    if !runs.is_empty() {
        pipeline.query(UPDATE, changed_columns(runs)?);
    }
    Ok(())
}

/// Rows that change as parallel arrays.
pub(crate) fn changed_columns<'a>(runs: &BTreeMap<&'a RunId, &'a RunRow>) -> Result<Vec<Param<'a>>> {
    let text = |of: fn(&'a RunRow) -> &'a str| runs.values().map(|row| of(row)).collect::<Vec<&'a str>>();
    let seqs = runs.values().map(|row| rows::exact("changed_seq", row.changed_seq)).collect::<Result<Vec<_>>>()?;
    let finished: Vec<_> = runs.values().map(|row| row.finished_at.map(|at| at.as_millis())).collect();
    Ok(params![
        runs.keys().map(|run| run.as_str()).collect::<Vec<&'a str>>(),
        text(|row| &row.project),
        text(|row| &row.environment),
        text(|row| &row.plan_id),
        text(|row| &row.plan_version),
        text(|row| row.status.as_str()),
        text(|row| row.visible.as_str()),
        finished,
        seqs,
        runs.values().map(|row| row.name.as_deref()).collect::<Vec<_>>(),
        runs.values().map(|row| row.outcome.as_deref()).collect::<Vec<_>>(),
    ])
}

#[async_trait]
impl RunStore for PostgresStore {
    async fn get_run(&self, scope: &Scope, run_id: &RunId) -> Result<Option<RunRow>> {
        let mut read = self.reading(scope);
        let run = read.query(GET, params![run_id.as_str(), read.tenant()]);
        let answers = self.read(read).await?;
        answers[run].rows.first().map(rows::run).transpose()
    }

    async fn list_runs(&self, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>> {
        query.check()?;
        let mut read = self.reading(scope);
        let tenant = read.tenant();
        let list = list::ask(&mut read, tenant, query);
        let answers = self.read(read).await?;
        answers[list].rows.iter().map(rows::run).collect()
    }

    async fn find_request(&self, tenant: &TenantId, key: Digest) -> Result<Option<RunId>> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let found = read.query(REQUEST, params![tenant.as_str(), key.as_bytes().as_slice()]);
        let answers = self.read(read).await?;
        answers[found].rows.first().map(|row| rows::run_id(row, "run_id")).transpose()
    }

    async fn release_request(&self, tenant: &TenantId, key: Digest, run_id: &RunId) -> Result<bool> {
        self.core.check_open()?;
        let connection = self.core.pools.borrow(&self.core.pools.tenant).await?;
        let mut locks = vec![lock::run(run_id), lock::request(tenant, key)];
        locks.sort_unstable();
        let mut pipeline = Pipeline::new();
        pipeline.plain("BEGIN");
        pipeline.query(super::SET_TENANTS, params![tenant.as_str()]);
        pipeline.query(lock::RUNS, params![locks]);
        let freed = pipeline.query(RELEASE, params![run_id.as_str(), tenant.as_str(), key.as_bytes().as_slice()]);
        let freed = connection.ask(pipeline).await?[freed].affected > 0;
        connection.commit(Pipeline::new()).await?;
        Ok(freed)
    }

    async fn count_by_visible(&self, tenant: &TenantId, plan_id: Option<&str>) -> Result<Vec<(InvocationStatus, u64)>> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let counted = read.query(counts::BY_VISIBLE, params![tenant.as_str(), plan_id.unwrap_or(counts::ALL_PLANS)]);
        let answers = self.read(read).await?;
        counts::read(&answers[counted].rows)
    }

    async fn count_active(&self, tenant: &TenantId, most: u32) -> Result<u32> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let count = read.query(ACTIVE, params![tenant.as_str(), i64::from(most)]);
        let answers = self.read(read).await?;
        let row = answers[count].rows.first().ok_or_else(|| crate::error::corrupt("a count is missing"))?;
        rows::small(row, "count")
    }

    async fn count_open(&self, tenant: &TenantId, plan_id: &str) -> Result<Vec<(String, u64)>> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let counted = read.query(OPEN, params![tenant.as_str(), plan_id]);
        let answers = self.read(read).await?;
        answers[counted]
            .rows
            .iter()
            .map(|row| Ok((rows::get(row, "plan_version")?, rows::number(row, "count")?)))
            .collect()
    }

    async fn count_descendants(&self, tenant: &TenantId, root: &RunId, most: u32) -> Result<u32> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let count = read.query(COUNT_BELOW, params![tenant.as_str(), root.as_str(), i64::from(most)]);
        let answers = self.read(read).await?;
        let row = answers[count].rows.first().ok_or_else(|| crate::error::corrupt("a count is missing"))?;
        rows::small(row, "count")
    }

    async fn open_descendants(
        &self,
        tenant: &TenantId,
        root: &RunId,
        after: Option<&RunId>,
        limit: u32,
    ) -> Result<Vec<RunId>> {
        let scope = Scope::Tenant(tenant.clone());
        let mut read = self.reading(&scope);
        let after = after.map_or("", RunId::as_str);
        let found = read.query(OPEN_BELOW, params![tenant.as_str(), root.as_str(), after, i64::from(limit)]);
        let answers = self.read(read).await?;
        answers[found].rows.iter().map(|row| rows::run_id(row, "run_id")).collect()
    }
}
