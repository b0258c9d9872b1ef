//! S14: what every answer of the real binary must be like. The words are those of the server's own tests.

use reqwest::header::HeaderMap;
use serde_json::Value;

#[path = "../../../../../../crates/server/tests/it/lint/words.rs"]
mod words;

const SERVERLESS: &str = "/api/serverless-runtime/v1";
/// All that a server fault may say, in either form of problems.
const FAULT_MEMBERS: [&str; 9] =
    ["code", "detail", "instance", "requestId", "retry_after_seconds", "status", "title", "trace_id", "type"];

/// What is wrong with an answer, if something is.
pub(super) fn fault(path: &str, status: u16, headers: &HeaderMap, text: &str) -> Option<String> {
    let path = path.split('?').next().unwrap_or_default();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header("x-request-id").len() != 36 || header("x-correlation-id").is_empty() {
        return Some("no request id or correlation id".to_owned());
    }
    if header("x-content-type-options") != "nosniff" {
        return Some("its type may be guessed".to_owned());
    }
    if status < 400 || path == "/readyz" {
        return None;
    }
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    // An address is the caller's own words.
    if let Some(word) = words::leak(&text.replace(path, "")) {
        return Some(format!("it says {word}"));
    }
    if words::is_lambda(path) {
        return words::lambda_fault(status, header("x-amzn-errortype"), &document);
    }
    problem_fault(path, status, header("content-type"), &document)
}

fn problem_fault(path: &str, status: u16, kind: &str, problem: &Value) -> Option<String> {
    let wrong = |what: &str| Some(format!("{what} is wrong or missing"));
    if kind != "application/problem+json" {
        return wrong("its media type");
    }
    let text = |name: &str| problem[name].as_str().unwrap_or_default();
    let scheme = if path.starts_with(SERVERLESS) { "gts://" } else { "urn:servo:error:" };
    if text("code").is_empty() || text("type") != format!("{scheme}{}", text("code")) {
        return wrong("its type");
    }
    if problem["status"] != status || text("title").is_empty() || text("instance") != path {
        return wrong("status, title or instance");
    }
    let members = problem.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let mut more = members.filter(|name| !FAULT_MEMBERS.contains(name));
    match more.next() {
        Some(name) if status >= 500 => Some(format!("a server fault says {name}")),
        _ => None,
    }
}

/// S14: the control. What passes is red as soon as something of the inside shows.
#[test]
fn a_leak_turns_the_linter_red() {
    use reqwest::header::HeaderValue;
    use serde_json::json;
    let headers = |more: &[(&'static str, &'static str)]| {
        let mut headers = HeaderMap::new();
        let common = [
            ("x-request-id", "00000000-0000-0000-0000-000000000000"),
            ("x-correlation-id", "c"),
            ("x-content-type-options", "nosniff"),
        ];
        for (name, value) in common.iter().chain(more) {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        headers
    };
    let problem = headers(&[("content-type", "application/problem+json")]);
    let run = "/v1/runs/inv_1";
    let missing = |detail: &str| {
        json!({"type": "urn:servo:error:RUN_NOT_FOUND", "code": "RUN_NOT_FOUND", "title": "No such run", "status": 404,
            "instance": run, "detail": detail})
    };
    let red = |path: &str, status: u16, headers: &HeaderMap, document: &Value| {
        fault(path, status, headers, &document.to_string()).is_some()
    };
    assert!(!red(run, 404, &problem, &missing("not here")) && !red("/v1/runs/inv_1?x=1", 404, &problem, &missing("")));
    for leak in
        ["no such table: runs", "could not run SELECT 1", "panicked at", "store/src/lib.rs:7", "servo_store::Error"]
    {
        assert!(red(run, 404, &problem, &missing(leak)), "{leak}");
    }
    assert!(red(run, 404, &headers(&[]), &missing("")), "no media type");
    assert!(red(run, 404, &HeaderMap::new(), &missing("")), "no ids");
    assert!(red(run, 409, &problem, &missing("")), "another status");
    let mut broken = missing("");
    broken["status"] = 500.into();
    assert!(!red(run, 500, &problem, &broken));
    broken["cause"] = "it broke".into();
    assert!(red(run, 500, &problem, &broken), "a fault with a cause");
    let lambda = headers(&[("content-type", "application/json"), ("x-amzn-errortype", "ResourceNotFoundException")]);
    let said = |text: &str| json!({"Type": "User", "Message": text, "message": text});
    let invoke = "/2015-03-31/functions/f/invocations";
    assert!(!red(invoke, 404, &lambda, &said("Function not found: f")));
    assert!(red(invoke, 404, &lambda, &said("no such column: f")) && red(invoke, 404, &problem, &said("none")));
}
