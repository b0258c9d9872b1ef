//! What two tenants have, requests that name it, and what tells two answers apart.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition_of};
use crate::harness::{Answer, Options, endless, keys, wait_for};

/// What acme has, and what nobody has, in pairs of one length.
pub(super) struct Two {
    pub(super) api: Api,
    pub(super) entrypoint: [String; 2],
    /// One that has ended, one that is under way, and a run of a plan.
    pub(super) runs: [[String; 2]; 3],
    pub(super) key: [String; 2],
    pub(super) function: [String; 2],
    /// An execution of a function that is under way, by its ARN, with the token that its handler has for the next checkpoint and the
    /// id of a callback that it waits for.
    pub(super) arn: [String; 2],
    pub(super) token: [String; 2],
    pub(super) callback: [String; 2],
}

/// As long, of the same form, and not there.
fn unknown(id: &str) -> [String; 2] {
    let (prefix, rest) = id.split_once('_').unwrap();
    [id.to_owned(), format!("{prefix}_{}", "0".repeat(rest.len()))]
}

/// The same for what is sealed: base64 that opens nothing.
fn unsealed(text: &str) -> [String; 2] {
    let body = text.trim_end_matches('=');
    [text.to_owned(), format!("{}{}", "A".repeat(body.len()), &text[body.len()..])]
}

pub(in super::super) fn escaped(text: &str) -> String {
    ["%", ":", "/", "$", "+", "="]
        .iter()
        .zip(["%25", "%3A", "%2F", "%24", "%2B", "%3D"])
        .fold(text.to_owned(), |text, (plain, coded)| text.replace(plain, coded))
}

pub(super) const ACTIVATE: &str = "activate";

impl Two {
    pub(super) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(super) async fn with(options: Options) -> Self {
        let api = Api::with(Options { auth: keys(), ..options }, &["acme-developer", "globex-developer"]).await;
        let done = async |method: Method, path: &str, key: &str, body: &Value| {
            let answer = api.server.send(method, path, key, Some(body)).await;
            assert!(answer.status.is_success(), "{path}: {}", answer.text);
            answer.json
        };
        let text = |json: &Value, name: &str| json[name].as_str().unwrap().to_owned();
        let mut entrypoint = String::new();
        for address in [FUNCTION, WORKFLOW] {
            let path = format!("{PREFIX}/entrypoints");
            let made = done(Method::POST, &path, "acme-developer", &definition_of("acme", address)).await;
            entrypoint = text(&made, "id");
            let path = format!("{path}/{entrypoint}:status");
            done(Method::POST, &path, "acme-developer", &json!({"action": ACTIVATE})).await;
        }
        let mut runs = Vec::new();
        for (mode, what) in [("sync", "work"), ("async", "hang")] {
            let start = json!({"entrypoint_id": WORKFLOW, "mode": mode, "params": {"do": what}});
            let made = done(Method::POST, &format!("{PREFIX}/invocations"), "acme-operator", &start).await;
            runs.push(text(&made["record"], "id"));
        }
        runs.push(api.server.start_as("acme-operator", endless()).await.to_string());
        for (run, status) in [(&runs[1], "running"), (&runs[2], "RUNNING")] {
            let path =
                if status == "running" { format!("{PREFIX}/invocations/{run}") } else { format!("/v1/runs/{run}") };
            wait_for("acme's runs to be under way", async || {
                let seen = api.server.send(Method::GET, &path, "acme-viewer", None).await;
                // Of a plan's run, its step is what starts last.
                (seen.json["status"] == status
                    && (seen.json["steps"].is_null() || seen.text.contains(r#""startedAt""#)))
                .then_some(())
            })
            .await;
        }
        let key = done(Method::POST, "/v1/keys", "acme-admin", &json!({"name": "ci", "roles": ["viewer"]})).await;
        for timeout in [10, 20] {
            let spec = json!({"reach": {"kind": "inProcess"}, "durable": true, "executionTimeoutSeconds": timeout});
            done(Method::PUT, "/v1/functions/theirs", "acme-developer", &spec).await;
        }
        done(Method::PUT, "/v1/functions/theirs/aliases/live", "acme-developer", &json!({"version": 1})).await;
        let (arn, token, callback) = execution(&api, "acme-operator", "theirs").await;
        let run = unknown(arn.rsplit('/').next().unwrap());
        let nowhere = arn.replace(&run[0], &run[1]);
        Self {
            entrypoint: unknown(&entrypoint),
            runs: [unknown(&runs[0]), unknown(&runs[1]), unknown(&runs[2])],
            key: unknown(&text(&key, "id")),
            function: ["theirs".to_owned(), "nobody".to_owned()],
            arn: [arn, nowhere],
            token: unsealed(&token),
            callback: unsealed(&callback),
            api,
        }
    }

    /// All that acme has, as it reads it.
    pub(super) async fn of_acme(&self) -> Vec<(String, u16, Value)> {
        let mut paths = vec![
            format!("{PREFIX}/entrypoints/{}", self.entrypoint[0]),
            format!("{PREFIX}/entrypoints"),
            format!("{PREFIX}/invocations"),
            format!("{PREFIX}/invocations:counts"),
            "/v1/functions".to_owned(),
            "/v1/functions/theirs".to_owned(),
            "/v1/functions/theirs/versions/1".to_owned(),
            "/v1/keys".to_owned(),
            "/v1/runs".to_owned(),
            format!("/2025-12-01/durable-executions/{}", escaped(&self.arn[0])),
            format!("/2025-12-01/durable-executions/{}/history", escaped(&self.arn[0])),
            "/2025-12-01/functions/theirs/durable-executions".to_owned(),
        ];
        for [run, _] in &self.runs {
            paths.extend(["", "/events", "/export", "/logs"].map(|more| format!("/v1/runs/{run}{more}")));
        }
        for [run, _] in &self.runs[..2] {
            paths.extend(["", "/timeline"].map(|more| format!("{PREFIX}/invocations/{run}{more}")));
        }
        let mut seen = Vec::new();
        for path in paths {
            let answer = self.ask("acme-admin", &Call::new(Method::GET, &path, None)).await;
            seen.push((path, answer.status.as_u16(), answer.json));
        }
        seen
    }

    pub(super) async fn ask(&self, key: &str, call: &Call) -> Answer {
        ask(&self.api, key, call).await
    }
}

pub(in super::super) async fn ask(api: &Api, key: &str, call: &Call) -> Answer {
    let mut request = api.server.request(call.method.clone(), &call.path).bearer_auth(key);
    for (name, value) in &call.headers {
        request = request.header(*name, value);
    }
    if let Some(body) = &call.body {
        request = request.json(body);
    }
    let is_lambda = call.path.starts_with("/20");
    if !is_lambda && !call.headers.iter().any(|(_, value)| value == STREAM) {
        return Answer::of(request).await;
    }
    // The Lambda API refuses in a form of its own, and a stream that opens does not end.
    let response = request.try_clone().unwrap().send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    if !is_lambda && !status.is_success() {
        return Answer::of(request).await;
    }
    let text = if is_lambda { response.text().await.unwrap() } else { "a stream".to_owned() };
    let json = serde_json::from_str(&text).unwrap_or(Value::Null);
    Answer { status, headers, text, json }
}

/// An execution of a durable function that hangs: its ARN, the token for its next checkpoint, and a callback that it waits for.
pub(in super::super) async fn execution(api: &Api, key: &str, function: &str) -> (String, String, String) {
    let path = format!("/2015-03-31/functions/{function}/invocations");
    let request = api.server.request(Method::POST, &path).bearer_auth(key).header("x-amz-invocation-type", "Event");
    let begun = request.body(r#"{"do":"hang"}"#).send().await.unwrap();
    assert_eq!(begun.status(), 202, "{}", begun.text().await.unwrap());
    let arn = begun.headers()["x-amz-durable-execution-arn"].to_str().unwrap().to_owned();
    let envelope = wait_for("the handler to be called", async || {
        api.handler.hanging().into_iter().find(|envelope| envelope["DurableExecutionArn"] == arn.as_str())
    })
    .await;
    let update = json!({"Id": "1", "Type": "CALLBACK", "Action": "START", "Name": "approval",
        "CallbackOptions": {"TimeoutSeconds": 3_600}});
    let body = json!({"CheckpointToken": envelope["CheckpointToken"], "Updates": [update]});
    let path = format!("/2025-12-01/durable-executions/{}/checkpoint", escaped(&arn));
    let answer = api.server.request(Method::POST, &path).bearer_auth(key).json(&body).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    let operations = answer["NewExecutionState"]["Operations"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let id = operations.iter().find_map(|operation| operation["CallbackDetails"]["CallbackId"].as_str());
    let id = id.unwrap_or_else(|| panic!("no callback in {answer}"));
    (arn, answer["CheckpointToken"].as_str().unwrap().to_owned(), id.to_owned())
}

pub(super) const STREAM: &str = "text/event-stream";

#[derive(Debug, Clone)]
pub(in super::super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(in super::super) body: Option<Value>,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Call {
    pub(in super::super) fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, path: path.into(), body, headers: Vec::new() }
    }

    pub(in super::super) fn with(mut self, header: &'static str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }
}

/// All that may tell two answers apart, without which request it was, when, and the name that was asked for.
pub(super) fn essence(answer: &Answer, name: &str) -> (u16, Vec<String>, String) {
    let mut json = answer.json.clone();
    if let Some(members) = json.as_object_mut() {
        for own in ["requestId", "trace_id", "createdAt"] {
            members.remove(own);
        }
    }
    let own = ["date", "x-request-id", "x-correlation-id", "x-amzn-requestid"];
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(header, _)| !own.contains(&header.as_str()))
        .map(|(header, value)| format!("{header}: {value:?}"))
        .collect();
    headers.sort_unstable();
    let text = if json.is_null() { answer.text.clone() } else { json.to_string() };
    (answer.status.as_u16(), headers, text.replace(&escaped(name), "NAME").replace(name, "NAME"))
}

/// What was found: a line each, and nothing if all is well.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<String>);

impl Findings {
    pub(super) fn expect(&mut self, holds: bool, finding: impl FnOnce() -> String) {
        if !holds {
            self.0.push(finding());
        }
    }

    /// The answers about what is foreign and what is unknown are the same.
    pub(super) fn same(&mut self, case: &str, (theirs, foreign): (&Answer, &str), (nobodys, unknown): (&Answer, &str)) {
        let (theirs, nobodys) = (essence(theirs, foreign), essence(nobodys, unknown));
        self.expect(theirs == nobodys, || format!("{case}: {theirs:?} is not {nobodys:?}"));
    }

    /// Acme finds everything as it was.
    pub(super) async fn unchanged(&mut self, two: &Two, before: &[(String, u16, Value)]) {
        for ((path, status, now), was) in two.of_acme().await.into_iter().zip(before) {
            self.expect((&path, status, &now) == (&was.0, was.1, &was.2), || {
                format!("{path} has changed from {} {} to {status} {now}", was.1, was.2)
            });
        }
    }
}
