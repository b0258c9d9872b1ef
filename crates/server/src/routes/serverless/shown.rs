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
        if let (Some(undoing), Some(failure)) =
            (shown.get_mut("compensation"), record.compensation.as_ref().and_then(|undoing| undoing.error.as_ref()))
        {
            undoing["error"] = error(ctx, failure);
        }
        shown.insert("payloads_hidden".to_owned(), true.into());
    }
    Value::Object(shown)
}

/// The answer to a start. It is given often, so that what is shown whole is written without a copy of it.
#[derive(Serialize)]
pub(super) struct Started<'a> {
    record: Shown<'a>,
    dry_run: bool,
    cached: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Whole {
        id: &'a str,
        #[serde(flatten)]
        record: &'a InvocationRecord,
    },
    Partly(Value),
}

pub(super) fn result<'a>(ctx: &SecurityContext, result: &'a InvocationResult) -> Started<'a> {
    let InvocationResult { record: shown, dry_run, cached, warnings, .. } = result;
    let record = match Payloads::of(ctx) {
        Payloads::Hidden => Shown::Partly(record(ctx, shown)),
        Payloads::Shown => Shown::Whole { id: &shown.invocation_id, record: shown },
    };
    Started { record, dry_run: *dry_run, cached: *cached, warnings }
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
        for role in [Role::Viewer, Role::Operator] {
            let (record_of, warnings) = (failed(), Vec::new());
            let started =
                InvocationResult { record: record_of, dry_run: false, cached: true, repeated: true, warnings };
            let answer = serde_json::to_value(result(&with(role), &started)).unwrap();
            assert_eq!(answer, json!({"record": record(&with(role), &failed()), "dry_run": false, "cached": true}));
        }
    }
}
