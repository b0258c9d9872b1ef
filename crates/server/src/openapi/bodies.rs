//! What the operations of the serverless runtime API are sent and what they answer.

use serde_json::{Map, Value, json};
use servo_entrypoint::{EntrypointStatusAction, InvocationControlAction};

use super::operations::Operation;
use super::schemas::reference;

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

#[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
fn content(kind: &str, schema: Value) -> Value {
    json!({kind: {"schema": schema}})
}

pub(super) fn request(operation: &Operation) -> Option<Value> {
    let schema = match operation.id {
        "registerEntrypoint" | "validateEntrypoint" | "updateEntrypoint" => reference("EntrypointDocument"),
        "setEntrypointStatus" => {
            let actions = EntrypointStatusAction::ALL.map(EntrypointStatusAction::as_str);
            json!({"type": "object", "required": ["action"],
                   "properties": {"action": {"type": "string", "enum": actions}}})
        }
        "startInvocation" => reference("InvocationRequest"),
        "controlInvocation" => json!({"type": "object", "required": ["action"],
            "properties": {"action": {"type": "string", "enum": InvocationControlAction::NAMES},
                           "step_id": {"type": "string", "description": "The step of retry_step and skip_step."}}}),
        "signalInvocation" => reference("InvocationSignal"),
        "bulkControlInvocations" => reference("BulkControl"),
        _ => return None,
    };
    Some(json!({"required": true, "content": content(JSON, schema)}))
}

pub(super) fn responses(operation: &Operation) -> Value {
    let mut all = Map::new();
    let mut put = |status: &str, description: &str, body: Option<Value>| {
        let mut answer = json!({"description": description});
        if let Some(content) = body {
            answer["content"] = content;
        }
        if status == "201" {
            answer["headers"] = json!({"Location": {"description": "Where it is.", "schema": {"type": "string"}}});
        }
        all.insert(status.to_owned(), answer);
    };
    let ok = |schema: &str| Some(content(JSON, reference(schema)));
    let list = |schema: &str| {
        let properties =
            json!({"items": {"type": "array", "items": reference(schema)}, "page_info": reference("PageInfo")});
        Some(content(JSON, json!({"type": "object", "required": ["items", "page_info"], "properties": properties})))
    };
    let mut refused: Vec<u16> = vec![400, 401, 403, 404, 405, 429, 500, 503, 507];
    match operation.id {
        "registerEntrypoint" => {
            put("201", "The draft.", ok("Entrypoint"));
            refused.extend([409, 413, 422]);
        }
        "validateEntrypoint" => {
            put("200", "The definition with its defaults.", ok("Entrypoint"));
            refused.extend([409, 413, 422]);
        }
        "listEntrypoints" => {
            put("200", "A page.", list("Entrypoint"));
            refused.push(422);
        }
        "getEntrypoint" => put("200", "The entrypoint.", ok("Entrypoint")),
        "updateEntrypoint" | "setEntrypointStatus" => {
            put("200", "The entrypoint after the change.", ok("Entrypoint"));
            refused.extend([409, 413, 422]);
        }
        "deleteEntrypoint" => {
            put("204", "Deleted, or archived.", None);
            refused.push(409);
        }
        "startInvocation" => {
            put(
                "201",
                "Started; a synchronous call has waited for the end, or until a workflow began to wait: then it is `suspended`.",
                ok("InvocationResult"),
            );
            put(
                "200",
                "Nothing was started: a dry run, a cached result, or the run of the same key.",
                ok("InvocationResult"),
            );
            refused.extend([409, 413, 422]);
        }
        "listInvocations" => {
            put("200", "A page.", list("InvocationRecord"));
            refused.push(422);
        }
        "countInvocations" => put("200", "Counts of the statuses that occur.", ok("StatusCounts")),
        "bulkControlInvocations" => {
            put("200", "One outcome per invocation.", list("BulkOutcome"));
            refused.extend([409, 413, 422]);
        }
        "getInvocation" => put("200", "The invocation.", ok("InvocationRecord")),
        "controlInvocation" => {
            put("200", "The invocation after the action.", ok("InvocationRecord"));
            put("201", "The new invocation of a replay.", ok("InvocationRecord"));
            refused.extend([409, 413, 422]);
        }
        "signalInvocation" => {
            put("200", "The invocation after the message, and what became of the message.", ok("SignalResult"));
            refused.extend([409, 413, 422]);
        }
        "getInvocationTimeline" => {
            let mut body = list("TimelineEvent");
            if let Some(body) = &mut body {
                body["text/event-stream"] = json!({"schema": {"type": "string"}});
            }
            put("200", "A page, or a stream that ends with the invocation.", body);
            refused.push(422);
        }
        "listTypes" => put("200", "All of them.", list("Type")),
        "getType" => put("200", "The schema.", Some(content("application/schema+json", json!({"type": "object"})))),
        _ => refused.clear(),
    }
    for status in refused {
        all.insert(status.to_string(), json!({"$ref": format!("#/components/responses/Refused{status}")}));
    }
    Value::Object(all)
}

/// The refusals of the serverless runtime API.
pub(super) fn refusals() -> Map<String, Value> {
    let rows = [
        (400, "The request cannot be read: its body, a parameter, a cursor, a header."),
        (401, "Credentials are missing or wrong."),
        (403, "The caller's roles do not allow it."),
        (404, "There is no such thing, or it is another tenant's."),
        (405, "Not with this method."),
        (409, "Not in this status, or somebody was faster."),
        (413, "The body is too large."),
        (422, "The document is not valid; `issues` names all that is wrong."),
        (429, "A rate limit or a quota; `Retry-After` says when to come back."),
        (500, "Something went wrong inside."),
        (503, "The server does not take it now: it stops, or its store does not answer. Try again."),
        (507, "The store is full."),
    ];
    let of = |(status, description): (u16, &str)| {
        let schema = reference(if status == 422 { "ValidationProblem" } else { "Problem" });
        (format!("Refused{status}"), json!({"description": description, "content": content(PROBLEM, schema)}))
    };
    rows.map(of).into_iter().collect()
}
