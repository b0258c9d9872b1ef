//! Every address, and who may use it. Each handler parses, asks the runtime, and answers; none decides.

mod alerts;
mod audit;
mod channel;
mod console;
mod dead_letters;
mod events;
mod functions;
mod health;
pub(crate) mod keys;
pub(crate) mod lambda;
mod runs;
mod runtime;
mod series;
mod serverless;
mod signals;
mod store;
mod transfer;
mod whoami;

use axum::Router;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use servo_model::{SecurityContext, codes};
use servo_store::Scope;

use crate::app::App;
use crate::error::ApiError;
use crate::request;

pub(crate) fn router(app: &App) -> Router {
    let api = Router::new()
        .route("/v1/runs", get(runs::list).post(runs::start))
        .route("/v1/runs/import", post(transfer::import))
        .route("/v1/runs/{id}", get(runs::show).delete(transfer::delete))
        .route("/v1/runs/{id}/events", get(events::read))
        .route("/v1/runs/{id}/signals", post(signals::send))
        .route("/v1/runs/{id}/export", get(transfer::export))
        .route("/v1/runs/{id}/terminate", post(transfer::terminate))
        .route("/v1/runs/{id}/logs", get(functions::logs))
        .route("/v1/functions", get(functions::list))
        .route("/v1/functions/{name}", get(functions::show).put(functions::register).delete(functions::remove))
        .route("/v1/functions/{name}/versions/{version}", get(functions::version))
        .route("/v1/functions/{name}/aliases/{alias}", put(functions::alias).delete(functions::remove_alias))
        .route("/v1/whoami", get(whoami::show))
        .route("/v1/keys", get(keys::list).post(keys::create))
        .route("/v1/keys/{id}", delete(keys::revoke))
        .route("/v1/audit", get(audit::list))
        .route("/v1/alerts", get(alerts::list))
        .route("/v1/series", get(series::read))
        .route("/v1/dead-letters", get(dead_letters::list))
        .route("/v1/dead-letters/redrive", post(dead_letters::redrive))
        .route("/v1/store/info", get(store::info))
        .route("/v1/store/backup", get(store::backup))
        .route("/v1/store/verify", post(store::verify))
        .route("/v1/store/retention", post(store::retention))
        .route("/runtime/commands", post(runtime::execute))
        .route("/runtime/snapshot", get(runtime::snapshot))
        .route("/runtime/events", get(runtime::events))
        .route("/runtime/schema", get(runtime::schema))
        .layer(from_fn_with_state(app.clone(), request::limit));
    // Outside the limit: it stays open for long, and has limits of its own.
    let api = api.route("/v1/channel", post(channel::open));
    // Outside the limit: a busy server is still alive.
    let health = Router::new()
        .route("/", get(health::front))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/version", get(health::version))
        .route("/openapi.json", get(health::openapi));
    api.merge(health)
        .merge(console::router())
        .merge(lambda::router())
        .merge(serverless::router(app))
        .fallback(|uri: Uri| async move {
            if lambda::owns(uri.path()) { lambda::unknown() } else { ApiError::new(codes::NOT_FOUND).into_response() }
        })
        .method_not_allowed_fallback(|uri: Uri| async move {
            match lambda::owns(uri.path()) {
                true => lambda::wrong_method(),
                false => not_allowed(uri.path()),
            }
        })
        // One layer for all that is around a request: each one more would copy every layer below it for every request.
        .layer(from_fn_with_state(app.clone(), request::around))
        .with_state(app.clone())
}

/// The router says what is allowed, unless it knows only a part of the address.
fn not_allowed(path: &str) -> Response {
    let mut response = ApiError::new(codes::METHOD_NOT_ALLOWED).into_response();
    if let Some(methods) = serverless::allowed(path) {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    }
    response
}

/// The principal's own tenant, whatever its roles: what is foreign does not exist.
fn scope(principal: &SecurityContext) -> Scope {
    Scope::Tenant(principal.tenant.clone())
}
