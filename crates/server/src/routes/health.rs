//! Is it there, is it ready, who is it. For machines that watch, so without credentials.

use std::time::Duration;

use axum::Json as Body;
use axum::extract::FromRequestParts;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use servo_model::contract::Readiness;
use servo_wire::v1::Version;

use crate::app::App;
use crate::auth::{Viewer, is_forwarded};
use crate::error::Answer;

/// A store that takes longer to say how it stands counts as not answering.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the API is, for programs that read such a description.
pub(crate) async fn openapi() -> Body<&'static serde_json::Value> {
    Body(crate::openapi::document())
}

pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// What the runtime contract says. That the store does not answer is an answer, too.
pub(crate) async fn ready(State(app): State<App>) -> Response {
    if let Some(reason) = app.runtime.engine().store_blocks().filter(|_| app.runtime.engine().is_store_stopped()) {
        // Nothing can be asked of it any more.
        let readiness = Readiness { ready: false, reasons: vec![reason.to_owned()] };
        return (StatusCode::SERVICE_UNAVAILABLE, Body(readiness)).into_response();
    }
    let readiness = tokio::select! {
        biased;
        snapshot = app.runtime.snapshot() => snapshot.map(|snapshot| snapshot.readiness).map_err(|error| error.to_string()),
        () = app.runtime.engine().clock().sleep(PATIENCE) => Err("it took too long".to_owned()),
    };
    let mut readiness = readiness.unwrap_or_else(|error| {
        tracing::warn!(error, "readiness could not be read");
        let reason = app.runtime.engine().store_blocks().unwrap_or("the store does not answer");
        Readiness { ready: false, reasons: vec![reason.to_owned()] }
    });
    if app.shutdown.is_triggered() && readiness.ready {
        readiness = Readiness { ready: false, reasons: vec!["the server is stopping".to_owned()] };
    }
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Body(readiness)).into_response()
}

/// Open where only this machine can ask, and no page of another site. What is a tenant's is for those who say who they are.
pub(crate) async fn metrics(State(app): State<App>, request: Request) -> Answer<Response> {
    let (mut parts, _) = request.into_parts();
    let caller = match Viewer::from_request_parts(&mut parts, &app).await {
        Ok(Viewer(caller)) => Some(caller),
        Err(_) if app.loopback && !is_forwarded(&parts.headers) => None,
        Err(error) => return Err(error),
    };
    let text = app.metrics.render(&app, caller.as_deref()).await;
    Ok(([(CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], text).into_response())
}

pub(crate) async fn version() -> Body<Version> {
    Body(Version { name: "servo".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// People go on to the console; programs are told what is here.
pub(crate) async fn front(headers: HeaderMap) -> Response {
    let kinds = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    if kinds.is_some_and(|kinds| kinds.contains("text/html")) {
        return Redirect::to("/console/").into_response();
    }
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "Servo {version}\n\n/console/        the console, for browsers\n/openapi.json    the API, for programs\n\
         /readyz /livez /metrics /version\n"
    );
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (VARY, "accept")], text).into_response()
}
