//! Two of everything for one tenant, one of everything for another, and all of it as they read it.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::matrix::{Call, ask, escaped, execution};
use super::super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition_of};
use crate::harness::{Answer, Options, keys, one_step, start};

/// An execution that is under way: its ARN, the token for its next checkpoint and a callback that it waits for.
pub(super) struct Execution {
    pub(super) arn: String,
    pub(super) token: String,
    pub(super) callback: String,
}

pub(super) struct World {
    pub(super) api: Api,
    /// Acme's draft of `FUNCTION`, which may be changed.
    pub(super) draft: String,
    /// Ended runs of acme's `WORKFLOW`.
    pub(super) invocations: Vec<String>,
    /// Runs of a plan that are gone, as files. Each can be brought back once.
    pub(super) files: Vec<Answer>,
    /// Two of acme's, one of globex's.
    pub(super) executions: Vec<Execution>,
    /// Where lists of acme's go on, by the operation and its path.
    pub(super) cursors: Vec<(&'static str, String, String)>,
    /// The same of the Lambda API.
    pub(super) markers: Vec<(&'static str, String, String)>,
}

/// The start that a key and a request id have been used for.
pub(super) fn invocation(params: &Value) -> Value {
    json!({"entrypoint_id": WORKFLOW, "mode": "sync", "params": params})
}

pub(super) fn plan_request(steps: Value) -> Value {
    let mut request = start(steps);
    request["runRequestId"] = json!("same");
    request
}

impl World {
    pub(super) async fn new() -> Self {
        let options = Options { auth: keys(), ..Options::default() };
        let api = Api::with(options, &["acme-developer", "globex-developer"]).await;
        let done = async |method: Method, path: &str, key: &str, body: &Value| {
            let answer = api.server.send(method, path, key, Some(body)).await;
            assert!(answer.status.is_success(), "{path}: {}", answer.text);
            answer.json
        };
        let mut draft = String::new();
        for (tenant, address) in [("globex", FUNCTION), ("acme", WORKFLOW), ("acme", FUNCTION)] {
            let (path, key) = (format!("{PREFIX}/entrypoints"), format!("{tenant}-developer"));
            let made = done(Method::POST, &path, &key, &definition_of(tenant, address)).await;
            draft = made["id"].as_str().unwrap().to_owned();
            if address == WORKFLOW {
                done(Method::POST, &format!("{path}/{draft}:status"), &key, &json!({"action": "activate"})).await;
            }
        }
        let mut invocations = Vec::new();
        for amount in 0..3 {
            let path = format!("{PREFIX}/invocations");
            let call = Call::new(Method::POST, path, Some(invocation(&json!({"amount": amount}))));
            let made = ask(&api, "acme-operator", &call.with("idempotency-key", &format!("key-{amount}"))).await;
            assert_eq!(made.status, 201, "{}", made.text);
            invocations.push(made.json["record"]["id"].as_str().unwrap().to_owned());
        }
        for (name, versions) in [("one", 1), ("two", 2)] {
            for timeout in 0..versions {
                let spec = json!({"reach": {"kind": "inProcess"}, "executionTimeoutSeconds": 10 + timeout});
                done(Method::PUT, &format!("/v1/functions/{name}"), "acme-developer", &spec).await;
            }
        }
        let mut files = Vec::new();
        for (request, stays) in [(start(one_step()), true), (plan_request(one_step()), true)]
            .into_iter()
            .chain(std::iter::repeat_n((start(one_step()), false), 3))
        {
            let made = done(Method::POST, "/v1/runs", "acme-operator", &request).await;
            let run = servo_model::RunId::parse(made["runId"].as_str().unwrap()).unwrap();
            api.server.follow(&run, "acme-operator").await;
            if !stays {
                let path = format!("/v1/runs/{run}");
                files.push(api.server.send(Method::GET, &format!("{path}/export"), "acme-operator", None).await);
                assert_eq!(api.server.send(Method::DELETE, &path, "acme-admin", None).await.status, 204);
            }
        }
        let mut executions = Vec::new();
        for key in ["acme-operator", "acme-operator", "globex-operator"] {
            let (arn, token, callback) = execution(&api, key, "durable").await;
            executions.push(Execution { arn, token, callback });
        }
        let mut world = Self { api, draft, invocations, files, executions, cursors: Vec::new(), markers: Vec::new() };
        world.cursors = world.first_pages().await;
        world.markers = world.first_marks().await;
        world
    }

    pub(super) async fn ask(&self, key: &str, call: &Call) -> Answer {
        ask(&self.api, key, call).await
    }

    async fn get(&self, key: &str, path: &str) -> Answer {
        self.ask(key, &Call::new(Method::GET, path, None)).await
    }

    /// One item of each list, and where it goes on.
    async fn first_pages(&self) -> Vec<(&'static str, String, String)> {
        let timeline = |run: &str| format!("{PREFIX}/invocations/{run}/timeline?limit=1");
        let lists = [
            ("listInvocations", format!("{PREFIX}/invocations?limit=1")),
            ("listInvocations", format!("{PREFIX}/invocations?limit=1&status=succeeded")),
            ("listEntrypoints", format!("{PREFIX}/entrypoints?limit=1")),
            ("getInvocationTimeline", timeline(&self.invocations[0])),
            ("getInvocationTimeline", timeline(&self.invocations[1])),
            ("listRuns", "/v1/runs?limit=1&planId=demo".to_owned()),
            ("readAudit", "/v1/audit?limit=1".to_owned()),
        ];
        let mut found = Vec::new();
        for (operation, path) in lists {
            let page = self.get("acme-admin", &path).await;
            let next = page.json["page_info"]["next_cursor"].as_str().or_else(|| page.json["nextCursor"].as_str());
            let next = next.or_else(|| page.json["cursor"].as_str());
            let next = next.unwrap_or_else(|| panic!("{path} goes nowhere: {}", page.text));
            found.push((operation, path, next.to_owned()));
        }
        found
    }

    async fn first_marks(&self) -> Vec<(&'static str, String, String)> {
        let mut found = Vec::new();
        let mut paths = vec![(LIST, "/2025-12-01/functions/durable/durable-executions?MaxItems=1".to_owned())];
        for execution in &self.executions[..2] {
            let path = format!("/2025-12-01/durable-executions/{}", escaped(&execution.arn));
            let token = escaped(&execution.token);
            paths.push((HISTORY, format!("{path}/history?MaxItems=1")));
            paths.push((STATE, format!("{path}/state?MaxItems=1&CheckpointToken={token}")));
        }
        for (operation, path) in paths {
            let page = self.get("acme-operator", &path).await;
            let next = page.json["NextMarker"].as_str();
            let next = next.unwrap_or_else(|| panic!("{path} goes nowhere: {}", page.text));
            found.push((operation, path, escaped(next)));
        }
        found
    }

    /// All that the two have, as their admins read it.
    pub(super) async fn state(&self) -> Vec<(String, Value)> {
        let mut state = Vec::new();
        for (tenant, executions) in [("acme", &self.executions[..2]), ("globex", &self.executions[2..])] {
            let key = format!("{tenant}-admin");
            let lists = ["/entrypoints", "/invocations", "/invocations:counts"].map(|list| format!("{PREFIX}{list}"));
            let mut paths = lists.to_vec();
            paths.extend(["/v1/functions", "/v1/keys", "/v1/runs"].map(str::to_owned));
            if tenant == "acme" {
                paths.extend(["one", "two"].map(|name| format!("/v1/functions/{name}")));
                paths.extend(self.invocations.iter().map(|run| format!("/v1/runs/{run}/events")));
            }
            for execution in executions {
                let path = format!("/2025-12-01/durable-executions/{}", escaped(&execution.arn));
                paths.extend([path.clone(), format!("{path}/history")]);
            }
            for path in paths {
                let answer = self.get(&key, &path).await;
                assert_eq!(answer.status, 200, "{path}: {}", answer.text);
                state.push((format!("{tenant} {path}"), answer.json));
            }
        }
        state
    }
}

pub(super) const LIST: &str = "GET /2025-12-01/functions/{name}/durable-executions";
pub(super) const HISTORY: &str = "GET /2025-12-01/durable-executions/{arn}/history";
pub(super) const STATE: &str = "GET /2025-12-01/durable-executions/{arn}/state";
