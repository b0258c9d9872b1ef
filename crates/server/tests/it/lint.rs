//! The response linter: every answer of every test goes through it.

pub(crate) mod described;

use servo_model::codes;

use crate::harness::Answer;

/// Nothing of the inside may show.
const FORBIDDEN: [&str; 16] = [
    "panicked",
    "backtrace",
    "stack trace",
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE ",
    "sqlite",
    "postgres",
    ".rs:",
    "src/",
    concat!("/ho", "me/"),
    "/tmp/",
    "servo_",
    "unwrap",
    "rusqlite",
];
/// Statuses of runs and steps in the engine's spelling; the serverless runtime API has words of its own.
const ENGINE_WORDS: [&str; 9] =
    ["PENDING", "APPROVED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED", "SUCCESS", "SKIPPED"];
/// All that a server fault may say.
const FAULT_FIELDS: [&str; 6] = ["code", "instance", "requestId", "status", "title", "type"];

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
    }
    match status {
        401 => assert_eq!(header("www-authenticate"), "Bearer"),
        405 => assert!(!header("allow").is_empty(), "{path} does not say which methods it takes"),
        429 | 503 => assert!(header("retry-after").parse::<u64>().is_ok(), "{path} does not say when to try again"),
        _ => {}
    }
}
