//! The response linter: every answer of every test goes through it.

pub(crate) mod described;
pub(crate) mod words;

use servo_model::codes;

use crate::harness::Answer;
use words::FORBIDDEN;

/// Statuses of runs and steps in the engine's spelling; the serverless runtime API has words of its own.
const ENGINE_WORDS: [&str; 9] =
    ["PENDING", "APPROVED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED", "SUCCESS", "SKIPPED"];
/// All that a server fault may say.
const FAULT_FIELDS: [&str; 6] = ["code", "instance", "requestId", "status", "title", "type"];
/// The same of the serverless runtime API, whose common set has a detail. It is a sentence of the table below.
const SERVERLESS_FAULT_FIELDS: [&str; 8] =
    ["code", "detail", "instance", "retry_after_seconds", "status", "title", "trace_id", "type"];
/// What a server fault says to whoever called: that it was not them, and what to do. Never what went wrong inside.
const FAULT_DETAILS: [&str; 3] = [
    "the service could not do this now; try again",
    "the invocation's log cannot be read, so it was set aside; whoever operates the server finds the reason in its alerts",
    "the entrypoint's rate limiter is not there any more; register its next version with another one",
];
/// The tenants of these tests.
const TENANTS: [&str; 2] = ["acme", "globex"];

/// S14: a server fault has no member beyond these, and names nobody.
#[track_caller]
fn check_fault(answer: &Answer, path: &str, known: &[&str]) {
    for name in answer.json.as_object().unwrap().keys() {
        assert!(known.contains(&name.as_str()), "a server fault says too much: {}", answer.text);
    }
    let without_instance = answer.text.replace(path, "");
    for tenant in TENANTS {
        assert!(!without_instance.contains(tenant), "a server fault names {tenant}: {}", answer.text);
    }
}

/// S14: no refusal tells one tenant another's name, unless the caller said it first. `caller` is the key of the request.
#[track_caller]
pub(crate) fn check_foreign(answer: &Answer, caller: &str, sent: &str) {
    if answer.status.as_u16() < 400 || caller.contains("platform-admin") {
        return;
    }
    let Some(own) = TENANTS.into_iter().find(|tenant| caller.starts_with(&format!("{tenant}-"))) else { return };
    for foreign in TENANTS.into_iter().filter(|tenant| *tenant != own && !sent.contains(tenant)) {
        assert!(!answer.text.contains(foreign), "{own} is told of {foreign}: {}", answer.text);
    }
}

/// SR-329, SR-330, SR-343: every refusal of the serverless runtime API has the common set, with the values it must have.
#[track_caller]
fn check_serverless(answer: &Answer, path: &str) {
    let (status, problem) = (answer.status.as_u16(), &answer.json);
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = |name: &str| problem[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", answer.text));
    assert_eq!(problem["status"], status);
    assert_eq!(text("type"), format!("gts://{}", text("code")));
    assert_eq!(text("instance"), path);
    assert_eq!(text("trace_id"), header("x-request-id"));
    assert!(!text("detail").is_empty());
    let kind = servo_entrypoint::errors::find(text("code")).unwrap_or_else(|| panic!("{} is no error", text("code")));
    assert_eq!(kind.title, text("title"));
    // The framework's own refusals have statuses that the published table lacks.
    assert!(kind.status == status || matches!(status, 405 | 413 | 503), "{}", answer.text);
    let without_instance = answer.text.replace(path, "");
    for word in FORBIDDEN.into_iter().chain(ENGINE_WORDS) {
        assert!(!without_instance.contains(word), "{path} says {word}: {}", answer.text);
    }
    if status >= 500 {
        check_fault(answer, path, &SERVERLESS_FAULT_FIELDS);
        assert!(FAULT_DETAILS.contains(&text("detail")), "a server fault says too much: {}", answer.text);
    }
    match status {
        401 => assert_eq!(header("www-authenticate"), "Bearer"),
        405 => assert!(!header("allow").is_empty(), "{path} does not say which methods it takes"),
        // SR-172, SR-331: both lists, pair by pair.
        422 => {
            let (errors, issues) = (problem["errors"].as_array().unwrap(), problem["issues"].as_array().unwrap());
            assert!(!issues.is_empty() && errors.len() == issues.len(), "{}", answer.text);
            for (error, issue) in errors.iter().zip(issues) {
                assert_eq!((&error["path"], &error["message"]), (&issue["location"]["path"], &issue["message"]));
            }
        }
        429 | 503 => assert_eq!(header("retry-after"), problem["retry_after_seconds"].to_string()),
        _ => {}
    }
}

/// All that a fault of the Lambda API may say.
const LAMBDA_FAULTS: [&str; 3] = [
    "the service could not do this now; try again",
    "the function's registration cannot be read",
    "the execution did not end within 15 minutes; it goes on",
];

/// S14: a refusal of the Lambda API has AWS's form, and says as little of the inside as any other.
#[track_caller]
pub(crate) fn check_lambda(answer: &Answer, path: &str) {
    let status = answer.status.as_u16();
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert_eq!(header("content-type"), "application/json", "{path} {}", answer.text);
    let fault = words::lambda_fault(status, header("x-amzn-errortype"), &answer.json);
    assert_eq!(fault, None, "{path}: {}", answer.text);
    assert_eq!(words::leak(&answer.text), None, "{path}: {}", answer.text);
    if status >= 500 {
        let said = answer.json["Message"].as_str().unwrap_or_default();
        let is_title = codes::ALL.iter().any(|code| code.status >= 500 && code.title == said);
        assert!(is_title || LAMBDA_FAULTS.contains(&said), "a server fault says too much: {}", answer.text);
    }
    if status == 429 {
        assert!(header("retry-after").parse::<u64>().is_ok(), "{path} does not say when to try again");
        assert!(answer.json["Reason"].is_string(), "{path}: {}", answer.text);
    }
}

#[track_caller]
pub(crate) fn check(answer: &Answer, path: &str) {
    let status = answer.status.as_u16();
    let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert!(header("x-request-id").len() == 36, "{path} has no request id");
    assert!(!header("x-correlation-id").is_empty(), "{path} has no correlation id");
    assert_eq!(header("x-content-type-options"), "nosniff");
    if status < 400 || path == "/readyz" {
        return;
    }
    if words::is_lambda(path) {
        return check_lambda(answer, path);
    }
    assert_eq!(header("content-type"), "application/problem+json", "{path} {}", answer.text);
    if path.starts_with("/api/serverless-runtime/v1") {
        return check_serverless(answer, path);
    }
    let problem = &answer.json;
    let text = |name: &str| problem[name].as_str().unwrap_or_else(|| panic!("no {name} in {}", answer.text));
    assert_eq!(problem["status"], status);
    assert_eq!(text("type"), format!("urn:servo:error:{}", text("code")));
    assert_eq!(text("instance"), path);
    assert_eq!(text("requestId"), header("x-request-id"));
    let known = codes::ALL.iter().find(|code| code.code == text("code"));
    let known = known.unwrap_or_else(|| panic!("{} is no code", text("code")));
    assert_eq!((known.status, known.title), (status, text("title")));
    let without_instance = answer.text.replace(path, "");
    for word in FORBIDDEN {
        assert!(!without_instance.contains(word), "{path} says {word}: {}", answer.text);
    }
    if status >= 500 {
        let mut fields: Vec<_> = problem.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, FAULT_FIELDS, "a server fault says too much: {}", answer.text);
        check_fault(answer, path, &FAULT_FIELDS);
    }
    match status {
        401 => assert_eq!(header("www-authenticate"), "Bearer"),
        405 => assert!(!header("allow").is_empty(), "{path} does not say which methods it takes"),
        429 | 503 => assert!(header("retry-after").parse::<u64>().is_ok(), "{path} does not say when to try again"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, HeaderValue};
    use serde_json::{Value, json};

    use super::*;

    const REQUEST: &str = "00000000-0000-0000-0000-000000000000";
    const RUN: &str = "/v1/runs/inv_1";
    const INVOCATION: &str = "/api/serverless-runtime/v1/invocations/inv_1";

    /// An answer as a handler might write it.
    fn answer(status: u16, json: Value) -> Answer {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-request-id", REQUEST),
            ("x-correlation-id", "c"),
            ("x-content-type-options", "nosniff"),
            ("content-type", "application/problem+json"),
            ("retry-after", "1"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Answer { status: StatusCode::from_u16(status).unwrap(), headers, text: json.to_string(), json }
    }

    fn of_v1(code: codes::Code) -> Value {
        json!({
            "type": format!("urn:servo:error:{}", code.code), "title": code.title, "status": code.status,
            "code": code.code, "instance": RUN, "requestId": REQUEST,
        })
    }

    fn of_serverless(id: &str, detail: &str) -> Value {
        let kind = servo_entrypoint::errors::find(id).unwrap();
        json!({
            "type": format!("gts://{id}"), "title": kind.title, "status": kind.status, "code": id,
            "instance": INVOCATION, "trace_id": REQUEST, "detail": detail,
        })
    }

    fn is_red(json: &Value, path: &str) -> bool {
        let status = json["status"].as_u64().unwrap().try_into().unwrap();
        catch_unwind(AssertUnwindSafe(|| check(&answer(status, json.clone()), path))).is_err()
    }

    const LEAKS: [&str; 9] = [
        "could not run SELECT document FROM runs WHERE tenant = $1",
        "no such table: runs",
        "duplicate key value breaks the constraint runs_pkey",
        "cannot open /var/lib/servo/servo.db",
        "cannot open /etc/servo.toml",
        "thread 'main' panicked at",
        "crates/store/src/mem.rs:7:1",
        "called `Option::unwrap()` on a `None` value",
        "servo_store::Error::Unavailable",
    ];

    /// S14: the control of the linter. Answers as they are pass, and the same with a leak do not.
    #[test]
    fn a_leak_turns_the_linter_red() {
        use servo_entrypoint::errors;
        let faults = [(of_v1(codes::INTERNAL), RUN), (of_serverless(errors::INTERNAL, FAULT_DETAILS[0]), INVOCATION)];
        let (mut missing, path) = (of_v1(codes::RUN_NOT_FOUND), RUN);
        missing["detail"] = "there is no such run".into();
        let refusals = [(missing, path), (of_serverless(errors::NOT_FOUND, "there is no such invocation"), INVOCATION)];
        for (clean, path) in faults.iter().chain(&refusals) {
            assert!(!is_red(clean, path), "{clean}");
            for leak in LEAKS {
                let mut leaking = clean.clone();
                leaking["detail"] = leak.into();
                assert!(is_red(&leaking, path), "{leaking}");
            }
        }
        // A fault says nothing of its own, not even harmless, and nobody's name.
        for (clean, path) in &faults {
            for (member, value) in [
                ("detail", "the run of acme is stuck"),
                ("detail", "it broke"),
                ("cause", "timeout"),
                ("tenantId", "acme"),
            ] {
                let mut leaking = clean.clone();
                leaking[member] = value.into();
                assert!(is_red(&leaking, path), "{leaking}");
            }
        }
    }

    /// A refusal of the Lambda API as a handler might write it.
    fn of_lambda(status: u16, name: &'static str, body: Value) -> Answer {
        let mut answer = answer(status, body);
        answer.headers.insert("content-type", HeaderValue::from_static("application/json"));
        if !name.is_empty() {
            answer.headers.insert("x-amzn-errortype", HeaderValue::from_static(name));
        }
        answer
    }

    /// S14: the same control for the form of the Lambda API.
    #[test]
    fn a_leak_in_lambdas_form_turns_the_linter_red() {
        const PATH: &str = "/2015-03-31/functions/f/invocations";
        let is_red = |answer: &Answer| catch_unwind(AssertUnwindSafe(|| check(answer, PATH))).is_err();
        let body = |whose: &str, message: &str| json!({"Type": whose, "Message": message, "message": message});
        let missing = body("User", "Function not found: f");
        let fault = body("Service", LAMBDA_FAULTS[0]);
        let clean = of_lambda(404, "ResourceNotFoundException", missing.clone());
        assert!(!is_red(&clean) && !is_red(&of_lambda(500, "ServiceException", fault.clone())));
        for leak in LEAKS {
            assert!(is_red(&of_lambda(404, "ResourceNotFoundException", body("User", leak))), "{leak}");
            assert!(is_red(&of_lambda(500, "ServiceException", body("Service", leak))), "{leak}");
        }
        assert!(is_red(&of_lambda(500, "ServiceException", body("Service", "it broke"))), "a sentence of its own");
        for (name, wrong) in [
            ("", missing.clone()),
            ("not a name", missing.clone()),
            ("ResourceNotFoundException", body("Service", "Function not found: f")),
            ("ResourceNotFoundException", json!({"Type": "User", "Message": "a", "message": "b"})),
            ("ResourceNotFoundException", json!({"Type": "User", "message": "a"})),
            ("ResourceNotFoundException", json!({"Message": "a", "message": "a"})),
            ("ResourceNotFoundException", json!({"Type": "User", "Message": "a", "message": "a", "tenant": "acme"})),
        ] {
            assert!(is_red(&of_lambda(404, name, wrong.clone())), "{name} {wrong}");
        }
        assert!(is_red(&of_lambda(429, "TooManyRequestsException", body("User", "too many"))), "no reason");
        let mut problem = clean;
        problem.headers.insert("content-type", HeaderValue::from_static("application/problem+json"));
        assert!(is_red(&problem), "the other APIs' form");
    }

    #[test]
    fn a_foreign_tenants_name_turns_the_linter_red() {
        let is_red = |json: &Value, caller: &str, sent: &str| {
            catch_unwind(AssertUnwindSafe(|| check_foreign(&answer(404, json.clone()), caller, sent))).is_err()
        };
        let mut leaking = of_v1(codes::RUN_NOT_FOUND);
        assert!(!is_red(&leaking, "acme-viewer", ""));
        leaking["detail"] = "the run belongs to globex".into();
        assert!(is_red(&leaking, "acme-viewer", "") && is_red(&leaking, "acme-admin", ""));
        for (caller, sent) in [("globex-viewer", ""), ("acme-platform-admin", ""), ("acme-viewer", "?tenantId=globex")]
        {
            assert!(!is_red(&leaking, caller, sent), "{caller} {sent}");
        }
    }
}
