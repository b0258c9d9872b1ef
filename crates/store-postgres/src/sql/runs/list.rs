//! Lists of runs, each by the index of its narrowest filter, in either direction.
//!
//! The indexes are searched as ranges of whole keys: asked for a tenant and an order, the planner might follow the order
//! through everybody's runs and look for the tenant's. Where the key holds a status, each status is a range of its own,
//! and a page of each is put together: never more is read than so many pages.

use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{RunId, Timestamp};
use servo_store::runs::{RunOrder, RunQuery};

use super::filter::condition;
use crate::pipeline::params;
use crate::store::Reading;

/// What no index is asked for. All parameters stand here, so that every statement has the same.
macro_rules! rest {
    () => {
        " AND r.run_id <> '_system' AND ($1::text IS NULL OR r.tenant_id = $1)
          AND ($5::text[] IS NULL OR r.visible = ANY ($5)) AND ($6::text[] IS NULL OR r.plan_id = ANY ($6))
          AND ($7::text IS NULL OR r.plan_version = $7) AND ($8::text IS NULL OR r.name = $8)
          AND ($9::bigint IS NULL OR r.created_at >= $9) AND ($10::bigint IS NULL OR r.created_at < $10)
          AND ($11::text[] IS NULL OR r.outcome = ANY ($11) OR (r.outcome IS NULL AND $12::boolean))
          AND r.invocation = ANY ($13::boolean[]) AND ($14::text IS NULL OR r.mode = $14)
          AND ($15::text IS NULL OR r.correlation_id = $15) /* filter */"
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

/// Those that have something not all have. Said once more, because the planner does not see in a range that its index has
/// them all.
macro_rules! by_some {
    (($column:literal = $value:literal), $direction:literal) => {
        concat!(
            "SELECT r.* FROM runs r WHERE (r.tenant_id, r.",
            $column,
            ", r.run_id) > ($1, ",
            $value,
            ", $2)
             AND (r.tenant_id, r.",
            $column,
            ", r.run_id) < ($1, ",
            $value,
            ", $3) AND r.",
            $column,
            " IS NOT NULL",
            rest!(),
            " ORDER BY r.tenant_id",
            $direction,
            ", r.",
            $column,
            $direction,
            ", r.run_id",
            $direction,
            " LIMIT $4"
        )
    };
}

/// In the order of a column: `$16` and `$17` are where it begins and ends.
macro_rules! sorted {
    (($sort:literal: $kind:literal $(, $column:literal = $value:literal)* $(; $and:literal)?), $direction:literal) => {
        concat!(
            "SELECT r.* FROM runs r
             WHERE (", $("r.", $column, ", ",)* "r.", $sort, ", r.run_id) > (", $($value, ", ",)* "$16::", $kind, ", $2)
             AND (", $("r.", $column, ", ",)* "r.", $sort, ", r.run_id) < (", $($value, ", ",)* "$17::", $kind, ", $3)",
            $(" AND ", $and,)?
            rest!(),
            " ORDER BY ", $("r.", $column, $direction, ", ",)* "r.", $sort, $direction, ", r.run_id", $direction,
            " LIMIT $4"
        )
    };
}

/// The same for each of the statuses asked for, and for each of the plans or kinds.
macro_rules! by_status {
    (($each:literal as $column:literal), $direction:literal) => {
        concat!(
            "SELECT r.* FROM unnest(",
            $each,
            ") AS part (value) CROSS JOIN unnest($5::text[]) AS asked (visible)
             CROSS JOIN LATERAL (",
            by!(("tenant_id" = "$1", $column = "part.value", "visible" = "asked.visible"), $direction),
            ") r ORDER BY r.run_id",
            $direction,
            " LIMIT $4"
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
const NAME: [&str; 2] = both!(by_some("name" = "$8"));
const CORRELATION: [&str; 2] = both!(by_some("correlation_id" = "$15"));
const VISIBLE: [&str; 2] = both!(by_status("$13::boolean[]" as "invocation"));
const PLAN: [&str; 2] = both!(by_status("$6::text[]" as "plan_id"));
/// Of a tenant's invocations, by an index; and of any runs, without one.
const BY_CREATED: [&str; 2] = both!(sorted("created_at": "bigint", "tenant_id" = "$1"; "r.invocation"));
const BY_VISIBLE: [&str; 2] = both!(sorted("visible": "text", "tenant_id" = "$1", "invocation" = "true"));
const ANY_BY_CREATED: [&str; 2] = both!(sorted("created_at": "bigint"));
const ANY_BY_VISIBLE: [&str; 2] = both!(sorted("visible": "text"));

/// Of the indexes, the narrowest.
fn statements(tenant: Option<&str>, query: &RunQuery) -> [&'static str; 2] {
    let is_invocations = tenant.is_some() && query.invocations == Some(true);
    match query.order {
        RunOrder::Created { .. } if is_invocations => BY_CREATED,
        RunOrder::Created { .. } => ANY_BY_CREATED,
        RunOrder::Visible { .. } if is_invocations => BY_VISIBLE,
        RunOrder::Visible { .. } => ANY_BY_VISIBLE,
        RunOrder::RunId if tenant.is_none() => ALL,
        RunOrder::RunId if query.name.is_some() => NAME,
        RunOrder::RunId if query.correlation_id.is_some() => CORRELATION,
        RunOrder::RunId if query.plan_set().is_some() => PLAN,
        RunOrder::RunId if !query.visible.is_empty() || query.invocations.is_some() => VISIBLE,
        RunOrder::RunId => TENANT,
    }
}

/// Adds the question and says where its answer will stand.
pub(super) fn ask<'a>(read: &mut Reading<'a>, tenant: Option<&'a str>, query: &'a RunQuery) -> usize {
    let statements = statements(tenant, query);
    let after = query.place().map(RunId::as_str);
    // Behind every run id: none has a tilde.
    let (low, high) = if query.oldest_first { (after.unwrap_or(""), "~") } else { ("", after.unwrap_or("~")) };
    let mut visible = query.visible_set();
    if visible.is_empty() && (statements == PLAN || statements == VISIBLE) {
        visible = InvocationStatus::ALL.to_vec();
    }
    let visible = (!visible.is_empty()).then(|| visible.into_iter().map(InvocationStatus::as_str).collect::<Vec<_>>());
    let outcomes = query.outcome.as_ref();
    let named = outcomes.map(|outcomes| outcomes.iter().flatten().map(String::as_str).collect::<Vec<_>>());
    let mut params = params![
        tenant,
        low,
        high,
        i64::from(query.limit),
        visible,
        query.plan_set(),
        query.plan_version.as_deref(),
        query.name.as_deref(),
        query.created_from.map(Timestamp::as_millis),
        query.created_until.map(Timestamp::as_millis),
        named,
        outcomes.is_some_and(|outcomes| outcomes.contains(&None)),
        query.invocations.map_or(vec![false, true], |kind| vec![kind]),
        query.mode.map(InvocationMode::as_str),
        query.correlation_id.as_deref(),
    ];
    match query.order {
        RunOrder::RunId => {}
        RunOrder::Created { after: at } => {
            let at = at.filter(|_| after.is_some()).map(Timestamp::as_millis);
            let (low, high) = if query.oldest_first { (at, None) } else { (None, at) };
            params.extend(params![low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX)]);
        }
        RunOrder::Visible { after: at } => {
            let at = at.filter(|_| after.is_some()).map(InvocationStatus::as_str);
            let (low, high) = if query.oldest_first { (at, None) } else { (None, at) };
            params.extend(params![low.unwrap_or(""), high.unwrap_or("~")]);
        }
    }
    let statement = statements[usize::from(query.oldest_first)];
    let Some(filter) = &query.filter else { return read.query(statement, params) };
    let condition = condition(filter, &mut params);
    read.query_once(statement.replace("/* filter */", &format!("AND {condition}")), params)
}
