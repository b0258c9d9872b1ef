//! SQLite: the store beside a bare loop over the same table and indexes, both with `synchronous=FULL`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::{Connection, TransactionBehavior, params};
use servo_store::{AdminStore as _, LogStore as _};
use servo_store_sqlite::{Config, DATABASE_FILE, SqliteStore};
use tokio::runtime::Runtime;

use crate::stats::median;
use crate::{APPENDERS, Args, rows};

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let mut bare = Vec::new();
    let mut servo = Vec::new();
    let mut bare_one = Vec::new();
    let mut servo_one = Vec::new();
    for _ in 0..args.rounds {
        bare.push(bare_rows_per_second(args, runtime, APPENDERS)?);
        servo.push(servo_rows_per_second(args, runtime)?);
        bare_one.push(bare_one_p50(args, runtime)?);
        servo_one.push(servo_one_p50(args, runtime)?);
    }
    let ratios: Vec<f64> = servo.iter().zip(&bare).map(|(s, b)| s / b).collect();
    let latency: Vec<f64> = servo_one.iter().zip(&bare_one).map(|(s, b)| s / b).collect();
    println!("## SQLite append, one event of about 300 bytes\n");
    println!("| | bare rusqlite | servo | servo ÷ bare | goal |\n|---|---|---|---|---|");
    println!(
        "| {APPENDERS} appenders (bare: {APPENDERS}-row transactions), rows/s | {:.0} | {:.0} | {:.2} | ≥ 0.60 |",
        median(&bare),
        median(&servo),
        median(&ratios)
    );
    println!(
        "| 1 appender, p50 µs | {:.0} | {:.0} | {:.2} | ≤ 1.30 |\n",
        median(&bare_one),
        median(&servo_one),
        median(&latency)
    );
    Ok(())
}

pub(crate) fn open(dir: &std::path::Path) -> Result<SqliteStore> {
    Ok(SqliteStore::open(Config::new(dir, Arc::new(rows::now)))?)
}

/// A fresh store with as many runs as appenders, so that both sides write into the same tables.
fn prepared(args: &Args, runtime: &Runtime, runs: usize) -> Result<(tempfile::TempDir, SqliteStore)> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let store = open(dir.path())?;
    runtime.block_on(async {
        for run in 0..runs {
            store.append(rows::create(run)).await?;
        }
        anyhow::Ok(())
    })?;
    Ok((dir, store))
}

const INSERT: &str = "INSERT INTO events (run_number, run_id, run_seq, tenant_id, event_id, event_type, idempotency_key, emitted_at, \
     emitted_by, occurred_at, payload, blob_digest) \
     VALUES (?7, ?1, ?2, 'default', ?3, 'StepCompleted', ?4, ?5, 'engine', NULL, ?6, NULL)";

fn bare_connection(dir: &std::path::Path) -> Result<Connection> {
    let connection = Connection::open(dir.join(DATABASE_FILE))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

/// What the runs are called in the log's indexes.
fn numbers(connection: &Connection, runs: usize) -> Result<Vec<i64>> {
    let mut number = connection.prepare("SELECT number FROM runs WHERE run_id = ?1")?;
    (0..runs).map(|run| Ok(number.query_row([rows::run_id(run).as_str()], |row| row.get(0))?)).collect()
}

fn bare_insert(connection: &Connection, number: i64, run: usize, seq: u64) -> Result<()> {
    let event = rows::event(run, seq);
    connection.prepare_cached(INSERT)?.execute(params![
        rows::run_id(run).as_str(),
        i64::try_from(seq)?,
        event.event_id.as_bytes().as_slice(),
        event.idempotency_key.as_bytes().as_slice(),
        rows::now().as_millis(),
        event.payload,
        number,
    ])?;
    Ok(())
}

fn bare_rows_per_second(args: &Args, runtime: &Runtime, rows_per_transaction: usize) -> Result<f64> {
    let (dir, store) = prepared(args, runtime, APPENDERS)?;
    runtime.block_on(store.close())?;
    drop(store);
    let mut connection = bare_connection(dir.path())?;
    let numbers = numbers(&connection, rows_per_transaction)?;
    let (mut written, mut seq) = (0u64, 1u64);
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < args.seconds {
        seq += 1;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (run, number) in numbers.iter().enumerate() {
            bare_insert(&transaction, *number, run, seq)?;
        }
        transaction.commit()?;
        written += rows_per_transaction as u64;
    }
    Ok(written as f64 / start.elapsed().as_secs_f64())
}

fn servo_rows_per_second(args: &Args, runtime: &Runtime) -> Result<f64> {
    let (_dir, store) = prepared(args, runtime, APPENDERS)?;
    let store = Arc::new(store);
    let rate = concurrent(runtime, store.clone(), args.seconds)?;
    runtime.block_on(store.close())?;
    Ok(rate)
}

/// Appenders in a closed loop, each on its own run.
pub(crate) fn concurrent(runtime: &Runtime, store: Arc<dyn servo_store::Store>, seconds: f64) -> Result<f64> {
    runtime.block_on(async move {
        let written = Arc::new(AtomicU64::new(0));
        let start = Instant::now();
        let deadline = start + Duration::from_secs_f64(seconds);
        let mut appenders = Vec::new();
        for run in 0..APPENDERS {
            let (store, written) = (store.clone(), written.clone());
            appenders.push(tokio::spawn(async move {
                let mut seq = 1;
                while Instant::now() < deadline {
                    store.append(rows::append(run, seq)).await?;
                    seq += 1;
                    written.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            }));
        }
        for appender in appenders {
            appender.await??;
        }
        Ok(written.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
    })
}

fn bare_one_p50(args: &Args, runtime: &Runtime) -> Result<f64> {
    let (dir, store) = prepared(args, runtime, 1)?;
    runtime.block_on(store.close())?;
    drop(store);
    let mut connection = bare_connection(dir.path())?;
    let number = numbers(&connection, 1)?.remove(0);
    let mut times = Vec::new();
    let start = Instant::now();
    let mut seq = 1;
    while start.elapsed().as_secs_f64() < args.seconds {
        seq += 1;
        let one = Instant::now();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        bare_insert(&transaction, number, 0, seq)?;
        transaction.commit()?;
        times.push(one.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&times))
}

fn servo_one_p50(args: &Args, runtime: &Runtime) -> Result<f64> {
    let (_dir, store) = prepared(args, runtime, 1)?;
    let times = runtime.block_on(async {
        let mut times = Vec::new();
        let start = Instant::now();
        let mut seq = 1;
        while start.elapsed().as_secs_f64() < args.seconds {
            let one = Instant::now();
            store.append(rows::append(0, seq)).await?;
            seq += 1;
            times.push(one.elapsed().as_secs_f64() * 1e6);
        }
        store.close().await?;
        anyhow::Ok(times)
    })?;
    Ok(median(&times))
}
