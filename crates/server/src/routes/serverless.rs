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

pub(super) use action::allowed;

use crate::app::App;
use crate::failures::PREFIX;
use crate::request;

/// A `POST` to `{id}` is one of the actions `{id}:name`. Not nested below the prefix: that would take the address of every request
/// apart and put it together again.
pub(super) fn router(app: &App) -> Router<App> {
    let below = |path: &str| format!("{PREFIX}{path}");
    let calls = Router::new()
        .route(&below("/entrypoints"), get(entrypoints::list).post(entrypoints::register))
        .route(&below("/entrypoints:validate"), post(entrypoints::validate))
        .route(
            &below("/entrypoints/{id}"),
            get(entrypoints::show).put(entrypoints::update).delete(entrypoints::remove).post(entrypoints::act),
        )
        .route(&below("/invocations"), get(invocations::list))
        .route(&below("/invocations:counts"), get(invocations::counts))
        .route(&below("/invocations/{id}"), get(invocations::show).post(invocations::act))
        .route(&below("/invocations/{id}/timeline"), get(timeline::read))
        .route(&below("/types"), get(types::list))
        .route(&below("/types/{id}"), get(types::show))
        .layer(from_fn_with_state(app.clone(), request::limit));
    // Outside the limit: a call that waits for its run must not keep out what ends it.
    calls
        .route(&below("/invocations"), post(invocations::start))
        .route(&below("/invocations:bulk"), post(bulk::control))
}
