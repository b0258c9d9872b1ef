//! Schemas: the published types under names that OpenAPI allows, and what the REST API puts around them.

use serde_json::{Map, Value, json};
use servo_entrypoint::{InvocationControlAction, InvocationStatus, TimelineEventType, Types, errors};

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A component's name holds no `~`.
fn name_of(id: &str) -> String {
    id.trim_end_matches('~').replace('~', "-")
}

fn published(id: &str) -> Value {
    reference(&name_of(id))
}

pub(super) fn all() -> Value {
    let mut all = Map::new();
    for id in Types::ids() {
        let mut schema = Types::published().get(id).unwrap_or_default();
        if let Some(members) = schema.as_object_mut() {
            // In here a schema is found by its place.
            members.remove("$id");
            members.remove("$schema");
        }
        refer(&mut schema);
        all.insert(name_of(id), schema);
    }
    for (name, schema) in own().into_iter().chain(super::v1::schemas()) {
        all.insert(name.to_owned(), schema);
    }
    Value::Object(all)
}

/// Lets references between types lead to their places here.
fn refer(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(text) if name == "$ref" => {
                        if let Some(id) = text.strip_prefix("gts://") {
                            *text = format!("#/components/schemas/{}", name_of(id));
                        }
                    }
                    _ => refer(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn own() -> Vec<(&'static str, Value)> {
    let text = || json!({"type": "string"});
    let time = || json!({"type": "string", "format": "date-time"});
    let address = json!({"type": "string", "description": "The GTS address."});
    let base = published("gts.x.core.serverless.entrypoint.v1~");
    let statuses = InvocationStatus::ALL.map(InvocationStatus::as_str);
    let events = TimelineEventType::ALL.map(TimelineEventType::as_str);
    vec![
        (
            "EntrypointDocument",
            json!({"allOf": [base, {"type": "object", "required": ["entrypoint_id"], "properties": {"entrypoint_id": address}}]}),
        ),
        (
            "Entrypoint",
            json!({"allOf": [base, {"type": "object", "required": ["entrypoint_id"], "properties": {
                "id": {"type": "string", "description": "The opaque id of the registration; absent in what was only validated."},
                "entrypoint_id": address, "created_at": time(), "updated_at": time()}}]}),
        ),
        (
            "InvocationRequest",
            json!({"type": "object", "required": ["entrypoint_id"], "properties": {
                "entrypoint_id": {"type": "string", "description": "The GTS address, or a short name: `vendor.app.tax` means its highest active version."},
                "mode": {"type": ["string", "null"], "enum": ["sync", "async", null]},
                "params": {"type": ["object", "null"]}, "dry_run": {"type": ["boolean", "null"], "default": false}}}),
        ),
        ("InvocationRecord", record(&[])),
        (
            "SignalResult",
            record(&[(
                "signal",
                json!({"type": "object", "required": ["name", "kept"], "properties": {
                "name": text(), "kept": {"type": "boolean", "description": "Nothing waits for it yet."},
                "note": {"type": "string", "description": "The same for people."}}}),
            )]),
        ),
        (
            "InvocationResult",
            json!({"type": "object", "required": ["record", "dry_run", "cached"], "properties": {
                "record": reference("InvocationRecord"), "dry_run": {"type": "boolean"}, "cached": {"type": "boolean"},
                "warnings": {"type": "array", "description": "Such as that the entrypoint is deprecated.", "items": text()}}}),
        ),
        (
            "InvocationSignal",
            json!({"type": "object", "required": ["signal_id", "name"], "properties": {
                "signal_id": {"type": "string", "description": "The same id again changes nothing."},
                "name": {"type": "string", "minLength": 1, "maxLength": 128}, "payload": {}}}),
        ),
        (
            "BulkControl",
            json!({"type": "object", "required": ["action", "filter"], "properties": {
                "action": {"type": "string", "enum": InvocationControlAction::NAMES}, "step_id": text(),
                "filter": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "As `$filter` of the list."},
                "max_items": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000, "default": 100},
                "per_second": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000},
                "cursor": {"type": ["string", "null"], "description": "The `next_cursor` of the call before."},
                "dry_run": {"type": ["boolean", "null"], "default": false}}}),
        ),
        (
            "BulkOutcome",
            json!({"type": "object", "required": ["invocation_id"], "properties": {
                "id": text(), "invocation_id": text(), "error": {"type": ["object", "null"]}}}),
        ),
        (
            "StatusCounts",
            json!({"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items":
                {"type": "object", "required": ["status", "count"], "properties":
                    {"status": {"type": "string", "enum": statuses}, "count": {"type": "integer", "minimum": 0}}}}}}),
        ),
        (
            "TimelineEvent",
            json!({"type": "object", "required": ["at", "event_type", "status"], "properties": {
                "at": time(), "event_type": {"type": "string", "enum": events}, "status": {"type": "string", "enum": statuses},
                "step_name": {"type": ["string", "null"]}, "duration_ms": {"type": ["integer", "null"], "minimum": 0},
                "message": {"type": ["string", "null"]}, "details": {"type": "object"}}}),
        ),
        (
            "Type",
            json!({"type": "object", "required": ["id", "uri", "href"], "properties": {"id": text(), "uri": text(), "href": text()}}),
        ),
        (
            "PageInfo",
            json!({"type": "object", "required": ["next_cursor", "prev_cursor", "has_more"], "properties": {
                "next_cursor": {"type": ["string", "null"]}, "prev_cursor": {"type": ["string", "null"]}, "has_more": {"type": "boolean"}}}),
        ),
        ("Problem", problem(&[])),
        ("ValidationProblem", problem(&["errors", "issues"])),
    ]
}

fn problem(also: &[&str]) -> Value {
    let mut required = vec!["type", "title", "status", "detail", "instance", "code", "trace_id"];
    required.extend(also);
    let codes: Vec<&str> = errors::KINDS.iter().map(|kind| kind.id).collect();
    let found = json!({"type": "object", "required": ["path", "message"], "properties": {"path": {"type": "string"}, "message": {"type": "string"}, "line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}}});
    let issue = json!({"type": "object", "required": ["error_type", "location", "message"], "properties": {
        "error_type": {"type": "string"}, "message": {"type": "string"}, "suggestion": {"type": ["string", "null"]},
        "location": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"},
            "line": {"type": ["integer", "null"]}, "column": {"type": ["integer", "null"]}}}}});
    json!({"type": "object", "required": required, "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, "detail": {"type": "string"},
        "instance": {"type": "string"}, "code": {"type": "string", "enum": codes}, "trace_id": {"type": "string"},
        "errors": {"type": "array", "items": found}, "issues": {"type": "array", "items": issue},
        "suggestions": {"type": "array", "description": "Names that may have been meant.", "items": {"type": "string"}},
        "retry_after_seconds": {"type": "integer", "minimum": 0}}})
}

/// Not the published type itself: payloads are null for callers who may not read them.
fn record(also: &[(&str, Value)]) -> Value {
    let text = || json!({"type": "string"});
    let time = || json!({"type": "string", "format": "date-time"});
    let statuses = InvocationStatus::ALL.map(InvocationStatus::as_str);
    let operation = json!({"type": "object", "required": ["operation_id", "kind", "status", "started_at"], "properties": {
        "operation_id": text(), "kind": text(), "name": text(), "status": text(), "parent_id": text(),
        "attempts": {"type": "integer", "minimum": 0}, "started_at": time(), "ended_at": time(),
        "due_at": {"type": "string", "format": "date-time", "description": "When time alone will change it."},
        "error": {"type": "object", "required": ["code", "message"], "properties": {"code": text(), "message": text()}},
        "invocation_id": {"type": "string", "description": "The run that it has started."}}});
    let mut schema = json!({"type": "object",
        "required": ["id", "invocation_id", "entrypoint_id", "entrypoint_version", "tenant_id", "status", "mode", "timestamps", "observability"],
        "properties": {
            "id": text(), "invocation_id": text(), "entrypoint_id": text(), "entrypoint_version": text(),
            "tenant_id": text(), "status": {"type": "string", "enum": statuses}, "mode": {"type": "string", "enum": ["sync", "async"]},
            "params": {"type": ["object", "null"]}, "result": {"type": ["object", "null"]}, "error": {"type": ["object", "null"]},
            "timestamps": {"type": "object"}, "observability": {"type": "object"},
            "blocked_by": {"type": "array", "description": "Why it does not go on.", "items": {"type": "object", "required": ["cause"],
                "properties": {"cause": text(), "name": text(), "reason": text(), "invocation_id": text(), "since": time(), "until": time()}}},
            "earliest_at": {"type": ["string", "null"], "format": "date-time", "description": "When it can move at the earliest."},
            "compensation": {"type": "object", "description": "How undoing it went.", "required": ["trigger", "started_at", "has_ended"],
                "properties": {"trigger": text(), "started_at": time(), "has_ended": {"type": "boolean"}, "invocation_id": text(),
                    "error": {"type": ["object", "null"], "description": "Why it could not be undone."}}},
            "operations": {"type": "array", "description": "What a workflow has recorded; only of one that is read by its id.", "items": operation},
            "operations_total": {"type": "integer", "description": "How many there are, where not all are listed."},
            "imported_by": {"type": "string", "description": "Who put the run into this store, if it came out of a file: it says what the file said."},
            "imported_at": time(),
            "payloads_hidden": {"type": "boolean", "description": "The caller may not read payloads."}}});
    let required: Vec<Value> = also.iter().map(|(name, _)| Value::from(*name)).collect();
    if let Some(names) = schema["required"].as_array_mut() {
        names.extend(required);
    }
    for (name, member) in also {
        schema["properties"][*name] = member.clone();
    }
    schema
}
