//! Every error a user can meet: stable code, HTTP status, title. Each has a page `docs/errors/<CODE>.md`.

/// One row of the table. The code is what programs match on; the title is what people read first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
}

macro_rules! codes {
    ($($name:ident, $status:literal, $title:literal;)*) => {
        $(pub const $name: Code = Code { code: stringify!($name), status: $status, title: $title };)*
        /// The whole table, for tests and for the documentation.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

codes! {
    SCHEMA_VALIDATION_FAILED, 422, "The document does not match its schema";
    MALFORMED_JSON, 400, "The body is not valid JSON";
    INVALID_CURSOR, 400, "The paging cursor is not one that this server issued for this query";
    INVALID_PARAMETER, 422, "A parameter has a value that is not allowed";
    PLAN_DIGEST_MISMATCH, 422, "The plan does not have the digest that the request names";
    ENGINE_UNKNOWN, 422, "The plan names an engine that is not installed here";
    PLAN_SOURCE_NOT_ALLOWED, 422, "The plan's URI is not on the allow-list";
    PLAN_SOURCE_UNAVAILABLE, 502, "The plan could not be read from its URI";
    IDEMPOTENCY_KEY_EXISTS, 409, "An event with this idempotency key is already recorded";
    RUN_REQUEST_MISMATCH, 422, "This runRequestId was used for a different request";
    RUN_EXISTS, 409, "A run with this id is there already";
    RUN_NOT_FOUND, 404, "No such run";
    FUNCTION_NOT_FOUND, 404, "No such function";
    FUNCTION_IN_USE, 409, "The function is needed by runs or entrypoints";
    KEY_NOT_FOUND, 404, "No such key";
    STEP_NOT_FOUND, 404, "No such step in this run";
    NOT_FOUND, 404, "Nothing is here";
    METHOD_NOT_ALLOWED, 405, "This address does not answer that method";
    ILLEGAL_TRANSITION, 409, "The run is not in a state that allows this";
    SIGNAL_REJECTED, 409, "The run does not accept this signal now";
    ATTEMPT_SUPERSEDED, 409, "A newer attempt has taken over";
    ORPHANED_TASK, 409, "The task finished after the pause's drain timeout";
    RUN_CLOSED, 410, "The run has ended";
    RUN_QUARANTINED, 409, "The run's log cannot be read and the run is set aside";
    OVERLOADED, 429, "More at once than is allowed";
    LIMIT_EXCEEDED, 413, "A limit would be exceeded";
    AUTHORITY_HELD, 409, "Another owner holds the authority";
    AUTHORITY_NOT_HELD, 409, "The caller does not hold the authority";
    AUTHORITY_FENCED, 409, "The authority has passed to a newer epoch";
    DISPATCH_NOT_FOUND, 404, "No such dispatch";
    DISPATCH_ILLEGAL_MOVE, 409, "A dispatch cannot move that way";
    UNAUTHENTICATED, 401, "Credentials are missing or wrong";
    FORBIDDEN, 403, "The caller's roles do not allow this";
    WRITE_BUDGET_EXCEEDED, 503, "The store did not confirm the write within its latency budget";
    STORE_UNAVAILABLE, 503, "The store cannot be reached";
    STORE_FULL, 507, "The store has no space left";
    STORE_CORRUPT, 500, "The store's data is damaged";
    STORE_TOO_NEW, 500, "The store was written by a newer version";
    STORE_IN_USE, 409, "Another process has this store open";
    UNSUPPORTED, 501, "This store cannot do that";
    SHUTTING_DOWN, 503, "The server is stopping";
    INTERNAL, 500, "Something went wrong inside the server";
}

#[cfg(test)]
mod tests {
    #[test]
    fn codes_are_unique() {
        let mut seen: Vec<_> = super::ALL.iter().map(|c| c.code).collect();
        seen.sort_unstable();
        let count = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
