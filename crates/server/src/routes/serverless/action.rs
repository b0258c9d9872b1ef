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
use crate::failures::PREFIX;

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

/// What an address with or without an action allows, where the router knows only both together.
pub(in crate::routes) fn allowed(path: &str) -> Option<&'static str> {
    let below = path.strip_prefix(PREFIX)?;
    let (resource, name) =
        RESOURCES.iter().find_map(|resource| Some((resource, below.strip_prefix(resource.path)?)))?;
    if name.contains('/') {
        return None;
    }
    let is_action = |(id, action): (&str, &str)| !id.is_empty() && resource.actions.contains(&action);
    Some(if name.rsplit_once(':').is_some_and(is_action) { "POST" } else { resource.allow })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_allows_what_it_takes() {
        for (path, expected) in [
            ("/entrypoints/ep_1", Some("GET,HEAD,PUT,DELETE")),
            ("/entrypoints/ep_1:status", Some("POST")),
            ("/entrypoints/a:b:status", Some("POST")),
            ("/entrypoints/:status", Some("GET,HEAD,PUT,DELETE")),
            ("/invocations/inv_1", Some("GET,HEAD")),
            ("/invocations/inv_1:control", Some("POST")),
            ("/invocations/inv_1:status", Some("GET,HEAD")),
            ("/invocations/inv_1/timeline", None),
            ("/entrypoints", None),
            ("/types/x", None),
        ] {
            assert_eq!(allowed(&format!("{PREFIX}{path}")), expected, "{path}");
        }
        assert_eq!(allowed("/v1/runs/x"), None);
    }
}
