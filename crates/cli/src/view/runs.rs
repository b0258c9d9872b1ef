//! Lists of runs, and what commands on runs answer.

use servo_model::invocation::InvocationStatus;
use servo_model::{RunId, RunSnapshot};
use servo_wire::v1::{RunItem, RunList, RunRef, SignalAnswer, StartedRun};

use super::{Style, View};
use crate::output::style::took;
use crate::output::table::{Cell, table};

impl View for RunList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self.items.iter().map(|item| row(item, style)).collect();
        table(style.paint(), &["RUN", "STATUS", "PLAN", "WHERE", "CREATED", "TOOK", "NOTE"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|item| item.run_id.to_string()).collect()
    }

    fn more(&self) -> Option<String> {
        self.next_cursor.as_ref().map(|cursor| format!("--all, or --cursor {cursor}"))
    }
}

fn row(item: &RunItem, style: &Style) -> Vec<Cell> {
    let status = match item.visible {
        // Running as the events have it, but nothing happens until a retry is due.
        InvocationStatus::Suspended if item.status.as_str() == "RUNNING" => "RUNNING (waits)".to_owned(),
        _ => item.status.as_str().to_owned(),
    };
    let place = format!("{}/{}", item.project_id, item.environment_id);
    vec![
        Cell::whole(item.run_id.as_str()),
        Cell::status(&status),
        Cell::new(&format!("{}@{}", item.plan_id, item.plan_version)),
        if place == "default/default" { Cell::new("") } else { Cell::new(&place) },
        Cell::new(&style.time(item.created_at)),
        Cell::from(item.finished_at.map(|end| took(end.since(item.created_at)))),
        Cell::from(item.quarantined.as_ref().map(|reason| format!("set aside: {reason}"))),
    ]
}

impl View for StartedRun {
    fn table(&self, style: &Style) -> String {
        let note = if self.created { "started" } else { "the same request has started it before" };
        let row = vec![short(&self.snapshot).0, short(&self.snapshot).1, Cell::new(note)];
        table(style.paint(), &["RUN", "STATUS", "NOTE"], &[row])
    }

    fn ids(&self) -> Vec<String> {
        vec![self.snapshot.run_id.to_string()]
    }
}

fn short(snapshot: &RunSnapshot) -> (Cell, Cell) {
    let status = match snapshot.substatus {
        Some(_) => format!("{} (draining)", snapshot.status.as_str()),
        None => snapshot.status.as_str().to_owned(),
    };
    (Cell::whole(snapshot.run_id.as_str()), Cell::status(&status))
}

/// Runs that took a signal.
#[derive(Debug)]
pub(crate) struct SignalledRuns(pub(crate) Vec<SignalAnswer>);

impl View for SignalledRuns {
    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .0
            .iter()
            .map(|answer| {
                let (run, status) = short(&answer.snapshot);
                vec![run, status, Cell::from(answer.snapshot.message.clone())]
            })
            .collect();
        table(style.paint(), &["RUN", "STATUS", "NOTE"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.0.iter().map(|answer| answer.snapshot.run_id.to_string()).collect()
    }
}

/// Runs that something was done to, and what.
#[derive(Debug)]
pub(crate) struct RunRefs {
    pub(crate) done: &'static str,
    pub(crate) runs: Vec<RunId>,
}

impl RunRefs {
    pub(crate) fn json(run: &RunId) -> String {
        serde_json::to_string(&RunRef { run_id: run.clone() }).unwrap_or_default()
    }
}

impl View for RunRefs {
    fn table(&self, _: &Style) -> String {
        self.runs.iter().map(|run| format!("{run}  {}\n", self.done)).collect()
    }

    fn ids(&self) -> Vec<String> {
        self.runs.iter().map(ToString::to_string).collect()
    }
}
