//! Commands straight on a data folder that no server has open.

use std::path::Path;
use std::sync::Arc;

use servo_cli::args::{BackupArgs, RestoreArgs};
use servo_cli::view::{BackupDone, RestoreDone};
use servo_cli::{Failure, Out, RuntimeAction, StoreAction, exit};
use servo_model::Timestamp;
use servo_runtime::verify::verify;
use servo_runtime::{Contract, Ids};
use servo_store::{AdminStore as _, Integrity, LogStore as _, Position, Store};
use servo_wire::v1::{Executed, Finding, Retired, RuntimeEventPage, StoreInfo, VerifyReport};

use crate::stores;

/// Runs removed in one transaction.
const RETIRE_BATCH: u32 = 100;

pub(crate) async fn runtime(
    data_dir: &Path,
    at: Option<Timestamp>,
    action: RuntimeAction,
    out: &Out,
) -> Result<u8, Failure> {
    let store: Arc<dyn Store> = Arc::new(match action {
        // The first command may be the one that makes the store.
        RuntimeAction::Exec(_) => stores::made(data_dir, at)?,
        RuntimeAction::Snapshot | RuntimeAction::Events { .. } => stores::existing(data_dir, at)?,
    });
    let contract = Contract::new(store.clone(), Arc::new(Ids::from_os()));
    let failed = |error: servo_runtime::Error| Failure::code(error.code(), error.to_string());
    match action {
        RuntimeAction::Exec(command) => {
            let executed = contract.execute(command, None).await.map_err(failed)?;
            close(store.as_ref()).await?;
            out.print(&Executed { events: executed.events, snapshot: executed.snapshot })?;
        }
        RuntimeAction::Snapshot => out.print(&contract.snapshot(&[]).await.map_err(failed)?)?,
        RuntimeAction::Events { after, limit } => {
            let after = after.map_or(Ok(Position::START), |text| Position::parse(&text));
            let after = after.map_err(|invalid| Failure::usage(invalid.to_string()))?;
            let (events, next) = contract.events(after, limit).await.map_err(failed)?;
            out.print(&RuntimeEventPage { events, next: next.to_string() })?;
        }
    }
    Ok(exit::OK)
}

pub(crate) async fn store(data_dir: &Path, action: StoreAction, out: &Out) -> Result<u8, Failure> {
    if let StoreAction::Restore(args) = action {
        return restore(data_dir, &args, out).await;
    }
    let store = match action {
        StoreAction::AcceptLoss => stores::accepting_loss(data_dir)?,
        _ => stores::existing(data_dir, None)?,
    };
    let refused = |error| stores::refused(&data_dir.display().to_string(), error);
    let mut code = exit::OK;
    match action {
        StoreAction::Restore(_) => {}
        StoreAction::Info | StoreAction::AcceptLoss => {
            let info = store.info().await.map_err(refused)?;
            out.print(&StoreInfo {
                kind: info.kind.to_owned(),
                engine_version: info.engine_version,
                schema_version: info.schema_version,
                single_process: info.single_process,
                size_bytes: info.size_bytes,
                settings: info.settings.into_iter().collect(),
            })?;
        }
        StoreAction::Backup(args) => backup(&store, &args, out).await?,
        StoreAction::Verify => {
            let Integrity { problems: integrity, without_checksum } = store.integrity().await.map_err(refused)?;
            let report = verify(&store, |runs| out.note(&format!("{runs} runs"))).await.map_err(refused)?;
            let finding =
                |found: servo_runtime::verify::Finding| Finding { run_id: found.run_id, problem: found.problem };
            let findings: Vec<_> = report.findings.into_iter().map(finding).collect();
            if !findings.is_empty() || !integrity.is_empty() {
                code = exit::ERROR;
            }
            let (runs, events) = (report.runs, report.events);
            out.print(&VerifyReport { runs, events, findings, integrity, without_checksum })?;
        }
        StoreAction::Retention { older_than } => {
            let now = store.now().await.map_err(refused)?;
            let age = older_than.unwrap_or(std::time::Duration::from_secs(30 * 24 * 3_600));
            let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            let before = Timestamp::from_millis(now.as_millis().saturating_sub(age_ms));
            let mut runs_removed = 0;
            loop {
                let gone = store.retire(before, RETIRE_BATCH).await.map_err(refused)?;
                runs_removed += u64::from(gone);
                if gone < RETIRE_BATCH {
                    break;
                }
            }
            out.print(&Retired { runs_removed })?;
        }
    }
    close(&store).await?;
    Ok(code)
}

async fn backup(store: &servo_store_sqlite::SqliteStore, args: &BackupArgs, out: &Out) -> Result<(), Failure> {
    if args.replace && args.file.exists() {
        std::fs::remove_file(&args.file)
            .map_err(|error| Failure::new(exit::ERROR, format!("{}: {error}", args.file.display())))?;
    }
    store.backup(&args.file).await.map_err(|error| stores::refused(&args.file.display().to_string(), error))?;
    let size_bytes = std::fs::metadata(&args.file).map_or(0, |meta| meta.len());
    out.print(&BackupDone { file: args.file.clone(), size_bytes })
}

/// Puts the backup in place and folds every run of it: a backup that cannot be read is found now, not when it is needed.
async fn restore(data_dir: &Path, args: &RestoreArgs, out: &Out) -> Result<u8, Failure> {
    let refused = |error| stores::refused(&args.file.display().to_string(), error);
    servo_store_sqlite::restore(&args.file, data_dir).map_err(refused)?;
    let store = stores::existing(data_dir, None)?;
    let report = verify(&store, |runs| out.note(&format!("{runs} runs"))).await.map_err(refused)?;
    close(&store).await?;
    for finding in &report.findings {
        out.note(&format!("{}: {}", finding.run_id, finding.problem));
    }
    out.print(&RestoreDone { data_dir: data_dir.to_owned(), runs: report.runs })?;
    Ok(if report.findings.is_empty() { exit::OK } else { exit::ERROR })
}

async fn close(store: &dyn Store) -> Result<(), Failure> {
    store.close().await.map_err(|error| stores::refused("the store", error))
}
