//! One case file.

use serde_json::Value;

use crate::logs::LogRule;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CaseError(String);

impl CaseError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

#[derive(Debug, Clone)]
pub struct Case {
    pub input: Value,
    /// Started without waiting for its end.
    pub is_async: bool,
    pub actions: Vec<Action>,
    /// None if the execution is only watched until it has the expected events.
    pub status: Option<String>,
    /// None if any result will do.
    pub result: Option<Value>,
    /// By event id.
    pub events: Vec<(u64, Value)>,
    pub logs: Vec<LogRule>,
}

/// What the outside party of a callback does.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// `*` for whichever callback is next.
    pub callback_name: String,
    pub answer: Answer,
    /// After the callback was seen.
    pub delay_seconds: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Success(Option<Value>),
    Failure(Value),
    Heartbeat,
}

impl Case {
    /// `generate` makes a text of so many letters and digits, for the case's variables.
    pub fn parse(text: &str, mut generate: impl FnMut(usize) -> String) -> Result<Self, CaseError> {
        let mut file: Value = serde_norway::from_str(text).map_err(|error| CaseError::new(error.to_string()))?;
        let variables = variables(&file["Variables"], &mut generate)?;
        substitute(&mut file, &variables);
        let mut case = Self {
            input: Value::Null,
            is_async: false,
            actions: Vec::new(),
            status: None,
            result: None,
            events: Vec::new(),
            logs: Vec::new(),
        };
        for (key, value) in file.as_object().ok_or_else(|| CaseError::new("the file is no mapping"))? {
            match key.as_str() {
                "Input" => case.input = value.clone(),
                "AsyncInvoke" => case.is_async = value == &Value::Bool(true),
                "CallbackActions" => case.actions = list(key, value, action)?,
                "ExpectedResult" => {
                    case.status = value["ExecutionStatus"].as_str().map(str::to_owned);
                    case.result = value.get("Result").cloned();
                }
                "ExpectedExecutionHistory" => case.events = list(key, value, event)?,
                "ExpectedLogs" => case.logs = list(key, value, LogRule::parse)?,
                // Prose, and what the history says anyway.
                "description"
                | "handler"
                | "invocations"
                | "async"
                | "optional"
                | "Variables"
                | "AsyncConfig"
                | "DefaultRetryParameters" => {}
                // Silence would pass a case that asks for more than is checked.
                other => return Err(CaseError::new(format!("`{other}` is not supported"))),
            }
        }
        if case.events.is_empty() && case.status.is_none() {
            return Err(CaseError::new("the case expects nothing"));
        }
        Ok(case)
    }
}

fn list<T>(key: &str, value: &Value, read: impl Fn(&Value) -> Result<T, CaseError>) -> Result<Vec<T>, CaseError> {
    let items = value.as_array().ok_or_else(|| CaseError::new(format!("{key} is no list")))?;
    items.iter().map(read).collect()
}

fn event(value: &Value) -> Result<(u64, Value), CaseError> {
    let id = value["EventId"].as_u64().ok_or_else(|| CaseError::new(format!("an event without EventId: {value}")))?;
    Ok((id, value.clone()))
}

fn action(value: &Value) -> Result<Action, CaseError> {
    let payload = value.get("Payload").cloned();
    let answer = match value["Operation"].as_str() {
        Some("success") => Answer::Success(payload),
        Some("failure") => Answer::Failure(payload.unwrap_or_default()),
        Some("heartbeat") => Answer::Heartbeat,
        _ => return Err(CaseError::new(format!("unknown operation in {value}"))),
    };
    let callback_name = value["CallbackName"].as_str().unwrap_or("*").to_owned();
    Ok(Action { callback_name, answer, delay_seconds: value["Delay"].as_u64().unwrap_or(0) })
}

/// Names with their generated or given texts.
fn variables(value: &Value, generate: &mut impl FnMut(usize) -> String) -> Result<Vec<(String, String)>, CaseError> {
    let Some(variables) = value.as_object() else { return Ok(Vec::new()) };
    let made = variables.iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let length = text.strip_prefix("${GEN_STR:").and_then(|text| text.strip_suffix('}'));
        let text = match length.map(str::parse) {
            None => text,
            Some(Ok(length)) => generate(length),
            Some(Err(_)) => return Err(CaseError::new(format!("{name} has no length in {text:?}"))),
        };
        Ok((format!("${{{name}}}"), text))
    });
    made.collect()
}

fn substitute(value: &mut Value, variables: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (name, made) in variables {
                if text.contains(name.as_str()) {
                    *text = text.replace(name.as_str(), made);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, variables)),
        Value::Object(fields) => fields.values_mut().for_each(|field| substitute(field, variables)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = r#"
handler: prose
AsyncInvoke: true
Variables:
  NAME: ${GEN_STR:3}
Input: ["${NAME}", 1]
ExpectedResult:
  ExecutionStatus: SUCCEEDED
  Result:
CallbackActions:
  - CallbackName: ${NAME}
    Operation: success
    Payload: {a: "${NAME}"}
    Delay: 2
ExpectedExecutionHistory:
  - EventId: 2
    Id: ${ID1}
"#;

    #[test]
    fn variables_are_set_everywhere_and_placeholders_stay() {
        let case = Case::parse(FILE, |length| "x".repeat(length)).unwrap();
        assert!(case.is_async);
        assert_eq!(case.input, json!(["xxx", 1]));
        assert_eq!(case.result, Some(Value::Null), "expected to be null, which is not the same as any");
        let answer = Answer::Success(Some(json!({"a": "xxx"})));
        assert_eq!(case.actions, [Action { callback_name: "xxx".to_owned(), answer, delay_seconds: 2 }]);
        assert_eq!(case.events, [(2, json!({"EventId": 2, "Id": "${ID1}"}))]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let refused = |text: &str| Case::parse(text, |_| String::new()).is_err();
        assert!(refused("ExpectedWeather: fine"));
        assert!(refused("handler: nothing expected"));
        assert!(refused("ExpectedExecutionHistory: [{EventType: StepStarted}]"));
        assert!(refused("ExpectedResult: {ExecutionStatus: FAILED}\nCallbackActions: [{Operation: wave}]"));
    }
}
