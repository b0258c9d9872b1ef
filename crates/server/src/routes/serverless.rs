//! The serverless runtime API: entrypoints, their invocations, and the types that describe them. What is valid, possible and
//! allowed is decided behind `RestRuntime`; here requests are read and answers written.

mod action;
mod bulk;
mod entrypoints;
mod fields;
mod invocations;
mod query;
mod refused;
mod shown;
mod stream;
mod timeline;
mod types;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::app::App;
use crate::failures::PREFIX;
use crate::request;

/// Paths are below the prefix. A `POST` to `{id}` is one of the actions `{id}:name`.
pub(super) fn router(app: &App) -> Router<App> {
    let calls = Router::new()
        .route("/entrypoints", get(entrypoints::list).post(entrypoints::register))
        .route("/entrypoints:validate", post(entrypoints::validate))
        .route(
            "/entrypoints/{id}",
            get(entrypoints::show).put(entrypoints::update).delete(entrypoints::remove).post(entrypoints::act),
        )
        .route("/invocations", get(invocations::list))
        .route("/invocations:counts", get(invocations::counts))
        .route("/invocations/{id}", get(invocations::show).post(invocations::act))
        .route("/invocations/{id}/timeline", get(timeline::read))
        .route("/types", get(types::list))
        .route("/types/{id}", get(types::show))
        .layer(from_fn_with_state(app.clone(), request::limit));
    // Outside the limit: a call that waits for its run must not keep out what ends it.
    let waiting = calls.route("/invocations", post(invocations::start)).route("/invocations:bulk", post(bulk::control));
    Router::new().nest(PREFIX, waiting)
}
