//! `ep_1:status` is the action `status` of `ep_1`. The router knows no such addresses, so a `POST` to `{id}` is taken apart here,
//! before its body is read.

use axum::extract::{FromRequestParts, MatchedPath, Path};
use axum::http::HeaderValue;
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use servo_model::codes;

use super::refused::Refused;
use crate::app::App;
use crate::error::ApiError;

#[derive(Debug)]
pub(super) struct Action {
    pub id: String,
    /// One of those that the resource has.
    pub name: &'static str,
}

struct Resource {
    path: &'static str,
    actions: &'static [&'static str],
    /// What the address without an action allows.
    allow: &'static str,
}

const RESOURCES: [Resource; 2] = [
    Resource { path: "/entrypoints/", actions: &["status"], allow: "GET,HEAD,PUT,DELETE" },
    Resource { path: "/invocations/", actions: &["control", "signal"], allow: "GET,HEAD" },
];

impl FromRequestParts<App> for Action {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let nothing = |detail: &str| Refused::not_found(detail).into_response();
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(text) = path.map_err(|_| nothing("the address is not UTF-8"))?;
        let matched = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let resource = RESOURCES.iter().find(|resource| matched.contains(resource.path));
        let Some(resource) = resource else { return Err(nothing("there are no actions here")) };
        let Some((id, name)) = text.rsplit_once(':').filter(|(id, _)| !id.is_empty()) else {
            let mut response = ApiError::new(codes::METHOD_NOT_ALLOWED).into_response();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(resource.allow));
            return Err(response);
        };
        match resource.actions.iter().find(|known| **known == name) {
            Some(name) => Ok(Self { id: id.to_owned(), name }),
            None => Err(nothing(&format!("there is no such action; these exist: {}", resource.actions.join(", ")))),
        }
    }
}
