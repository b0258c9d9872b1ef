//! Lists of runs. Each index gives the runs of one kind, plan or status in their order, so several of them are asked for
//! one by one and put together: never more than a page of each is read.

use rusqlite::{Connection, ToSql};
use servo_model::invocation::{InvocationMode, InvocationStatus};
use servo_model::{RunId, Timestamp};
use servo_store::runs::{RunOrder, RunQuery};
use servo_store::{Error, RunRow, Scope};

use super::filter::Condition;
use super::{COLUMNS, run_row};
use crate::codec::int;
use crate::error::Fault;
use crate::sql::events::damage;

/// One range of an index.
#[derive(Debug, Clone, Copy, Default)]
struct Range<'a> {
    visible: Option<InvocationStatus>,
    plan: Option<&'a str>,
    invocation: Option<bool>,
}

pub(crate) fn list(conn: &Connection, scope: &Scope, query: &RunQuery) -> Result<Vec<RunRow>, Fault> {
    let ranges = ranges(scope, query);
    let mut list = Vec::new();
    for range in &ranges {
        list_one(conn, scope, query, *range, &mut list)?;
    }
    if ranges.len() > 1 {
        query.sort(&mut list);
        list.truncate(query.limit as usize);
    }
    Ok(list)
}

/// Those of the narrowest index; a single one where the order, or no condition, decides.
fn ranges<'a>(scope: &Scope, query: &'a RunQuery) -> Vec<Range<'a>> {
    let plans = query.plan_set();
    if plans.as_ref().is_some_and(Vec::is_empty) {
        return Vec::new();
    }
    let by_id = query.order == RunOrder::RunId;
    let is_named = query.name.is_some() || query.correlation_id.is_some();
    if !by_id || is_named || !matches!(scope, Scope::Tenant(_)) {
        return vec![Range::default()];
    }
    let mut statuses = query.visible_set();
    if statuses.is_empty() && plans.is_none() && query.invocations.is_none() {
        return vec![Range::default()];
    }
    if statuses.is_empty() {
        statuses = InvocationStatus::ALL.to_vec();
    }
    let kinds = query.invocations.map_or(vec![false, true], |kind| vec![kind]);
    let plans = plans.map_or(vec![None], |plans| plans.into_iter().map(Some).collect());
    let mut ranges = Vec::new();
    for plan in plans {
        for invocation in &kinds {
            let range =
                |visible: &InvocationStatus| Range { visible: Some(*visible), plan, invocation: Some(*invocation) };
            ranges.extend(statuses.iter().map(range));
        }
    }
    ranges
}

fn list_one(
    conn: &Connection,
    scope: &Scope,
    query: &RunQuery,
    range: Range<'_>,
    list: &mut Vec<RunRow>,
) -> Result<(), Fault> {
    // Sure to be the index: by its kind and tenant alone the planner might take another, and sort.
    let is_created = matches!(query.order, RunOrder::Created { .. })
        && matches!(scope, Scope::Tenant(_))
        && query.invocations == Some(true)
        && query.correlation_id.is_none()
        && query.name.is_none();
    let index = if is_created { " INDEXED BY runs_created" } else { "" };
    // The system stream is a row like others and no run.
    let mut sql = format!("SELECT {COLUMNS} FROM runs{index} WHERE purging = 0 AND run_id <> '_system'");
    let mut values: Vec<(&str, &dyn ToSql)> = Vec::new();
    let tenant = match scope {
        Scope::Tenant(tenant) => Some(tenant.as_str()),
        Scope::System => None,
    };
    let visible = range.visible.map(InvocationStatus::as_str);
    let mode = query.mode.map(InvocationMode::as_str);
    let (from, until) = (query.created_from.map(Timestamp::as_millis), query.created_until.map(Timestamp::as_millis));
    // One text for any number of them, so that the statement stays the same.
    let json = |field: &str, texts: Option<String>| {
        texts.ok_or_else(|| Error::Invalid { field: field.to_owned(), reason: "cannot be written as JSON".to_owned() })
    };
    let outcomes =
        query.outcome.as_ref().map(|asked| json("outcome", serde_json::to_string(asked).ok())).transpose()?;
    let plans = query.plan_set().filter(|_| range.plan.is_none());
    let plans = plans.map(|asked| json("plan_ids", serde_json::to_string(&asked).ok())).transpose()?;
    let statuses = query.visible_set().into_iter().map(InvocationStatus::as_str).collect::<Vec<_>>();
    let statuses = (range.visible.is_none() && !statuses.is_empty()).then_some(statuses);
    let statuses = statuses.map(|asked| json("visible", serde_json::to_string(&asked).ok())).transpose()?;
    macro_rules! filter {
        ($value:expr, $name:literal, $condition:expr) => {
            if let Some(value) = $value {
                sql.push_str($condition);
                values.push(($name, value));
            }
        };
    }
    filter!(&tenant, ":tenant", " AND tenant_id = :tenant");
    filter!(&visible, ":visible", " AND visible = :visible");
    filter!(&range.plan, ":plan", " AND plan_id = :plan");
    filter!(&range.invocation, ":kind", " AND invocation = :kind");
    filter!(&query.plan_version, ":version", " AND plan_version = :version");
    filter!(&query.name, ":name", " AND name = :name");
    filter!(&query.correlation_id, ":correlation", " AND correlation_id = :correlation");
    filter!(&mode, ":mode", " AND mode = :mode");
    filter!(&from, ":from", " AND created_at >= :from");
    filter!(&until, ":until", " AND created_at < :until");
    filter!(&plans, ":plans", " AND +plan_id IN (SELECT value FROM json_each(:plans))");
    filter!(&statuses, ":statuses", " AND +visible IN (SELECT value FROM json_each(:statuses))");
    filter!(
        &outcomes,
        ":outcomes",
        " AND EXISTS (SELECT 1 FROM json_each(:outcomes) asked WHERE asked.value IS runs.outcome)"
    );
    if range.invocation.is_none() {
        // A plus keeps the planner from choosing an index by it, where another is narrower.
        sql.push_str(match (query.invocations, query.order) {
            (None, _) => "",
            (Some(true), RunOrder::Created { .. }) => " AND invocation = 1",
            (Some(true), RunOrder::Visible { .. }) => " AND invocation = 1",
            (Some(true), RunOrder::RunId) => " AND +invocation = 1",
            (Some(false), _) => " AND +invocation = 0",
        });
    }
    let condition = query.filter.as_ref().map(Condition::of);
    if let Some(condition) = &condition {
        sql.push_str(" AND ");
        sql.push_str(&condition.sql);
        values.extend(condition.values.iter().map(|(name, value)| (name.as_str(), value as &dyn ToSql)));
    }
    let (behind, direction) = if query.oldest_first { (">", "ASC") } else { ("<", "DESC") };
    let after = query.place().map(RunId::as_str);
    let (mut created, mut spelled) = (None, None);
    let column = match query.order {
        RunOrder::RunId => None,
        RunOrder::Created { after } => {
            created = after.map(Timestamp::as_millis);
            Some("created_at")
        }
        RunOrder::Visible { after } => {
            spelled = after.map(InvocationStatus::as_str);
            Some("visible")
        }
    };
    if let Some(after) = &after {
        sql.push_str(&match column {
            None => format!(" AND run_id {behind} :after"),
            Some(column) => format!(" AND ({column}, run_id) {behind} (:value, :after)"),
        });
        values.push((":after", after));
        if let Some(created) = &created {
            values.push((":value", created));
        }
        if let Some(spelled) = &spelled {
            values.push((":value", spelled));
        }
    }
    let column = column.map_or(String::new(), |column| format!("{column} {direction}, "));
    sql.push_str(&format!(" ORDER BY {column}run_id {direction} LIMIT :limit"));
    let mut found = conn.prepare_cached(&sql)?;
    let (start, mut limit) = (list.len(), u64::from(query.limit));
    loop {
        let asked = int(limit);
        let mut values = values.clone();
        values.push((":limit", &asked));
        let mut rows = found.query(&values[..])?;
        let (mut seen, mut unreadable) = (0, 0);
        while let Some(row) = rows.next()? {
            let read = run_row(row).map(|row| list.push(row));
            seen += 1;
            unreadable += u64::from(damage(read)?.is_some());
        }
        // A row that cannot be read hides no other: the page is as long as without it. The check of the store names it.
        if unreadable == 0 || seen < limit || seen - unreadable >= u64::from(query.limit) {
            return Ok(());
        }
        list.truncate(start);
        limit = u64::from(query.limit) + unreadable;
    }
}
