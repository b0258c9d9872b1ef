//! What a workflow or a durable function has recorded, as a table.

use std::collections::HashMap;

use servo_entrypoint::OperationRecord;
use servo_model::Timestamp;
use servo_model::listing::{OperationError, OperationSnapshot};
use servo_model::operation::OperationStatus;

use super::Style;
use crate::output::style::took;
use crate::output::table::{Cell, table};

/// Steps within steps that are set in.
const DEPTH_MAX: usize = 8;

/// One of them, whichever API told it.
struct Row<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    name: &'a str,
    kind: &'a str,
    status: OperationStatus,
    attempts: Option<u32>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    due_at: Option<Timestamp>,
    error: Option<&'a OperationError>,
    run: Option<&'a str>,
}

impl<'a> From<&'a OperationSnapshot> for Row<'a> {
    fn from(operation: &'a OperationSnapshot) -> Self {
        Self {
            id: &operation.operation_id,
            parent: operation.parent_id.as_deref(),
            name: operation.name.as_deref().unwrap_or(&operation.kind),
            kind: &operation.kind,
            status: operation.status,
            attempts: operation.attempts,
            started_at: operation.started_at,
            ended_at: operation.ended_at,
            due_at: operation.due_at,
            error: operation.error.as_ref(),
            run: operation.run_id.as_ref().map(|id| id.as_str()),
        }
    }
}

impl<'a> From<&'a OperationRecord> for Row<'a> {
    fn from(operation: &'a OperationRecord) -> Self {
        Self {
            id: &operation.operation_id,
            parent: operation.parent_id.as_deref(),
            name: operation.name.as_deref().unwrap_or(&operation.kind),
            kind: &operation.kind,
            status: operation.status,
            attempts: operation.attempts,
            started_at: operation.started_at,
            ended_at: operation.ended_at,
            due_at: operation.due_at,
            error: operation.error.as_ref(),
            run: operation.invocation_id.as_deref(),
        }
    }
}

pub(super) fn of_run(operations: &[OperationSnapshot], total: Option<usize>, style: &Style) -> String {
    show(&operations.iter().map(Row::from).collect::<Vec<_>>(), total, style)
}

pub(super) fn of_invocation(operations: &[OperationRecord], total: Option<usize>, style: &Style) -> String {
    show(&operations.iter().map(Row::from).collect::<Vec<_>>(), total, style)
}

fn show(rows: &[Row<'_>], total: Option<usize>, style: &Style) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let parents: HashMap<&str, Option<&str>> = rows.iter().map(|row| (row.id, row.parent)).collect();
    let depth = |row: &Row<'_>| {
        let mut parent = row.parent;
        let mut depth = 0;
        while let Some(above) = parent.and_then(|id| parents.get(id)).filter(|_| depth < DEPTH_MAX) {
            depth += 1;
            parent = *above;
        }
        depth
    };
    let cells = |row: &Row<'_>| {
        let took = row.ended_at.map(|end| took(end.since(row.started_at)));
        let due = row.due_at.map(|at| format!("due {}", style.time(at)));
        let detail = match row.error {
            Some(error) => Some(format!("{}: {}", error.code, error.message)),
            None => row.run.map(str::to_owned),
        };
        let detail = [detail, due].into_iter().flatten().collect::<Vec<_>>().join(", ");
        vec![
            Cell::new(&format!("{}{}", "  ".repeat(depth(row)), row.name)),
            Cell::new(row.kind),
            Cell::status(&row.status.as_str().to_lowercase().replace('_', " ")),
            Cell::from(row.attempts.map(|attempts| attempts.to_string())),
            Cell::new(&style.time(row.started_at)),
            Cell::from(took),
            Cell::from((!detail.is_empty()).then_some(detail)),
        ]
    };
    let heads = ["OPERATION", "KIND", "STATUS", "ATTEMPTS", "STARTED", "TOOK", "DETAIL"];
    let mut text = table(style.paint(), &heads, &rows.iter().map(cells).collect::<Vec<_>>());
    if let Some(left) = total.map(|total| total.saturating_sub(rows.len())).filter(|left| *left > 0) {
        text.push_str(&format!(
            "and {left} more, all of which succeeded or are older; `servo runs events` has every one\n"
        ));
    }
    text
}
