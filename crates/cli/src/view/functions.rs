//! Functions, executions and their histories.

use serde::Serialize;
use serde_json::Value;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::ExecutionStatus;
use servo_wire::lambda::{GetExecutionResponse, HistoryResponse, ListExecutionsResponse, StopResponse};
use servo_wire::v1::{AliasItem, FunctionItem, FunctionList, FunctionView, LineList};

use super::{Style, View};
use crate::output::table::{Cell, table};

/// What an invocation was answered, in the words of AWS's own command line.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answered {
    pub status_code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable_execution_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_error: Option<String>,
    pub payload: String,
}

impl View for Answered {
    /// The result alone, so that it can be piped on; without one, where to look.
    fn table(&self, _style: &Style) -> String {
        if self.payload.is_empty() {
            self.durable_execution_arn.clone().unwrap_or_default()
        } else {
            self.payload.clone()
        }
    }

    fn ids(&self) -> Vec<String> {
        self.durable_execution_arn.clone().into_iter().collect()
    }
}

fn reach(spec: &FunctionSpec) -> String {
    let how = match &spec.reach {
        Reach::Push { url } => format!("push {url}"),
        Reach::Pull => "pull".to_owned(),
        Reach::InProcess => "in process".to_owned(),
        Reach::Code(code) => code.language.clone(),
    };
    if spec.durable { how } else { format!("{how}, plain") }
}

impl View for FunctionItem {
    fn table(&self, style: &Style) -> String {
        let row = vec![
            Cell::whole(&self.name),
            Cell::new(&self.version.to_string()),
            Cell::new(&reach(&self.spec)),
            Cell::new(&style.time(self.created_at)),
        ];
        table(style.paint(), &["FUNCTION", "VERSION", "REACHED BY", "SINCE"], &[row])
    }

    fn ids(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}

impl View for FunctionList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .items
            .iter()
            .map(|item| {
                vec![
                    Cell::whole(&item.name),
                    Cell::new(&item.version.to_string()),
                    Cell::new(&reach(&item.spec)),
                    Cell::new(&style.time(item.created_at)),
                ]
            })
            .collect();
        table(style.paint(), &["FUNCTION", "VERSION", "REACHED BY", "SINCE"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.items.iter().map(|item| item.name.clone()).collect()
    }

    fn more(&self) -> Option<String> {
        self.after.as_ref().map(|after| format!("--after {after}"))
    }
}

impl View for FunctionView {
    /// Versions with what still runs on each: one that has nothing left and no alias can go.
    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .versions
            .iter()
            .map(|version| {
                let aliases: Vec<_> =
                    self.aliases.iter().filter(|a| a.version == version.version).map(|a| a.alias.as_str()).collect();
                let state = match (version.version == self.latest.version, aliases.is_empty(), version.open_runs) {
                    (true, _, _) => "latest",
                    (false, false, _) => "in use",
                    (false, true, 0) => "drained",
                    (false, true, _) => "draining",
                };
                vec![
                    Cell::new(&version.version.to_string()),
                    Cell::new(state),
                    Cell::new(&version.open_runs.to_string()),
                    Cell::new(&aliases.join(", ")),
                    Cell::new(&style.time(version.created_at)),
                ]
            })
            .collect();
        let versions = table(style.paint(), &["VERSION", "STATE", "OPEN RUNS", "ALIASES", "SINCE"], &rows);
        let worker =
            self.latest.worker_address.as_ref().map(|at| format!("Workers   ask at {at}\n")).unwrap_or_default();
        let spec = &self.latest.spec;
        format!(
            "Function  {}\nReached   {}\n{worker}Timeouts  execution {} s, invocation {} s\n\n{versions}",
            self.latest.name,
            reach(spec),
            spec.execution_timeout_seconds,
            spec.invocation_timeout_seconds,
        )
    }

    fn ids(&self) -> Vec<String> {
        self.versions.iter().map(|version| version.version.to_string()).collect()
    }
}

impl View for AliasItem {
    fn table(&self, style: &Style) -> String {
        let row = vec![Cell::whole(&self.alias), Cell::new(&self.version.to_string())];
        table(style.paint(), &["ALIAS", "VERSION"], &[row])
    }
}

impl View for LineList {
    const ITEMS: Option<&'static str> = Some("items");

    fn table(&self, style: &Style) -> String {
        let line = |line: &servo_wire::v1::LineItem| {
            format!("{}  {}  {}\n", style.log_time(line.at), line.source, crate::output::style::clean(&line.text))
        };
        self.items.iter().map(line).collect()
    }
}

impl View for ListExecutionsResponse {
    const ITEMS: Option<&'static str> = Some("DurableExecutions");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .durable_executions
            .iter()
            .map(|item| {
                vec![
                    Cell::whole(item.durable_execution_arn.rsplit('/').next().unwrap_or_default()),
                    Cell::new(&item.durable_execution_name),
                    Cell::status(item.status.as_str()),
                    Cell::new(&style.time(item.start_timestamp.0)),
                    Cell::from(item.end_timestamp.map(|at| style.time(at.0))),
                ]
            })
            .collect();
        table(style.paint(), &["RUN", "NAME", "STATUS", "STARTED", "ENDED"], &rows)
    }

    fn ids(&self) -> Vec<String> {
        self.durable_executions.iter().map(|item| item.durable_execution_arn.clone()).collect()
    }

    fn more(&self) -> Option<String> {
        self.next_marker.as_ref().map(|marker| format!("--marker {marker}"))
    }
}

impl View for GetExecutionResponse {
    fn table(&self, style: &Style) -> String {
        let mut lines = vec![
            ("Execution", self.durable_execution_arn.clone()),
            ("Status", self.status.as_str().to_owned()),
            ("Started", style.time(self.start_timestamp.0)),
        ];
        lines.extend(self.end_timestamp.map(|at| ("Ended", style.time(at.0))));
        lines.extend(self.input_payload.clone().map(|input| ("Input", input)));
        lines.extend(self.result.clone().map(|result| ("Result", result)));
        if let Some(error) = &self.error {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            lines.push(("Error", format!("{}: {}", text(&error.error_type), text(&error.error_message))));
        }
        lines.iter().map(|(name, value)| format!("{name:<10}{}\n", crate::output::style::clean(value))).collect()
    }

    fn ids(&self) -> Vec<String> {
        vec![self.durable_execution_arn.clone()]
    }

    fn is_final(&self) -> bool {
        self.status != ExecutionStatus::Running
    }
}

impl View for HistoryResponse {
    const ITEMS: Option<&'static str> = Some("Events");

    fn table(&self, style: &Style) -> String {
        let rows: Vec<_> = self
            .events
            .iter()
            .map(|event| {
                let document = serde_json::to_value(event).unwrap_or_default();
                let kind = document["EventType"].as_str().unwrap_or_default().to_owned();
                vec![
                    Cell::new(&event.event_id.to_string()),
                    Cell::new(&style.log_time(event.event_timestamp.0)),
                    Cell::new(&kind),
                    Cell::new(event.name.as_deref().unwrap_or("-")),
                    Cell::new(&details(&document[format!("{kind}Details")])),
                ]
            })
            .collect();
        table(style.paint(), &["#", "AT", "EVENT", "NAME", "DETAILS"], &rows)
    }
}

/// The result or error of an event, or all that it says.
fn details(details: &Value) -> String {
    let error = &details["Error"]["Payload"];
    if error.is_object() {
        let said = ["ErrorType", "ErrorMessage"].into_iter().filter_map(|name| error[name].as_str());
        return said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
    }
    match &details["Result"]["Payload"] {
        Value::String(result) => result.clone(),
        _ => match details.as_object() {
            Some(fields) if !fields.is_empty() => details.to_string(),
            _ => String::new(),
        },
    }
}

impl View for StopResponse {
    fn table(&self, style: &Style) -> String {
        format!("stopped {}", style.time(self.stop_timestamp.0))
    }
}
