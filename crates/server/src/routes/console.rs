//! The console's page and files. They hold no data, so they are open to all; what the page shows it asks the API for.

use std::borrow::Cow;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use servo_model::codes;

use crate::app::App;
use crate::console;
use crate::error::ApiError;

const ASSETS: &str = "assets/";

/// Scripts, styles and requests of this server alone, no markup from texts, and no frame of another page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub(super) fn router() -> Router<App> {
    Router::new().route("/console", get(bare)).route("/console/", get(front)).route("/console/{*path}", get(read))
}

/// Relative addresses of the page need the slash.
async fn bare() -> Redirect {
    Redirect::permanent("/console/")
}

async fn front(headers: HeaderMap) -> Response {
    page(&headers)
}

/// A file, or the page: which view it shows is for its own router to say.
async fn read(Path(path): Path<String>, headers: HeaderMap) -> Response {
    match path.strip_prefix(ASSETS) {
        Some(rest) => file(rest, &headers),
        None => page(&headers),
    }
}

/// It is asked for again each time, and almost always unchanged.
fn page(headers: &HeaderMap) -> Response {
    let edition = console::edition();
    let body = || console::page(&format!("/console/{ASSETS}{edition}")).into_bytes().into();
    respond(headers, body, "text/html; charset=utf-8", &edition, "no-cache")
}

/// A page that was open during an update asks for what is no more, and is told so: half of one edition and half of another
/// would be neither.
fn file(rest: &str, headers: &HeaderMap) -> Response {
    let edition = console::edition();
    let found = rest.split_once('/').filter(|(asked, _)| *asked == edition).and_then(|(_, path)| console::asset(path));
    let Some(asset) = found else { return ApiError::new(codes::NOT_FOUND).into_response() };
    respond(headers, || asset.body, asset.content_type, &edition, "public, max-age=31536000, immutable")
}

/// The body is made only for those who do not have it.
fn respond(
    headers: &HeaderMap,
    body: impl FnOnce() -> Cow<'static, [u8]>,
    kind: &'static str,
    edition: &str,
    caching: &'static str,
) -> Response {
    let tag = format!("\"{edition}\"");
    let known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if known { StatusCode::NOT_MODIFIED.into_response() } else { body().into_response() };
    let told = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, caching),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        told.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        told.insert(ETAG, tag);
    }
    response
}
