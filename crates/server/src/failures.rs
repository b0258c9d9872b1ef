//! How the serverless runtime API says no: its own problem documents, with types that are GTS ids. Whatever refuses a request
//! below its prefix, a handler, the door or the framework, is written here.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use servo_entrypoint::{RuntimeErrorPayload, ValidationError, ValidationIssue, errors};
use servo_model::codes;

use crate::error::{ApiError, retry_after};
use crate::request::RequestInfo;

/// Where the API lives.
pub(crate) const PREFIX: &str = "/api/serverless-runtime/v1";

pub(crate) fn covers(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
}

/// A refusal on its way out.
pub(crate) struct Written {
    pub status: StatusCode,
    pub body: String,
    /// Seconds for the `Retry-After` header.
    pub retry_after: Option<u64>,
}

/// Statuses that are told as they are, although no published error has them.
const OWN_STATUSES: [u16; 4] = [405, 413, 503, 507];

/// A failure with the status of its answer, which is the table's unless the framework had a better one.
struct Refusal {
    failure: RuntimeErrorPayload,
    status: u16,
}

impl From<RuntimeErrorPayload> for Refusal {
    fn from(failure: RuntimeErrorPayload) -> Self {
        let status = errors::status_of(&failure);
        Self { failure, status }
    }
}

impl From<&ApiError> for Refusal {
    fn from(error: &ApiError) -> Self {
        let problem = &error.problem;
        let detail = problem.detail.clone().unwrap_or_else(|| problem.title.clone());
        let failure = match problem.status {
            401 => unauthenticated(detail),
            403 => errors::forbidden(detail),
            404 => errors::not_found(detail),
            409 | 410 => errors::conflict(detail),
            422 if problem.code == codes::SCHEMA_VALIDATION_FAILED.code => {
                let issue = |field: &servo_wire::problem::FieldProblem| {
                    ValidationIssue::new("schema_mismatch", json_path(&field.pointer), field.detail.clone())
                };
                ValidationError::new(problem.errors.iter().map(issue).collect()).into()
            }
            429 => busy(detail, error.retry_after.unwrap_or(1)),
            400..=499 => errors::bad_request(detail),
            _ => errors::internal("the service could not do this now; try again"),
        };
        // A parameter that is wrong is a request that cannot be read; limits of size and method keep their own status.
        let status = match problem.status {
            own if OWN_STATUSES.contains(&own) => own,
            _ => Self::from(failure.clone()).status,
        };
        Self { failure, status }
    }
}

fn unauthenticated(detail: String) -> RuntimeErrorPayload {
    RuntimeErrorPayload::new(errors::UNAUTHENTICATED, servo_entrypoint::RuntimeErrorCategory::NonRetryable, detail)
}

fn busy(detail: String, retry_after: u64) -> RuntimeErrorPayload {
    let category = servo_entrypoint::RuntimeErrorCategory::Retryable;
    errors::with_wait(RuntimeErrorPayload::new(errors::RATE_LIMITED, category, detail), retry_after)
}

/// `/a/0/b` as `$.a[0].b`.
fn json_path(pointer: &str) -> String {
    let mut path = "$".to_owned();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) => path.push_str(&format!(".{part}")),
        }
    }
    path
}

pub(crate) fn write(failure: Option<RuntimeErrorPayload>, error: &ApiError, info: &RequestInfo, path: &str) -> Written {
    let Refusal { failure, status } = failure.map_or_else(|| Refusal::from(error), Refusal::from);
    let id = &failure.error_type_id;
    let title = errors::find(id).map_or("Error", |kind| kind.title);
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("type", format!("gts://{id}").into());
    put("title", title.into());
    put("status", status.into());
    put("detail", failure.message.clone().into());
    put("instance", path.into());
    put("code", id.clone().into());
    put("trace_id", info.trace_id().into());
    if let Some(validation) = ValidationError::of(&failure) {
        let told = |issue: &ValidationIssue| {
            let mut told = json!({"path": issue.location.path, "message": issue.message});
            let place = [("line", issue.location.line), ("column", issue.location.column)];
            for (name, number) in place.into_iter().filter_map(|(name, number)| Some((name, number?))) {
                told[name] = number.into();
            }
            told
        };
        put("errors", validation.issues.iter().map(told).collect());
        put("issues", serde_json::to_value(&validation.issues).unwrap_or_default());
    }
    if let Some(suggestions) = errors::suggestions_of(&failure) {
        put("suggestions", suggestions.clone());
    }
    // Whoever is told to come back is told when.
    let retry_after = errors::wait_of(&failure).or_else(|| retry_after(status));
    if let Some(seconds) = retry_after {
        put("retry_after_seconds", seconds.into());
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Written { status, body: Value::Object(body).to_string(), retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_prefix_and_what_is_below_it_is_covered() {
        for path in [PREFIX.to_owned(), format!("{PREFIX}/x"), format!("{PREFIX}:x")] {
            assert!(covers(&path), "{path}");
        }
        for path in ["/", "/v1/runs", "/api/serverless-runtime/v10/x", "/api/serverless-runtime"] {
            assert!(!covers(path), "{path}");
        }
    }

    /// A client that is made of the description knows each way in which it can be refused.
    #[test]
    fn every_status_is_described() {
        let described = &crate::openapi::document()["components"]["responses"];
        for status in errors::KINDS.iter().map(|kind| kind.status).chain(OWN_STATUSES) {
            assert!(described[format!("Refused{status}")].is_object(), "{status}");
        }
        let paths = crate::openapi::document()["paths"].as_object().unwrap();
        let below = paths.iter().filter(|(path, _)| covers(path)).flat_map(|(_, methods)| methods.as_object().unwrap());
        for (_, operation) in below {
            for status in ["500", "503", "507"] {
                assert!(operation["responses"][status].is_object(), "{}: {status}", operation["operationId"]);
            }
        }
    }

    #[test]
    fn pointers_become_paths() {
        assert_eq!(json_path(""), "$");
        assert_eq!(json_path("/a/0/b"), "$.a[0].b");
    }
}
