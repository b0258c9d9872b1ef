//! Parameters of path, query and headers.

use serde_json::{Value, json};
use servo_model::AuditOutcome;
use servo_model::invocation::InvocationStatus;
use servo_model::limits::{LABEL_CHARS_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};

use crate::openapi::operations::Operation;
use crate::openapi::parameters::{header, query};

pub(in crate::openapi) fn of(operation: &Operation) -> Vec<Value> {
    let text = || json!({"type": "string"});
    let label = || json!({"type": "string", "minLength": 1, "maxLength": LABEL_CHARS_MAX});
    let time = || json!({"type": "string", "format": "date-time"});
    let mut all = Vec::new();
    match operation.id {
        "listRuns" => {
            let statuses = InvocationStatus::ALL.map(InvocationStatus::as_str);
            let letters = "With an id that begins or ends so, of four letters or more; stands alone.";
            all.push(query("id", letters, json!({"type": "string", "minLength": 4})));
            all.push(query("status", "In this status.", json!({"type": "string", "enum": statuses})));
            all.push(query("planId", "Of this plan, function or registration of an entrypoint.", text()));
            all.extend([limit(), cursor()]);
        }
        "getRunEvents" => {
            all.extend([after_number("Events behind this sequence."), limit()]);
            let last = json!({"type": "integer", "minimum": 0});
            all.push(header("Last-Event-ID", "Where a stream that broke off was.", last));
        }
        "getRunLogs" => all.extend([after_number("Lines behind this number."), limit()]),
        "listFunctions" => all.extend([query("after", "Functions behind this name.", text()), limit()]),
        "listKeys" => {
            all.extend([query("after", "Keys behind this id.", text()), limit()]);
            all.push(query("tenantId", "Another tenant's, for those who run the platform.", text()));
        }
        "readAudit" => {
            let outcomes = AuditOutcome::ALL.map(AuditOutcome::as_str);
            all.push(query("actor", "Done by this subject.", label()));
            all.push(query("action", "Of this kind, such as `function.publish`.", label()));
            all.push(query("object", "Done to this.", label()));
            all.push(query("outcome", "With this outcome.", json!({"type": "string", "enum": outcomes})));
            all.extend([query("from", "At this time or later.", time()), query("to", "Before this time.", time())]);
            all.push(query("tenantId", "Another tenant's, for those who run the platform.", text()));
            all.extend([limit(), cursor()]);
        }
        "listAlerts" => all.push(limit()),
        "listDeadLetters" => all.extend([after_position(), limit()]),
        "getRuntimeEvents" => all.extend([after_position(), limit()]),
        _ => {}
    }
    all
}

/// What a part of the path is.
pub(in crate::openapi) fn part(operation: &Operation, name: &str) -> &'static str {
    match (operation.tag, name) {
        ("runs", _) => "The run, such as `inv_…`.",
        ("functions", "name") => "The function's name.",
        ("functions", "version") => "The number of the version.",
        ("functions", "alias") => "The alias.",
        ("identity", _) => "The key's id, such as `key_…`.",
        _ => "",
    }
}

fn limit() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE_DEFAULT});
    query("limit", "Items per page.", schema)
}

fn cursor() -> Value {
    query("cursor", "`nextCursor` of an earlier page of the same list.", json!({"type": "string"}))
}

fn after_number(description: &str) -> Value {
    query("after", description, json!({"type": "integer", "minimum": 0, "default": 0}))
}

fn after_position() -> Value {
    query("after", "Behind this place of the log, such as `cursor-7`.", json!({"type": "string"}))
}
