//! Bodies of requests about invocations and statuses: read field by field, so that one answer names everything that is wrong.
//! Members that nobody knows are refused: a misspelt `dry_run` must not start a run.

use serde_json::{Map, Value};
use servo_model::invocation::Failure;
use servo_model::limits::{ID_CHARS_MAX, LABEL_CHARS_MAX, STEP_ID_CHARS_MAX, fits};

use super::issue::{choice, unknown};
use super::{ISSUES_MAX, kinds};
use crate::gts::ID_BYTES_MAX;
use crate::types::{
    EntrypointStatusAction, InvocationControlAction, InvocationMode, InvocationRequest, InvocationSignal,
    ValidationError, ValidationIssue,
};

/// `POST /invocations`. The key comes from a header, and the address is looked up later.
pub fn start(document: &Value) -> Result<InvocationRequest, Failure> {
    let mut body = Body::new(document)?;
    let entrypoint_id = body.text("entrypoint_id", ID_BYTES_MAX);
    let mode = body.word("mode", &["sync", "async"]).and_then(|mode| InvocationMode::parse(&mode));
    let dry_run = match body.members.get("dry_run") {
        None => false,
        Some(Value::Bool(dry_run)) => *dry_run,
        Some(_) => {
            body.fault(kinds::SCHEMA_MISMATCH, "dry_run", "`dry_run` is true or false");
            false
        }
    };
    let params = body.members.get("params").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    body.end(&["entrypoint_id", "mode", "params", "dry_run"])?;
    Ok(InvocationRequest { entrypoint_id, mode, params, dry_run, idempotency_key: None })
}

/// `POST /entrypoints/{id}:status`.
pub fn status_action(document: &Value) -> Result<EntrypointStatusAction, Failure> {
    let mut body = Body::new(document)?;
    let names = EntrypointStatusAction::ALL.map(EntrypointStatusAction::as_str);
    let action = body.needed_word("action", &names);
    body.end(&["action"])?;
    EntrypointStatusAction::parse(&action).ok_or_else(|| crate::errors::internal("an action was not read"))
}

/// `POST /invocations/{id}:control`.
pub fn control_action(document: &Value) -> Result<InvocationControlAction, Failure> {
    action_beside(document, &[])
}

/// `POST /invocations:bulk`: the action, among members that say on which runs.
pub fn bulk_action(document: &Value) -> Result<InvocationControlAction, Failure> {
    action_beside(document, &["filter", "max_items", "per_second", "dry_run", "cursor"])
}

fn action_beside(document: &Value, others: &[&str]) -> Result<InvocationControlAction, Failure> {
    use InvocationControlAction as A;
    let mut body = Body::new(document)?;
    let name = body.needed_word("action", &A::NAMES);
    let action = match name.as_str() {
        "suspend" => A::Suspend,
        "resume" => A::Resume,
        "retry" => A::Retry,
        "replay" => A::Replay,
        "retry_step" => A::RetryStep { step_id: body.text("step_id", STEP_ID_CHARS_MAX) },
        "skip_step" => A::SkipStep { step_id: body.text("step_id", STEP_ID_CHARS_MAX) },
        // What is no word at all has been reported.
        _ => A::Cancel,
    };
    body.end(&[&["action", "step_id"], others].concat())?;
    Ok(action)
}

/// `POST /invocations/{id}:signal`.
pub fn signal(document: &Value) -> Result<InvocationSignal, Failure> {
    let mut body = Body::new(document)?;
    let signal_id = body.text("signal_id", ID_CHARS_MAX);
    let name = body.text("name", LABEL_CHARS_MAX);
    let payload = body.members.get("payload").cloned().unwrap_or(Value::Null);
    body.end(&["signal_id", "name", "payload"])?;
    Ok(InvocationSignal { signal_id, name, payload })
}

struct Body<'a> {
    members: &'a Map<String, Value>,
    issues: Vec<ValidationIssue>,
}

impl<'a> Body<'a> {
    fn new(document: &'a Value) -> Result<Self, Failure> {
        match document.as_object() {
            Some(members) => Ok(Self { members, issues: Vec::new() }),
            None => {
                let issue = ValidationIssue::new(kinds::SCHEMA_MISMATCH, "$", "the body is a JSON object");
                Err(ValidationError::new(vec![issue]).into())
            }
        }
    }

    fn fault(&mut self, kind: &str, name: &str, message: impl Into<String>) {
        self.issues.push(ValidationIssue::new(kind, format!("$.{name}"), message));
    }

    /// A text that must be there and not be empty.
    fn text(&mut self, name: &str, max: usize) -> String {
        match self.members.get(name) {
            None => self.fault(kinds::MISSING_FIELD, name, format!("the field `{name}` is required")),
            Some(Value::String(text)) if text.is_empty() || !fits(text, max) => {
                self.fault(kinds::LIMIT_EXCEEDED, name, format!("`{name}` has 1 to {max} characters"));
            }
            Some(Value::String(text)) => return text.clone(),
            Some(_) => self.fault(kinds::SCHEMA_MISMATCH, name, format!("`{name}` is a text")),
        }
        String::new()
    }

    /// One of some words, if it is there.
    fn word(&mut self, name: &str, words: &[&str]) -> Option<String> {
        let value = self.members.get(name)?;
        match value.as_str().filter(|word| words.contains(word)) {
            Some(word) => Some(word.to_owned()),
            None => {
                let words: Vec<_> = words.iter().map(|word| Value::from(*word)).collect();
                self.issues.push(choice(&format!("$.{name}"), words.iter(), Some(value)));
                None
            }
        }
    }

    fn needed_word(&mut self, name: &str, words: &[&str]) -> String {
        if !self.members.contains_key(name) {
            let message = format!("the field `{name}` is required");
            let issue = ValidationIssue::new(kinds::MISSING_FIELD, format!("$.{name}"), message);
            self.issues.push(issue.suggest(format!("use one of: {}", words.join(", "))));
        }
        self.word(name, words).unwrap_or_default()
    }

    /// Refuses all that was found wrong, and what is none of these members.
    fn end(mut self, known: &[&str]) -> Result<(), Failure> {
        for name in self.members.keys().filter(|name| !known.contains(&name.as_str())).take(ISSUES_MAX) {
            self.issues.push(unknown("$", name, known.iter().copied()));
        }
        if self.issues.is_empty() { Ok(()) } else { Err(ValidationError::new(self.issues).into()) }
    }
}
