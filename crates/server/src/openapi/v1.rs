//! The operations beside the serverless runtime API: what they take, what they answer, and how they refuse. The tests of the server
//! hold every answer that they get against this (`tests/it/lint/described.rs`).

mod parameters;
mod schemas;

use serde_json::{Map, Value, json};
use servo_model::codes;

use super::operations::Operation;
use super::schemas::reference;

pub(super) use parameters::{of as parameters, part};
pub(super) use schemas::all as schemas;

const JSON: &str = "application/json";

/// What a request's body is.
fn taken(id: &str) -> Option<&'static str> {
    Some(match id {
        "startRun" => "StartRunRequest",
        "importRun" => "RunFile",
        "signalRun" => "SignalRequest",
        "terminateRun" => "TerminateRequest",
        "registerFunction" => "FunctionSpec",
        "putAlias" => "AliasRequest",
        "createKey" => "CreateKeyRequest",
        "redriveDeadLetters" => "RedriveRequest",
        "executeRuntimeCommand" => "RuntimeCommand",
        _ => return None,
    })
}

pub(super) fn request(operation: &Operation) -> Option<Value> {
    if operation.id == "openChannel" {
        let kind = servo_wire::channel::CONTENT_TYPE;
        return Some(json!({"required": true, "content": {kind: {"schema": {"type": "string", "format": "binary"}}}}));
    }
    let schema = reference(taken(operation.id)?);
    // Without one, all of them.
    let required = operation.id != "redriveDeadLetters";
    Some(json!({"required": required, "content": {JSON: {"schema": schema}}}))
}

/// What a good answer is: its status, what it says, and its body.
struct Good(&'static str, &'static str, Body);

enum Body {
    Empty,
    Json(&'static str),
    /// Not JSON, or not of one form.
    Other(&'static str),
}

fn answered(id: &str) -> Vec<Good> {
    use Body::{Empty, Json, Other};
    let one = |description: &'static str, schema: &'static str| vec![Good("200", description, Json(schema))];
    match id {
        "startRun" => vec![
            Good("201", "The run that was started.", Json("StartedRun")),
            Good("200", "The run that the same `runRequestId` started before.", Json("StartedRun")),
        ],
        "listRuns" => one("A page, newest first.", "RunList"),
        "importRun" => vec![Good("201", "The run is in the store.", Json("RunRef"))],
        "getRun" => one("The run as its events stand now.", "RunSnapshot"),
        "deleteRun" => vec![Good("204", "It is gone.", Empty)],
        "getRunEvents" => one("A page, or a stream that ends with the run.", "EventPage"),
        "signalRun" => one("The signal was accepted, now or when it was sent before.", "SignalAnswer"),
        "exportRun" => one("The run as a file.", "RunFile"),
        "terminateRun" => one("The run has ended.", "RunRef"),
        "getRunLogs" => one("A page of lines.", "LineList"),
        "openChannel" => vec![Good("200", "Answers as frames.", Other(servo_wire::channel::CONTENT_TYPE))],
        "listFunctions" => one("A page, with the latest version of each.", "FunctionList"),
        "getFunction" => one("The function.", "FunctionView"),
        "registerFunction" => one("The version, which is an earlier one if nothing changed.", "FunctionItem"),
        "getFunctionVersion" => one("The version.", "FunctionItem"),
        "removeFunction" | "removeAlias" => vec![Good("204", "It is gone.", Empty)],
        "putAlias" => one("The alias.", "AliasItem"),
        "whoAmI" => one("The caller.", "WhoAmI"),
        "listKeys" => one("A page, newest first.", "KeyList"),
        "createKey" => vec![Good("201", "The key, with its secret for the only time.", Json("CreatedKey"))],
        "revokeKey" => one("The key, revoked.", "KeyItem"),
        "readAudit" => one("A page, newest first.", "AuditList"),
        "listAlerts" => one("The latest first.", "AlertList"),
        "getSeries" => one("The points of the last hour, oldest first.", "Series"),
        "listDeadLetters" => one("A page, oldest first.", "DeadLetterList"),
        "redriveDeadLetters" => one("How many are published again.", "Redriven"),
        "getStoreInfo" => one("The store.", "StoreInfo"),
        "backupStore" => vec![Good("200", "A copy of the store.", Other("application/octet-stream"))],
        "verifyStore" => one("What was compared, and what does not agree.", "VerifyReport"),
        "runRetention" => one("How many runs were removed.", "Retired"),
        "executeRuntimeCommand" => one("What the command led to.", "Executed"),
        "getRuntimeSnapshot" => one("The snapshot.", "RuntimeSnapshot"),
        "getRuntimeEvents" => one("A page, oldest first.", "RuntimeEventPage"),
        "getRuntimeSchema" => one("A JSON Schema.", "Document"),
        "getMetrics" => vec![Good("200", "Metrics.", Other(crate::metrics::CONTENT_TYPE))],
        "getFront" => vec![
            Good("200", "What is here.", Other("text/plain")),
            Good("303", "A browser is sent on to the console.", Empty),
        ],
        "getLiveness" => vec![Good("200", "It runs.", Other("text/plain"))],
        "getReadiness" => vec![
            Good("200", "It takes work.", Json("Readiness")),
            Good("503", "It does not, for these reasons.", Json("Readiness")),
        ],
        "getVersion" => one("The version.", "Version"),
        "getOpenApi" => one("This document.", "Document"),
        _ => Vec::new(),
    }
}

pub(super) fn responses(operation: &Operation) -> Value {
    let mut all = Map::new();
    for Good(status, description, body) in answered(operation.id) {
        let mut answer = json!({"description": description});
        match body {
            Body::Empty => {}
            Body::Json(schema) => answer["content"] = json!({JSON: {"schema": reference(schema)}}),
            Body::Other(kind) => answer["content"] = json!({kind: {"schema": {"type": "string"}}}),
        }
        if operation.id == "getRunEvents" {
            answer["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
        }
        if status == "201" && operation.tag == "runs" {
            answer["headers"] = json!({"Location": {"description": "Where it is.", "schema": {"type": "string"}}});
        }
        all.insert(status.to_owned(), answer);
    }
    for status in refused(operation) {
        let answer = json!({"$ref": format!("#/components/responses/Coded{status}")});
        all.entry(status.to_string()).or_insert(answer);
    }
    Value::Object(all)
}

/// The statuses of its refusals.
fn refused(operation: &Operation) -> Vec<u16> {
    let Some(_) = operation.role else { return vec![405, 500] };
    let mut all = vec![401, 403, 405, 422, 429, 500, 503];
    if operation.path.contains('{') || operation.id == "redriveDeadLetters" {
        all.push(404);
    }
    if taken(operation.id).is_some() {
        all.extend([400, 413]);
    }
    all.extend(match operation.id {
        "startRun" => &[409, 502, 507][..],
        "importRun" => &[409, 507],
        "listRuns" | "readAudit" => &[400],
        "getRun" | "exportRun" | "deleteRun" => &[409],
        "terminateRun" => &[409, 410],
        "signalRun" => &[409, 410, 507],
        "registerFunction" | "createKey" => &[507],
        "removeFunction" | "removeAlias" => &[409],
        "executeRuntimeCommand" => &[404, 409, 507],
        "backupStore" => &[501, 507],
        _ => &[],
    });
    all.sort_unstable();
    all.dedup();
    all
}

/// The refusals, by status: which codes they may have is in the table of codes.
pub(super) fn refusals() -> Map<String, Value> {
    let mut statuses: Vec<u16> = codes::ALL.iter().map(|code| code.status).collect();
    statuses.sort_unstable();
    statuses.dedup();
    let told = |status: u16| {
        let of_it: Vec<_> = codes::ALL.iter().filter(|code| code.status == status).collect();
        let titles: Vec<_> = of_it.iter().map(|code| format!("`{}`: {}.", code.code, code.title)).collect();
        let names: Vec<_> = of_it.iter().map(|code| code.code).collect();
        let narrowed = json!({"type": "object", "properties": {"code": {"enum": names}}});
        let schema = json!({"allOf": [reference("CodedProblem"), narrowed]});
        let content = json!({servo_wire::problem::CONTENT_TYPE: {"schema": schema}});
        (format!("Coded{status}"), json!({"description": titles.join(" "), "content": content}))
    };
    statuses.into_iter().map(told).collect()
}
