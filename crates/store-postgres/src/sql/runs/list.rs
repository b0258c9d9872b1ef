//! Lists of runs, each by the index of its narrowest filter, in either direction.
//!
//! The indexes are searched as ranges of whole keys: asked for a tenant and an order, the planner might follow the order
//! through everybody's runs and look for the tenant's. Where the key holds a status, each status is a range of its own,
//! and a page of each is put together: never more is read than so many pages.

use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, Timestamp};
use servo_store::runs::RunQuery;

use crate::pipeline::{Param, params};

/// What no index is asked for. All parameters stand here, so that every statement has the same.
macro_rules! rest {
    () => {
        " AND r.run_id <> '_system' AND ($1::text IS NULL OR r.tenant_id = $1)
          AND ($5::text[] IS NULL OR r.visible = ANY ($5)) AND ($6::text IS NULL OR r.plan_id = $6)
          AND ($7::text IS NULL OR r.plan_version = $7) AND ($8::text IS NULL OR r.name = $8)
          AND ($9::bigint IS NULL OR r.created_at >= $9) AND ($10::bigint IS NULL OR r.created_at < $10)
          AND ($11::text[] IS NULL OR r.outcome = ANY ($11) OR (r.outcome IS NULL AND $12::boolean))"
    };
}

/// The statement by one key, which ends with the run's id, and one direction.
macro_rules! by {
    (($($column:literal = $value:literal),*), $direction:literal) => {
        concat!(
            "SELECT r.* FROM runs r WHERE (", $("r.", $column, ", ",)* "r.run_id) > (", $($value, ", ",)* "$2)
             AND (", $("r.", $column, ", ",)* "r.run_id) < (", $($value, ", ",)* "$3)",
            rest!(),
            " ORDER BY ", $("r.", $column, $direction, ", ",)* "r.run_id", $direction, " LIMIT $4"
        )
    };
}

/// Those that have a name. Said once more, because the planner does not see in a range that its index has them all.
macro_rules! by_name {
    ((), $direction:literal) => {
        concat!(
            "SELECT r.* FROM runs r
             WHERE (r.tenant_id, r.name, r.run_id) > ($1, $8, $2) AND (r.tenant_id, r.name, r.run_id) < ($1, $8, $3)
                AND r.name IS NOT NULL",
            rest!(),
            " ORDER BY r.tenant_id",
            $direction,
            ", r.name",
            $direction,
            ", r.run_id",
            $direction,
            " LIMIT $4"
        )
    };
}

/// The same for each of the statuses asked for.
macro_rules! by_status {
    (($($column:literal = $value:literal),*), $direction:literal) => {
        concat!(
            "SELECT r.* FROM unnest($5::text[]) AS asked (visible) CROSS JOIN LATERAL (",
            by!(($($column = $value,)* "visible" = "asked.visible"), $direction),
            ") r ORDER BY r.run_id", $direction, " LIMIT $4"
        )
    };
}

/// Newest first and oldest first.
macro_rules! both {
    ($by:ident $key:tt) => {
        [$by!($key, " DESC"), $by!($key, " ASC")]
    };
}

const ALL: [&str; 2] = both!(by());
const TENANT: [&str; 2] = both!(by("tenant_id" = "$1"));
const NAME: [&str; 2] = both!(by_name());
const VISIBLE: [&str; 2] = both!(by_status("tenant_id" = "$1"));
const PLAN: [&str; 2] = both!(by_status("tenant_id" = "$1", "plan_id" = "$6"));

/// Of the indexes, the narrowest.
fn statements(tenant: Option<&str>, query: &RunQuery) -> [&'static str; 2] {
    match tenant {
        None => ALL,
        Some(_) if query.name.is_some() => NAME,
        Some(_) if query.plan_id.is_some() => PLAN,
        Some(_) if !query.visible.is_empty() => VISIBLE,
        Some(_) => TENANT,
    }
}

pub(super) fn statement(tenant: Option<&str>, query: &RunQuery) -> &'static str {
    statements(tenant, query)[usize::from(query.oldest_first)]
}

pub(super) fn params<'a>(tenant: Option<&'a str>, query: &'a RunQuery) -> Vec<Param<'a>> {
    let after = query.after.as_ref().map(RunId::as_str);
    // Behind every run id: none has a tilde.
    let (low, high) = if query.oldest_first { (after.unwrap_or(""), "~") } else { ("", after.unwrap_or("~")) };
    let mut visible = query.visible_set();
    if visible.is_empty() && statements(tenant, query) == PLAN {
        visible = InvocationStatus::ALL.to_vec();
    }
    let visible = (!visible.is_empty()).then(|| visible.into_iter().map(InvocationStatus::as_str).collect::<Vec<_>>());
    let outcomes = query.outcome.as_ref();
    let named = outcomes.map(|outcomes| outcomes.iter().flatten().map(String::as_str).collect::<Vec<_>>());
    params![
        tenant,
        low,
        high,
        i64::from(query.limit),
        visible,
        query.plan_id.as_deref(),
        query.plan_version.as_deref(),
        query.name.as_deref(),
        query.created_from.map(Timestamp::as_millis),
        query.created_until.map(Timestamp::as_millis),
        named,
        outcomes.is_some_and(|outcomes| outcomes.contains(&None)),
    ]
}
