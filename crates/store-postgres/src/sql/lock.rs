//! Advisory locks, held to the end of the transaction that takes them. They order writers before any of them gets a
//! transaction id; they protect nothing by themselves.

use servo_canon::Digest;
use servo_model::{FunctionName, RunId, TenantId};

/// For changes of the authority.
pub(crate) const AUTHORITY: &str = "SELECT pg_advisory_xact_lock(6000000000000000001)";

/// For writes that name its epoch: they run side by side, and queue fairly behind a change that waits.
pub(crate) const AUTHORITY_SHARED: &str = "SELECT pg_advisory_xact_lock_shared(6000000000000000001)";

/// In the order given, which is the same for everybody.
pub(crate) const RUNS: &str = "SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) AS key";

/// Two runs that share a number only wait for each other now and then.
pub(crate) fn run(run_id: &RunId) -> i64 {
    number(&["run", run_id.as_str()])
}

pub(crate) fn request(tenant: &TenantId, key: Digest) -> i64 {
    number(&["request", tenant.as_str(), &key.to_string()])
}

pub(crate) fn function(tenant: &TenantId, name: &FunctionName) -> i64 {
    number(&["function", tenant.as_str(), name.as_str()])
}

pub(crate) fn entrypoint(tenant: &TenantId, id: &str) -> i64 {
    number(&["entrypoint", tenant.as_str(), id])
}

/// The same for all tenants.
pub(crate) fn address(address: &str) -> i64 {
    number(&["address", address])
}

pub(crate) fn keys(tenant: &TenantId) -> i64 {
    number(&["keys", tenant.as_str()])
}

pub(crate) fn runs<'a>(ids: impl IntoIterator<Item = &'a RunId>) -> Vec<i64> {
    let mut keys: Vec<_> = ids.into_iter().map(run).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn number(parts: &[&str]) -> i64 {
    let digest = Digest::of_parts(parts, '|');
    let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}
