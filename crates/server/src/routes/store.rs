//! The store, for whoever operates it. What goes through the whole store is done one at a time.

use axum::Json as Body;
use axum::body::Body as Stream;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use servo_model::codes;
use servo_runtime::loops::retention::sweep;
use servo_runtime::verify::verify as verify_store;
use servo_store::Integrity;
use servo_wire::v1::{Finding, Retired, StoreInfo, VerifyReport};
use tokio::io::AsyncReadExt;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::auth::PlatformAdmin;
use crate::error::{Answer, ApiError};

/// Bytes of a backup in memory at a time.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) async fn info(State(app): State<App>, PlatformAdmin(_): PlatformAdmin) -> Answer<Body<StoreInfo>> {
    let info = app.runtime.engine().store().info().await?;
    Ok(Body(StoreInfo {
        kind: info.kind.to_owned(),
        engine_version: info.engine_version,
        schema_version: info.schema_version,
        single_process: info.single_process,
        size_bytes: info.size_bytes,
        settings: info.settings.into_iter().collect(),
    }))
}

pub(crate) async fn verify(State(app): State<App>, PlatformAdmin(_): PlatformAdmin) -> Answer<Body<VerifyReport>> {
    let _turn = turn(&app)?;
    let store = app.runtime.engine().store();
    let integrity = store.integrity().await?;
    let report = verify_store(store.as_ref(), |_| {}).await?;
    let finding = |found: servo_runtime::verify::Finding| Finding { run_id: found.run_id, problem: found.problem };
    let findings = report.findings.into_iter().map(finding).collect();
    let Integrity { problems, without_checksum } = integrity;
    Ok(Body(VerifyReport { runs: report.runs, events: report.events, findings, integrity: problems, without_checksum }))
}

pub(crate) async fn retention(State(app): State<App>, PlatformAdmin(_): PlatformAdmin) -> Answer<Body<Retired>> {
    let _turn = turn(&app)?;
    let runs_removed = sweep(app.runtime.engine()).await?;
    Ok(Body(Retired { runs_removed }))
}

/// Copies the store to a file beside nothing else, and sends it while it is there.
pub(crate) async fn backup(State(app): State<App>, PlatformAdmin(_): PlatformAdmin) -> Answer<Response> {
    let turn = turn(&app)?;
    let failed = |error: std::io::Error| ApiError::new(codes::INTERNAL).cause(error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("servo.db");
    app.runtime.engine().store().backup(&path).await?;
    let file = tokio::fs::File::open(&path).await.map_err(failed)?;
    let copy = Copy { file, _folder: folder, _turn: turn };
    let headers =
        [(CONTENT_TYPE, "application/octet-stream"), (CONTENT_DISPOSITION, "attachment; filename=\"servo-backup.db\"")];
    Ok((headers, Stream::from_stream(stream::unfold(Some(copy), Copy::next))).into_response())
}

/// A backup on its way out. Folder and turn go with it.
struct Copy {
    file: tokio::fs::File,
    _folder: tempfile::TempDir,
    _turn: OwnedSemaphorePermit,
}

impl Copy {
    async fn next(copy: Option<Self>) -> Option<(std::io::Result<Bytes>, Option<Self>)> {
        let mut copy = copy?;
        let mut chunk = vec![0; CHUNK_BYTES];
        match copy.file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some((Ok(chunk.into()), Some(copy)))
            }
            // The connection breaks, so that nobody takes half a backup for a whole one.
            Err(error) => Some((Err(error), None)),
        }
    }
}

fn turn(app: &App) -> Answer<OwnedSemaphorePermit> {
    let turn = app.maintenance.clone().try_acquire_owned();
    turn.map_err(|_| ApiError::busy("a backup, verification or sweep is under way"))
}
