//! One case: invoke, answer callbacks, read what came of it, compare.

use std::time::Duration;

use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::Value;
use servo_conformance::{Action, Answer, Bindings, Case, matches, spaced};
use servo_runtime::{Clock as _, SystemClock};

use crate::server::Server;

/// No case takes longer than this, retries with their delays included.
const PATIENCE: Duration = Duration::from_secs(45);

/// What is wrong, if anything.
pub(crate) async fn run(server: &Server, function: &str, case: &Case) -> Result<(), String> {
    match tokio::time::timeout(PATIENCE, run_patiently(server, function, case)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("not done after {PATIENCE:?}")),
    }
}

async fn run_patiently(server: &Server, function: &str, case: &Case) -> Result<(), String> {
    let arn = invoke(server, function, case).await?;
    let path = format!("/2025-12-01/durable-executions/{}", escaped(&arn));
    let answers = join_all(plan(&case.actions).into_iter().map(|(action, nth)| answer(server, &path, action, nth)));
    let (answered, shown) = join(answers, finish(server, &path, case)).await;
    let history = history(server, &path).await;
    judge(case, &shown, &history, &server.worker.records(&arn))
        .and_then(|()| answered.into_iter().collect())
        .map_err(|problem| format!("{problem}\n{}", listing(&history)))
}

async fn invoke(server: &Server, function: &str, case: &Case) -> Result<String, String> {
    let path = format!("/2015-03-31/functions/{function}/invocations?Qualifier=%24LATEST");
    let kind = if case.is_async { "Event" } else { "RequestResponse" };
    let headers = [("x-amz-invocation-type", kind)];
    let (status, arn, text) = server.send(Method::POST, &path, &headers, spaced(&case.input)).await;
    let expected = if case.is_async { 202 } else { 200 };
    if status != expected {
        return Err(format!("invoke answered {status}: {text}"));
    }
    arn.ok_or_else(|| "invoke named no execution".to_owned())
}

/// Waits for the end of the execution, or for the last expected event if the case names no end. A case that is invoked
/// synchronously must be over by now.
async fn finish(server: &Server, path: &str, case: &Case) -> Value {
    loop {
        let shown = server.get(path).await;
        let history = history(server, path).await;
        let ended = shown["Status"] != "RUNNING";
        let seen = match case.status {
            Some(_) => !case.is_async,
            None => case.events.iter().map(|(id, _)| *id).max() <= Some(history.len() as u64),
        };
        if ended || seen {
            return shown;
        }
        release_targets(server, &history);
        server.pause().await;
    }
}

/// Those whose caller's invocation has ended.
fn release_targets(server: &Server, history: &[Value]) {
    let ended = history.iter().rposition(|event| event["EventType"] == "InvocationCompleted").unwrap_or(0);
    for event in &history[..ended] {
        if let Some(arn) = event["ChainedInvokeStartedDetails"]["DurableExecutionArn"].as_str() {
            server.worker.release(arn);
        }
    }
}

async fn history(server: &Server, path: &str) -> Vec<Value> {
    let page = server.get(&format!("{path}/history?IncludeExecutionData=true&MaxItems=1000")).await;
    page["Events"].as_array().unwrap().clone()
}

/// Which callback each action is for: the n-th that was made, where it names none.
fn plan(actions: &[Action]) -> Vec<(&Action, usize)> {
    let mut closed = 0;
    let place = |action| {
        let nth = closed;
        if matches!(action, &Action { answer: Answer::Success(_) | Answer::Failure(_), .. }) {
            closed += 1;
        }
        (action, nth)
    };
    actions.iter().map(place).collect()
}

/// Waits for the callback, then for the action's delay, then answers.
async fn answer(server: &Server, path: &str, action: &Action, nth: usize) -> Result<(), String> {
    let id = loop {
        let events = history(server, path).await;
        let mut started = events.iter().filter(|event| event["EventType"] == "CallbackStarted");
        let found = match action.callback_name.as_str() {
            "*" => started.nth(nth),
            name => started.find(|event| event["Name"] == name),
        };
        if let Some(event) = found {
            break event["CallbackStartedDetails"]["CallbackId"].as_str().unwrap().to_owned();
        }
        server.pause().await;
    };
    SystemClock.sleep(Duration::from_secs(action.delay_seconds)).await;
    let (call, body) = match &action.answer {
        Answer::Success(payload) => ("succeed", payload.as_ref().map(spaced).unwrap_or_default()),
        Answer::Failure(error) => ("fail", error.to_string()),
        Answer::Heartbeat => ("heartbeat", String::new()),
    };
    let path = format!("/2025-12-01/durable-execution-callbacks/{}/{call}", escaped(&id));
    let (status, _, text) = server.send(Method::POST, &path, &[], body).await;
    if status == 200 { Ok(()) } else { Err(format!("{call} answered {status}: {text}")) }
}

fn judge(
    case: &Case,
    shown: &Value,
    history: &[Value],
    records: &[servo_conformance::LogRecord],
) -> Result<(), String> {
    if let Some(status) = &case.status
        && shown["Status"] != status.as_str()
    {
        return Err(format!("the execution is {} ({}), expected {status}", shown["Status"], shown["Error"]));
    }
    let mut bound = Bindings::new();
    if let Some(expected) = &case.result {
        let text = shown["Result"].as_str().unwrap_or("null");
        let result: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
        matches(expected, Some(&result), &mut bound).map_err(|mismatch| format!("result: {mismatch}"))?;
    }
    for (id, expected) in &case.events {
        let found = history.iter().find(|event| event["EventId"] == *id);
        matches(expected, found, &mut bound).map_err(|mismatch| format!("event {id}: {mismatch}"))?;
    }
    case.logs.iter().find_map(|rule| rule.problem(records)).map_or(Ok(()), Err)
}

fn listing(history: &[Value]) -> String {
    let lines = history.iter().map(|event| {
        let text: String = event.to_string().chars().take(300).collect();
        format!("      {text}\n")
    });
    lines.collect()
}

/// One segment of a path.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
