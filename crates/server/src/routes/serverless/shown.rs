//! Records as callers get them: with `id` beside the longer name, and without payloads for those who may not read them.

use serde::Serialize;
use serde_json::{Map, Value, json};
use servo_entrypoint::{InvocationRecord, InvocationResult, Page, RuntimeErrorPayload};
use servo_model::SecurityContext;

use crate::payloads::Payloads;

/// As JSON. A record of plain fields always serialises.
fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

pub(super) fn record(ctx: &SecurityContext, record: &InvocationRecord) -> Value {
    let mut shown = object(record);
    shown.insert("id".to_owned(), record.invocation_id.clone().into());
    if Payloads::of(ctx) == Payloads::Hidden {
        for name in ["params", "result"] {
            shown.insert(name.to_owned(), Value::Null);
        }
        if let Some(failure) = &record.error {
            shown.insert("error".to_owned(), error(ctx, failure));
        }
        shown.insert("payloads_hidden".to_owned(), true.into());
    }
    Value::Object(shown)
}

pub(super) fn result(ctx: &SecurityContext, result: &InvocationResult) -> Value {
    json!({"record": record(ctx, &result.record), "dry_run": result.dry_run, "cached": result.cached})
}

pub(super) fn page<T>(page: &Page<T>, show: impl Fn(&T) -> Value) -> Value {
    json!({"items": page.items.iter().map(show).collect::<Vec<_>>(), "page_info": page.page_info})
}

/// What a caller without the right to payloads may know of an error inside an answer.
pub(super) fn error(ctx: &SecurityContext, error: &RuntimeErrorPayload) -> Value {
    let mut shown = object(error);
    if Payloads::of(ctx) == Payloads::Hidden {
        shown.insert("details".to_owned(), Value::Null);
    }
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use servo_model::Role;

    fn failed() -> InvocationRecord {
        serde_json::from_value(json!({
            "invocation_id": "inv_1", "entrypoint_id": "gts.a.b.c.v1~", "entrypoint_version": "1.0.0", "tenant_id": "t",
            "status": "failed", "mode": "sync", "params": {"card": "4111"}, "result": null,
            "error": {"error_type_id": "gts.x.y.z.v1~", "message": "no", "category": "retryable", "details": {"card": "4111"}},
            "timestamps": {"created_at": "2026-01-20T10:30:15.123Z", "started_at": null, "suspended_at": null, "finished_at": null},
            "observability": {"correlation_id": "c", "trace_id": null, "span_id": null, "metrics": {"memory_limit_mb": 0}},
        }))
        .unwrap()
    }

    #[test]
    fn payloads_are_for_those_who_may_read_them() {
        let with = |role| SecurityContext { roles: vec![role], ..SecurityContext::development("c".to_owned()) };
        let hidden = record(&with(Role::Viewer), &failed());
        assert!(!hidden.to_string().contains("4111"), "{hidden}");
        assert_eq!((&hidden["payloads_hidden"], &hidden["id"]), (&json!(true), &json!("inv_1")));
        let open = record(&with(Role::Operator), &failed());
        assert_eq!(open["params"], json!({"card": "4111"}));
        assert_eq!(open.get("payloads_hidden"), None);
    }
}
