//! What each published error is: its HTTP status, its title, and whether another try is worth it.

use servo_model::invocation::{ErrorCategory, Failure};

pub use servo_model::invocation::errors::*;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub id: &'static str,
    /// Of an answer that carries it. Errors of runs are inside records and have none of their own: 500 if one gets out.
    pub status: u16,
    pub title: &'static str,
    pub category: ErrorCategory,
}

const fn kind(id: &'static str, status: u16, title: &'static str, category: ErrorCategory) -> Kind {
    Kind { id, status, title, category }
}

pub const KINDS: [Kind; 14] = {
    use ErrorCategory as C;
    [
        kind(VALIDATION, 422, "Validation Error", C::NonRetryable),
        kind(RATE_LIMITED, 429, "Rate Limit Exceeded", C::Retryable),
        kind(NOT_FOUND, 404, "Not Found", C::NonRetryable),
        kind(NOT_ACTIVE, 409, "Entrypoint Not Active", C::NonRetryable),
        kind(QUOTA_EXCEEDED, 429, "Quota Exceeded", C::ResourceLimit),
        kind(CONFLICT, 409, "Conflict", C::NonRetryable),
        kind(UNAUTHENTICATED, 401, "Unauthenticated", C::NonRetryable),
        kind(FORBIDDEN, 403, "Forbidden", C::NonRetryable),
        kind(BAD_REQUEST, 400, "Bad Request", C::NonRetryable),
        kind(INTERNAL, 500, "Internal Error", C::Retryable),
        kind(EXECUTION, 500, "Execution Failed", C::Retryable),
        kind(TIMEOUT, 500, "Timed Out", C::Timeout),
        kind(RESOURCE_LIMIT, 500, "Resource Limit Exceeded", C::ResourceLimit),
        kind(CANCELED, 500, "Canceled", C::Canceled),
    ]
};

/// The row of an id; ids that an entrypoint declares itself have none.
pub fn find(id: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.id == id)
}

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = $id:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(message: impl Into<String>) -> Failure {
            Failure::new($id, find($id).map_or(ErrorCategory::NonRetryable, |kind| kind.category), message)
        })*
    };
}

failures! {
    not_found = NOT_FOUND;
    not_active = NOT_ACTIVE;
    quota_exceeded = QUOTA_EXCEEDED;
    conflict = CONFLICT;
    forbidden = FORBIDDEN;
    bad_request = BAD_REQUEST;
    internal = INTERNAL;
}

/// Names the wait in its details, from where the answer's header takes it.
pub fn rate_limited(tenant: &str, retry_after_seconds: u64) -> Failure {
    let message =
        format!("Entrypoint rate limit exceeded for tenant {tenant}. Retry after {retry_after_seconds} seconds.");
    with_wait(Failure::new(RATE_LIMITED, ErrorCategory::Retryable, message), retry_after_seconds)
}

const RETRY_AFTER: &str = "retry_after_seconds";

/// The same, with when to come back.
pub fn with_wait(mut failure: Failure, seconds: u64) -> Failure {
    failure.details.insert(RETRY_AFTER.to_owned(), seconds.into());
    failure
}

/// Nothing is wrong with the request, and the service does not take it now: an internal error that says when to come back.
pub fn unavailable(message: impl Into<String>) -> Failure {
    with_wait(internal(message), 1)
}

/// The status of the answer that tells of a failure.
pub fn status_of(failure: &Failure) -> u16 {
    match find(&failure.error_type_id) {
        Some(kind) if kind.id == INTERNAL && wait_of(failure).is_some() => 503,
        Some(kind) => kind.status,
        None => 500,
    }
}

/// When to come back, if the failure says so.
pub fn wait_of(failure: &Failure) -> Option<u64> {
    failure.details.get(RETRY_AFTER)?.as_u64()
}

const SUGGESTIONS: &str = "suggestions";

/// The same, with what may have been meant: in its words for people, in its details for programs.
pub fn with_suggestions(mut failure: Failure, suggestions: Vec<String>) -> Failure {
    if suggestions.is_empty() {
        return failure;
    }
    let quoted: Vec<_> = suggestions.iter().map(|text| format!("`{text}`")).collect();
    failure.message.push_str(&format!("; did you mean {}?", quoted.join(" or ")));
    failure.details.insert(SUGGESTIONS.to_owned(), suggestions.into());
    failure
}

/// What may have been meant, if the failure says so.
pub fn suggestions_of(failure: &Failure) -> Option<&serde_json::Value> {
    failure.details.get(SUGGESTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SR-155, SR-156, SR-157, SR-158, SR-159, SR-160, SR-162, SR-163: each published error has its status and
    /// category.
    #[test]
    fn every_error_has_a_row() {
        use ErrorCategory as C;
        let of = |id: &str| find(id).map(|kind| (kind.status, kind.category)).unwrap();
        assert_eq!(of(VALIDATION), (422, C::NonRetryable));
        assert_eq!(of(RATE_LIMITED), (429, C::Retryable));
        assert_eq!(of(NOT_FOUND), (404, C::NonRetryable));
        assert_eq!(of(NOT_ACTIVE), (409, C::NonRetryable));
        assert_eq!(of(QUOTA_EXCEEDED), (429, C::ResourceLimit));
        assert_eq!(of(CONFLICT).0, 409);
        assert_eq!(of(UNAUTHENTICATED).0, 401);
        assert_eq!(of(FORBIDDEN).0, 403);
        assert_eq!(of(BAD_REQUEST).0, 400);
        assert_eq!(of(INTERNAL).0, 500);
        assert_eq!((status_of(&internal("x")), status_of(&unavailable("x"))), (500, 503));
        assert_eq!(of(TIMEOUT).1, C::Timeout);
        assert_eq!(of(RESOURCE_LIMIT).1, C::ResourceLimit);
        assert_eq!(of(CANCELED).1, C::Canceled);
        assert_eq!(KINDS.map(|kind| kind.id), ALL);
    }
}
