//! Moving, ending and removing single runs.

use axum::Json as Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::{IntoResponse, Response};
use servo_model::limits::JSON_DEPTH_MAX;
use servo_model::{Role, codes};
use servo_runtime::transfer::{Import, ImportedId, RunFile};
use servo_wire::v1::{RunRef, TerminateRequest};

use super::scope;
use crate::app::App;
use crate::auth::{Admin, Operator};
use crate::body::{self, Json};
use crate::error::{Answer, ApiError};
use crate::params::RunPath;
use crate::rooms::place;

/// A file holds whole events, which may be as deep as a body may be.
const FILE_DEPTH_MAX: usize = JSON_DEPTH_MAX + 4;

/// With payloads, without which a file would be no copy of the run: so for operators, who may read them.
pub(crate) async fn export(State(app): State<App>, Operator(principal): Operator, run: RunPath) -> Answer<Response> {
    let run_id = run.seen(&app, &principal).await?;
    let file = app.runtime.engine().export(&scope(&principal), &run_id).await?;
    let disposition = [(CONTENT_DISPOSITION, format!("attachment; filename=\"{run_id}.run.json\""))];
    Ok((disposition, Body(file)).into_response())
}

pub(crate) async fn import(State(app): State<App>, Admin(principal): Admin, request: Request) -> Answer<Response> {
    // One after the other: a file is large, and read as a whole.
    let _turn = place(&app.rooms.imports, &principal.tenant, "run files are being imported")?;
    let text = body::read_json(&app, request, app.config.import_bytes_max).await?;
    let file: RunFile = body::parse_recorded(&text, FILE_DEPTH_MAX)?;
    // Those who reach every tenant may know that an id is taken; others get one of their own.
    let id = if principal.allows(Role::PlatformAdmin) { ImportedId::Kept } else { ImportedId::New };
    let import = Import { tenant: &principal.tenant, by: &principal.subject, id };
    let run_id = app.runtime.engine().import(import, file).await.map_err(|error| match error {
        servo_runtime::Error::Store(servo_store::Error::RunExists { run_id }) => ApiError::new(codes::RUN_EXISTS)
            .detail(format!("run {run_id} is in this store already; nothing was changed")),
        other => other.into(),
    })?;
    principal.audit.done(run_id.as_str());
    let location = [(axum::http::header::LOCATION, format!("/v1/runs/{run_id}"))];
    Ok((StatusCode::CREATED, location, Body(RunRef { run_id })).into_response())
}

/// By force, whatever the run is doing; who may cancel has a signal for it.
pub(crate) async fn terminate(
    State(app): State<App>,
    Admin(principal): Admin,
    run: RunPath,
    Json(request): Json<TerminateRequest>,
) -> Answer<Body<RunRef>> {
    let run_id = run.seen(&app, &principal).await?;
    app.runtime.engine().terminate(&scope(&principal), &run_id, &principal.subject, &request.reason).await?;
    Ok(Body(RunRef { run_id }))
}

pub(crate) async fn delete(State(app): State<App>, Admin(principal): Admin, run: RunPath) -> Answer<StatusCode> {
    let run_id = run.seen(&app, &principal).await?;
    app.runtime.engine().delete(&scope(&principal), &run_id, &principal.subject).await?;
    Ok(StatusCode::NO_CONTENT)
}
