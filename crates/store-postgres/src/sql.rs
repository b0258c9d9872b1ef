//! All SQL, a file per role, under the same names as in the SQLite store so that the two can be read side by side.
//!
//! Functions that take a pipeline add statements to a transaction that somebody else commits.

pub(crate) mod admin;
pub(crate) mod audit;
pub(crate) mod counts;
pub(crate) mod dispatch;
pub(crate) mod entrypoints;
pub(crate) mod expected;
pub(crate) mod identity;
pub(crate) mod lease;
pub(crate) mod lines;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod runs;
pub(crate) mod timer;

/// Forgotten at the end of the transaction.
pub(crate) const SET_TENANTS: &str = "SELECT set_config('app.tenants', $1, true)";

/// Milliseconds, as the server's clock shows them now.
pub(crate) const CLOCK: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";

/// The time as an expression: the first parameter if it is given, else when the server got the statement. Stable, so
/// that an index can be searched with it.
macro_rules! now {
    () => {
        "COALESCE($1::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)"
    };
}
pub(crate) use now;
