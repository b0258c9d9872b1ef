//! First pages of invocations, and their numbers by status, with a million of them stored and newer runs of plans beside
//! them. The rows are written by SQL: how they came in makes no difference to reading.

use std::time::Instant;

use anyhow::Result;
use servo_model::TenantId;
use servo_model::invocation::InvocationStatus;
use servo_store::runs::{RunOrder, RunQuery};
use servo_store::{AdminStore as _, RunStore as _, Scope};
use servo_store_sqlite::{DATABASE_FILE, SqliteStore};
use tokio::runtime::Runtime;

use crate::stats::{median, percentile};
use crate::{Args, sqlite};

const INVOCATIONS: u32 = 1_000_000;
const OTHERS: u32 = 200_000;
const ENTRYPOINTS: u32 = 50;
const PAGE: u32 = 100;
const TIMES: usize = 500;

/// One in a hundred runs, one in a hundred has failed, the others have ended well.
const FILL: &str = "WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
    INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, created_at,
        finished_at, changed_seq, invocation, mode, correlation_id)
    SELECT printf('inv_%012d', n), 'default', '', '', 'plan-' || (n % ?3), '1',
        iif(n % 100 = 0, 'RUNNING', 'COMPLETED'),
        CASE n % 100 WHEN 0 THEN 'running' WHEN 1 THEN 'failed' ELSE 'succeeded' END,
        1770000000000 + n, iif(n % 100 = 0, NULL, 1770000000100 + n), 3, ?4, 'async', 'trace-' || (n / 10)
    FROM numbers";

const COUNT: &str = "INSERT INTO invocation_counts (tenant_id, plan_id, visible, count)
    SELECT tenant_id, plan_id, visible, count(*) FROM runs WHERE invocation = 1 GROUP BY 1, 2, 3";

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    runtime.block_on(sqlite::open(dir.path())?.close())?;
    {
        let conn = rusqlite::Connection::open(dir.path().join(DATABASE_FILE))?;
        conn.execute(FILL, (1, INVOCATIONS, ENTRYPOINTS, 1))?;
        conn.execute(FILL, (INVOCATIONS + 1, INVOCATIONS + OTHERS, ENTRYPOINTS, 0))?;
        conn.execute(COUNT, [])?;
    }
    let store = sqlite::open(dir.path())?;
    let page = RunQuery { invocations: Some(true), limit: PAGE, ..RunQuery::default() };
    let failed = vec![InvocationStatus::Failed];
    let entrypoint = Some("plan-1".to_owned());
    println!("## First pages of {PAGE} of {INVOCATIONS} invocations (SQLite)\n");
    println!("| asked by | p50 ms | p99 ms (goal < 10) |\n|---|---|---|");
    for (name, query) in [
        ("nothing", page.clone()),
        ("status, rare", RunQuery { visible: failed.clone(), ..page.clone() }),
        ("status, frequent", RunQuery { visible: vec![InvocationStatus::Succeeded], ..page.clone() }),
        ("entrypoint and status", RunQuery { plan_id: entrypoint.clone(), visible: failed, ..page.clone() }),
        ("entrypoint", RunQuery { plan_id: entrypoint, ..page.clone() }),
        ("time of creation", RunQuery { order: RunOrder::Created { after: None }, ..page.clone() }),
        ("correlation id", RunQuery { correlation_id: Some("trace-500".to_owned()), ..page }),
    ] {
        let scope = Scope::Tenant(TenantId::default_tenant());
        runtime.block_on(measure(name, async || Ok(store.list_runs(&scope, &query).await?.len())))?;
    }
    for (name, plan) in [("numbers by status", None), ("of one entrypoint", Some("plan-1"))] {
        let tenant = TenantId::default_tenant();
        runtime.block_on(measure(name, async || Ok(store.count_by_visible(&tenant, plan).await?.len())))?;
    }
    println!();
    runtime.block_on(SqliteStore::close(&store))?;
    Ok(())
}

async fn measure(name: &str, ask: impl AsyncFn() -> Result<usize>) -> Result<()> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let start = Instant::now();
        anyhow::ensure!(ask().await? > 0, "{name}: nothing was found");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("| {name} | {:.2} | {:.2} |", median(&times), percentile(&times, 0.99));
    Ok(())
}
