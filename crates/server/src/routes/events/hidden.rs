//! Events as those see them who may not read payloads: what happened and when, without what went in and came out.

use serde_json::Value;

/// Members of events, and of the operations and errors in them, that user code or a caller filled.
const PAYLOADS: [&str; 5] = ["input", "payload", "result", "ErrorData", "StackTrace"];

/// The document without payloads. One that is not JSON is damaged, and says nothing at all.
pub(super) fn without_payloads(document: &str) -> String {
    let mut event: Value = serde_json::from_str(document).unwrap_or_default();
    if let Value::Object(members) = &mut event {
        strip(members);
        let steps = members.get_mut("plan").and_then(|plan| plan.get_mut("steps")).and_then(Value::as_array_mut);
        for step in steps.into_iter().flatten().filter_map(Value::as_object_mut) {
            step.remove("with");
        }
        if let Some(error) = members.get_mut("error").and_then(Value::as_object_mut) {
            strip(error);
        }
        members.insert("payloadsHidden".to_owned(), true.into());
    }
    event.to_string()
}

fn strip(members: &mut serde_json::Map<String, Value>) {
    for name in PAYLOADS {
        members.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_happened_stays_and_what_it_was_about_goes() {
        let event = json!({"eventType": "OperationUpdated", "runSeq": 4, "name": "charge", "payload": "4111",
            "input": "4111", "result": "4111", "plan": {"steps": [{"stepId": "a", "with": {"card": "4111"}}]},
            "error": {"ErrorType": "Declined", "ErrorMessage": "no", "ErrorData": "4111", "StackTrace": ["4111"]}});
        let shown: Value = serde_json::from_str(&without_payloads(&event.to_string())).unwrap();
        assert!(!shown.to_string().contains("4111"), "{shown}");
        assert_eq!((&shown["name"], &shown["runSeq"]), (&json!("charge"), &json!(4)));
        assert_eq!((&shown["error"]["ErrorMessage"], &shown["payloadsHidden"]), (&json!("no"), &json!(true)));
        assert_eq!(shown["plan"]["steps"][0]["stepId"], "a");
        assert_eq!(without_payloads("4111, broken"), "null");
    }
}
