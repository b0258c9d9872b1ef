//! Parameters of path, query and headers.

use serde_json::{Value, json};
use servo_entrypoint::cache::KEY_CHARS_MAX;
use servo_entrypoint::{DefinitionStatus, InvocationStatus, LIMIT_DEFAULT, LIMIT_MAX, OwnerType};

use super::operations::Operation;

pub(super) fn of(operation: &Operation) -> Vec<Value> {
    let mut all: Vec<Value> = in_path(operation.path).map(|name| path(operation, name)).collect();
    match operation.id {
        "listEntrypoints" => {
            all.extend(list());
            all.push(query(
                "entrypoint_id_prefix",
                "Addresses that begin so; may end in `*`.",
                json!({"type": "string"}),
            ));
            all.push(query("tenant_id", "The caller's own, or nothing is found.", json!({"type": "string"})));
            let statuses = DefinitionStatus::ALL.map(DefinitionStatus::as_str);
            all.push(query("status", "In this status.", json!({"type": "string", "enum": statuses})));
            let owners = OwnerType::ALL.map(OwnerType::as_str);
            all.push(query("owner_type", "Owned so.", json!({"type": "string", "enum": owners})));
            all.push(query("runtime", "Of this adapter.", json!({"type": "string"})));
            all.push(query("tags", "With all of these tags, separated by commas.", json!({"type": "string"})));
        }
        "listInvocations" => {
            all.extend(list());
            all.extend(whose());
            let statuses = InvocationStatus::ALL.map(InvocationStatus::as_str);
            all.push(query("status", "In this status.", json!({"type": "string", "enum": statuses})));
            all.push(query("mode", "Started so.", json!({"type": "string", "enum": ["sync", "async"]})));
            all.push(query("correlation_id", "Started under this correlation id.", json!({"type": "string"})));
        }
        "countInvocations" => all.extend(whose()),
        "getInvocationTimeline" => {
            all.extend(cut());
            all.push(header(
                "Last-Event-ID",
                "Where a stream that broke off was.",
                json!({"type": "integer", "minimum": 0}),
            ));
        }
        "startInvocation" => {
            let schema = json!({"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX});
            all.push(header("Idempotency-Key", "The same key does not start a second run.", schema));
        }
        _ => {}
    }
    if operation.is_serverless() {
        let schema = json!({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"});
        all.push(header("X-Correlation-Id", "Kept with what the request causes.", schema));
    }
    all
}

fn in_path(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

fn path(operation: &Operation, name: &str) -> Value {
    let description = match operation.tag {
        "entrypoints" => "The opaque id of the registration, such as `ep_…`, or a short name such as `vendor.app.tax`.",
        "invocations" => "The id of the invocation, such as `inv_…`.",
        "types" => "The GTS id of the type.",
        _ => super::v1::part(operation, name),
    };
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": {"type": "string", "minLength": 1}})
}

fn list() -> Vec<Value> {
    let mut all = vec![
        query(
            "$filter",
            "eq, ne, lt, le, gt, ge, in, and, or, not; texts in single quotes, times bare.",
            json!({"type": "string", "maxLength": 4096}),
        ),
        query(
            "$orderby",
            "Fields with `asc` or `desc`, separated by commas.",
            json!({"type": "string", "maxLength": 512}),
        ),
    ];
    all.extend(cut());
    all
}

fn cut() -> Vec<Value> {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT});
    vec![
        query("limit", "Items per page.", limit),
        query(
            "cursor",
            "From `page_info` of an earlier page of the same list.",
            json!({"type": "string", "maxLength": 4096}),
        ),
    ]
}

fn whose() -> Vec<Value> {
    vec![
        query(
            "entrypoint_id",
            "Of this entrypoint: its address, or a short name such as `vendor.app.tax`, which means all its versions.",
            json!({"type": "string"}),
        ),
        query("tenant_id", "The caller's own, or nothing is found.", json!({"type": "string"})),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
pub(super) fn query(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
pub(super) fn header(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "description": description, "schema": schema})
}
