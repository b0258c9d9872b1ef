//! Entrypoints, invocations and their timelines.

use std::time::Duration;

use servo_client::StatusCounts;
use servo_entrypoint::{
    BulkOutcome, Entrypoint, EntrypointType, InvocationRecord, InvocationResult, InvocationStatus,
    InvocationTimelineEvent, Page,
};

use super::snapshot::{cause, until};
use super::{Style, View, operations};
use crate::output::style::{clean, took};
use crate::output::table::{Cell, fields, table};

const ENTRYPOINT: [&str; 6] = ["ID", "STATUS", "KIND", "VERSION", "ADDRESS", "TITLE"];

fn entrypoint_row(entrypoint: &Entrypoint) -> Vec<Cell> {
    let definition = &entrypoint.definition;
    let kind = match entrypoint.entrypoint_type() {
        Some(EntrypointType::Function) => "function",
        Some(EntrypointType::Workflow) => "workflow",
        None => "-",
    };
    // The last part of an address is its own; the rest says the kind.
    let own = entrypoint.entrypoint_id.trim_end_matches('~').rsplit('~').next().unwrap_or_default();
    vec![
        Cell::whole(entrypoint.id.as_deref().unwrap_or("-")),
        Cell::status(definition.status.as_str()),
        Cell::new(kind),
        Cell::new(&definition.version),
        Cell::whole(own),
        Cell::new(&definition.title),
    ]
}

impl View for Entrypoint {
    fn table(&self, style: &Style) -> String {
        table(style.paint(), &ENTRYPOINT, &[entrypoint_row(self)])
    }

    fn ids(&self) -> Vec<String> {
        self.id.clone().into_iter().collect()
    }
}

impl View for Page<Entrypoint> {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        table(style.paint(), &ENTRYPOINT, &self.items.iter().map(entrypoint_row).collect::<Vec<_>>())
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().filter_map(|item| item.id.clone()).collect()
    }

    fn more(&self) -> Option<String> {
        self.page_info.next_cursor.as_ref().map(|cursor| format!("--cursor {cursor}"))
    }
}

/// Why it failed; that it could not be undone either comes first, since it is what is left to do.
pub(crate) fn reason(record: &InvocationRecord) -> Option<String> {
    let cause = record.error.as_ref().map(|error| error.message.strip_prefix("fail: ").unwrap_or(&error.message));
    let undone = record.compensation.as_ref().and_then(|undoing| undoing.error.as_ref());
    match (undone, cause) {
        (Some(undone), Some(cause)) => {
            Some(format!("could not be undone: {} (it had failed: {cause})", undone.message))
        }
        (Some(undone), None) => Some(format!("could not be undone: {}", undone.message)),
        (None, cause) => cause.map(str::to_owned),
    }
}

fn records(records: &[InvocationRecord], style: &Style) -> String {
    let row = |record: &InvocationRecord| {
        let times = &record.timestamps;
        let own = record.entrypoint_id.trim_end_matches('~').rsplit('~').next().unwrap_or_default();
        vec![
            Cell::whole(&record.invocation_id),
            Cell::status(record.status.as_str()),
            Cell::whole(own),
            Cell::new(&style.time(times.created_at)),
            Cell::from(times.finished_at.map(|end| took(end.since(times.created_at)))),
            Cell::from(reason(record)),
        ]
    };
    let rows: Vec<_> = records.iter().map(row).collect();
    table(style.paint(), &["INVOCATION", "STATUS", "ENTRYPOINT", "CREATED", "TOOK", "ERROR"], &rows)
}

impl View for Page<InvocationRecord> {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        records(&self.items, style)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|item| item.invocation_id.clone()).collect()
    }

    fn more(&self) -> Option<String> {
        self.page_info.next_cursor.as_ref().map(|cursor| format!("--cursor {cursor}"))
    }
}

impl View for InvocationRecord {
    fn table(&self, style: &Style) -> String {
        let times = &self.timestamps;
        let waits = self.blocked_by.iter().map(|blocked| {
            let mut text = clean(cause(blocked.cause.as_str()));
            for part in [&blocked.name, &blocked.invocation_id].into_iter().flatten() {
                text.push_str(&format!(" `{}`", clean(part)));
            }
            if let Some(reason) = &blocked.reason {
                text.push_str(&format!(" ({})", clean(reason)));
            }
            until(text, (blocked.since, blocked.until), style)
        });
        let waits: Vec<String> = waits.collect();
        let not_undone = self.compensation.as_ref().and_then(|undoing| {
            let error = undoing.error.as_ref()?;
            let by = undoing.invocation_id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
            Some(clean(&format!("could not be undone: {}{by}", error.message)))
        });
        let whole = times.finished_at.map(|end| end.since(times.created_at));
        // A run that was retried has a last round, which alone the platform's measures are about.
        let round = self.observability.metrics.duration_ms.map(Duration::from_millis);
        let took_both = whole.map(|whole| match round {
            Some(round) if whole.saturating_sub(round) >= Duration::from_secs(1) => {
                format!("{} since it was created; its last round {}", took(whole), took(round))
            }
            _ => took(whole),
        });
        let json = |value: &serde_json::Value| (!value.is_null()).then(|| clean(&value.to_string()));
        let fields = fields(&[
            ("Invocation", Some(self.invocation_id.clone())),
            ("Status", Some(self.status.as_str().to_owned())),
            ("Entrypoint", Some(format!("{} {}", clean(&self.entrypoint_id), clean(&self.entrypoint_version)))),
            ("Created", Some(style.time(times.created_at))),
            ("Suspended", times.suspended_at.map(|at| style.time(at))),
            ("Waits for", (!waits.is_empty()).then(|| waits.join("; "))),
            ("Undoing", not_undone),
            ("Took", took_both),
            ("Params", json(&self.params)),
            ("Result", self.result.as_ref().and_then(json)),
            ("Error", self.error.as_ref().map(|error| clean(&format!("{} ({})", error.message, error.error_type_id)))),
            ("Correlation", Some(clean(&self.observability.correlation_id))),
            ("Imported", super::imported(self.imported_by.as_deref(), self.imported_at, style)),
        ]);
        let operations = operations::of_invocation(&self.operations, self.operations_total, style);
        if operations.is_empty() { fields } else { format!("{fields}\n{operations}") }
    }

    fn ids(&self) -> Vec<String> {
        vec![self.invocation_id.clone()]
    }

    /// A failed one can be retried, but does nothing by itself.
    fn is_final(&self) -> bool {
        use InvocationStatus as S;
        match self.status {
            S::Queued | S::Running | S::Suspended | S::Compensating => false,
            S::Succeeded | S::Failed | S::Canceled | S::Compensated | S::DeadLettered => true,
        }
    }
}

/// Invocations by name: one in full, several as a list.
#[derive(Debug)]
pub(crate) struct Records(pub(crate) Vec<InvocationRecord>);

impl View for Records {
    fn table(&self, style: &Style) -> String {
        match self.0.as_slice() {
            [record] => record.table(style),
            several => records(several, style),
        }
    }

    fn ids(&self) -> Vec<String> {
        self.0.iter().map(|record| record.invocation_id.clone()).collect()
    }
}

impl View for InvocationResult {
    fn table(&self, style: &Style) -> String {
        let note = match (self.dry_run, self.cached) {
            (true, _) => "It could start; nothing was started.\n",
            (false, true) => "A cached result; nothing was started.\n",
            (false, false) => "",
        };
        format!("{}{note}", self.record.table(style))
    }

    fn ids(&self) -> Vec<String> {
        self.record.ids()
    }
}

/// One event on one line.
pub(crate) fn timeline_line(event: &InvocationTimelineEvent, style: &Style) -> String {
    let mut line = format!("{}  {}  {}", style.log_time(event.at), event.status.as_str(), event.event_type.as_str());
    for part in [&event.step_name, &event.message].into_iter().flatten() {
        line.push_str("  ");
        line.push_str(&clean(part));
    }
    line
}

impl View for Page<InvocationTimelineEvent> {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        self.items.iter().map(|event| timeline_line(event, style) + "\n").collect()
    }
}

impl View for Page<BulkOutcome> {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let row = |outcome: &BulkOutcome| {
            let said = outcome.error.as_ref().map_or("ok", |error| error.message.as_str());
            vec![Cell::whole(&outcome.invocation_id), Cell::new(said)]
        };
        table(style.paint(), &["INVOCATION", "OUTCOME"], &self.items.iter().map(row).collect::<Vec<_>>())
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|item| item.invocation_id.clone()).collect()
    }
}

impl View for StatusCounts {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let row = |count: &servo_entrypoint::StatusCount| {
            vec![Cell::status(count.status.as_str()), Cell::new(&count.count.to_string())]
        };
        table(style.paint(), &["STATUS", "COUNT"], &self.items.iter().map(row).collect::<Vec<_>>())
    }
}
