//! Postgres: the store beside `pgbench` inserting the same row into the same table with as many clients.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use servo_store::{AdminStore as _, LogStore as _};
use servo_store_postgres::{Config, PostgresStore};
use tokio::runtime::Runtime;

use crate::stats::median;
use crate::{APPENDERS, Args, rows, sqlite};

/// Each client has its own run; a shared sequence gives growing numbers, as an appender would.
const SCRIPT: &str = "INSERT INTO events (run_id, run_seq, tenant_id, event_id, event_type, idempotency_key, emitted_at, \
     emitted_by, occurred_at, payload, blob_digest, store_epoch) VALUES (lpad(:client_id::text, 36, 'b'), nextval('public.bench_seq'), \
     'default', gen_random_uuid(), 'StepCompleted', sha256((:client_id || '|' || currval('public.bench_seq'))::bytea), :at, \
     'engine', NULL, :payload, NULL, 1);\n";

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let Ok(url) = std::env::var("SERVO_TEST_POSTGRES_URL") else {
        bail!("SERVO_TEST_POSTGRES_URL is not set; `cargo xtask bench` starts a server and sets it");
    };
    let (mut bare, mut servo) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        let database = Database::create(&url, round)?;
        let store = runtime.block_on(PostgresStore::connect(Config::new(&database.url)))?;
        let store = Arc::new(store);
        runtime.block_on(async {
            for run in 0..APPENDERS {
                store.append(rows::create(run)).await?;
            }
            anyhow::Ok(())
        })?;
        bare.push(pgbench(args, &database)?);
        servo.push(sqlite::concurrent(runtime, store.clone(), args.seconds)?);
        runtime.block_on(store.close())?;
    }
    let ratios: Vec<f64> = servo.iter().zip(&bare).map(|(s, b)| s / b).collect();
    println!("## Postgres append, one event of about 300 bytes, {APPENDERS} clients, fsync on\n");
    println!("| | pgbench | servo | servo ÷ pgbench | goal |\n|---|---|---|---|---|");
    println!("| rows/s | {:.0} | {:.0} | {:.2} | ≥ 0.80 |\n", median(&bare), median(&servo), median(&ratios));
    Ok(())
}

/// A database of its own for each round.
pub(crate) struct Database {
    admin: String,
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Database {
    pub(crate) fn create(admin: &str, round: usize) -> Result<Self> {
        let name = format!("servo_bench_{}_{round}", std::process::id());
        psql(admin, &format!("CREATE DATABASE {name}"))?;
        let (base, _) = admin.rsplit_once('/').context("the URL has no database")?;
        Ok(Self { admin: admin.to_owned(), url: format!("{base}/{name}"), name })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = psql(&self.admin, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn program(name: &str) -> std::path::PathBuf {
    std::env::var_os("SERVO_TEST_PG_BIN").map_or_else(|| name.into(), |dir| std::path::Path::new(&dir).join(name))
}

fn psql(url: &str, sql: &str) -> Result<()> {
    let output = Command::new(program("psql")).args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, url]).output()?;
    if !output.status.success() {
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Inserts per second, as the role that the store itself uses, with the same row security.
fn pgbench(args: &Args, database: &Database) -> Result<f64> {
    psql(
        &database.url,
        "CREATE SEQUENCE IF NOT EXISTS bench_seq CACHE 100; GRANT USAGE ON SEQUENCE bench_seq TO servo_app",
    )?;
    psql(
        &database.url,
        "SET search_path = servo; SET ROLE servo_app; SET app.tenants = 'default'; \
         INSERT INTO runs (run_id, tenant_id, project, environment, plan_id, plan_version, status, visible, created_at, changed_seq) \
         SELECT lpad(n::text, 36, 'b'), 'default', '', '', 'bench', '1', 'RUNNING', 'running', 0, 1 FROM generate_series(0, 63) n \
         ON CONFLICT DO NOTHING",
    )?;
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), SCRIPT)?;
    let seconds = format!("{}", args.seconds.ceil().max(1.0));
    let clients = APPENDERS.to_string();
    let payload = format!("payload='{}'", rows::payload());
    let at = format!("at={}", rows::now().as_millis());
    let output = Command::new(program("pgbench"))
        .args(["-n", "-M", "prepared", "-c", &clients, "-j", "2", "-T", &seconds, "-D", &payload, "-D", &at, "-f"])
        .arg(script.path())
        .arg(&database.url)
        .env("PGOPTIONS", "-c role=servo_app -c app.tenants=default -c search_path=servo")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tps = text.lines().find_map(|line| line.strip_prefix("tps = ")).and_then(|rest| rest.split(' ').next());
    let Some(tps) = tps.and_then(|tps| tps.parse::<f64>().ok()) else {
        bail!("pgbench: {text}{}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(tps)
}
