//! S2, of members: what a viewer may not read is in no answer to a viewer, whatever is read. What reads comes from the OpenAPI
//! document and from the table of the Lambda API, so that a new operation is looked at as well.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};

use super::matrix::{escaped, execution};
use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition_of};
use crate::harness::{Options, keys, wait_for};
use crate::roles::LAMBDA;

/// What only those who read payloads may see, one for each way in which it comes in. Longer than what ids and digests are likely to
/// hold, and also a number.
const PARAMS: &str = "4111222233330001";
const FAILED: &str = "4111222233330002";
const HANGING: &str = "4111222233330003";
const PLAN: &str = "4111222233330004";
const SIGNAL: &str = "4111222233330005";
const STEP: &str = "4111222233330006";
const STEP_ERROR: &str = "4111222233330007";
const CALLBACK: &str = "4111222233330008";
const INPUT: &str = "4111222233330009";
const SECRETS: [&str; 9] = [PARAMS, FAILED, HANGING, PLAN, SIGNAL, STEP, STEP_ERROR, CALLBACK, INPUT];

fn number(secret: &str) -> u64 {
    secret.parse().unwrap()
}

struct World {
    api: Api,
    entrypoint: String,
    /// With whether they have ended: a stream of one that has not does not end.
    runs: Vec<(String, bool)>,
    arns: Vec<String>,
}

impl World {
    async fn new() -> Self {
        let api = Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer"]).await;
        let done = async |path: &str, key: &str, body: &Value| {
            let answer = api.server.send(Method::POST, path, key, Some(body)).await;
            assert!(answer.status.is_success(), "{path}: {}", answer.text);
            answer.json
        };
        let mut entrypoint = String::new();
        for address in [FUNCTION, WORKFLOW] {
            let made = done(&format!("{PREFIX}/entrypoints"), "acme-developer", &definition_of("acme", address)).await;
            entrypoint = made["id"].as_str().unwrap().to_owned();
            let path = format!("{PREFIX}/entrypoints/{entrypoint}:status");
            done(&path, "acme-developer", &json!({"action": "activate"})).await;
        }
        let mut runs = Vec::new();
        for (address, what, mode, secret) in [
            (FUNCTION, "work", "sync", PARAMS),
            (WORKFLOW, "work", "sync", PARAMS),
            (FUNCTION, "fail", "sync", FAILED),
            (WORKFLOW, "hang", "async", HANGING),
        ] {
            let params = json!({"do": what, "amount": number(secret)});
            let start = json!({"entrypoint_id": address, "mode": mode, "params": params});
            let made = done(&format!("{PREFIX}/invocations"), "acme-operator", &start).await;
            runs.push((made["record"]["id"].as_str().unwrap().to_owned(), mode == "sync"));
        }
        let signal = json!({"signal_id": "s", "name": "n", "payload": {"card": number(SIGNAL)}});
        done(&format!("{PREFIX}/invocations/{}:signal", runs[3].0), "acme-operator", &signal).await;
        let steps = json!([{"stepId": "a", "with": {"card": number(PLAN)}}]);
        let of_plan = api.server.start_as("acme-operator", steps).await;
        api.server.follow(&of_plan, "acme-operator").await;
        runs.push((of_plan.to_string(), true));

        let (arn, token, callback) = execution(&api, "acme-operator", "durable").await;
        let path = format!("/2025-12-01/durable-executions/{}/checkpoint", escaped(&arn));
        let error =
            json!({"ErrorType": "Boom", "ErrorMessage": "no", "ErrorData": STEP_ERROR, "StackTrace": [STEP_ERROR]});
        let updates = json!([
            {"Id": "2", "Type": "STEP", "Action": "START", "Name": "charge"},
            {"Id": "2", "Type": "STEP", "Action": "SUCCEED", "Name": "charge", "Payload": STEP},
            {"Id": "3", "Type": "STEP", "Action": "START", "Name": "fails"},
            {"Id": "3", "Type": "STEP", "Action": "FAIL", "Name": "fails", "Error": error},
        ]);
        done(&path, "acme-operator", &json!({"CheckpointToken": token, "Updates": updates})).await;
        let path = format!("/2025-12-01/durable-execution-callbacks/{}/succeed", escaped(&callback));
        done(&path, "acme-operator", &json!(CALLBACK)).await;
        let request = api.server.request(Method::POST, "/2015-03-31/functions/durable/invocations");
        let begun = request.bearer_auth("acme-operator").json(&json!({"amount": number(INPUT)})).send().await.unwrap();
        assert_eq!(begun.status(), 200);
        let ended = begun.headers()["x-amz-durable-execution-arn"].to_str().unwrap().to_owned();
        let arns = vec![arn, ended];
        runs.extend(
            arns.iter().zip([false, true]).map(|(arn, ended)| (arn.rsplit('/').next().unwrap().to_owned(), ended)),
        );
        wait_for("the signal to be recorded", async || {
            let path = format!("/v1/runs/{}/events", runs[3].0);
            let events = api.server.send(Method::GET, &path, "acme-operator", None).await;
            events.text.contains(SIGNAL).then_some(())
        })
        .await;
        Self { api, entrypoint, runs, arns }
    }

    /// What reads: its operation, and each path with whether it may be asked as a stream.
    fn reads(&self) -> Vec<(String, Vec<(String, bool)>)> {
        let mut reads = Vec::new();
        for (template, methods) in servo_server::openapi::document()["paths"].as_object().unwrap() {
            let Some(operation) = methods.get("get") else { continue };
            let ids: Vec<(String, bool)> = match template {
                path if !path.contains('{') => vec![(String::new(), false)],
                path if path.contains("/invocations/{id}") || path.contains("/runs/{id}") => self.runs.clone(),
                path if path.contains("/entrypoints/{id}") => vec![(self.entrypoint.clone(), false)],
                path if path.contains("/functions/{name}") => vec![("durable".to_owned(), false)],
                path if path.contains("/types/{id}") => {
                    vec![("gts.x.core.serverless.invocation.v1~".to_owned(), false)]
                }
                path => panic!("nothing is known that {path} reads: say what, so that it is looked at"),
            };
            let fill = |(id, ended): &(String, bool)| {
                let path = template.replace("{id}", id).replace("{name}", id).replace("{version}", "1");
                assert!(!path.contains('{'), "{path}");
                (path, *ended && (template.ends_with("/events") || template.ends_with("/timeline")))
            };
            let id = operation["operationId"].as_str().unwrap();
            reads.push((id.to_owned(), ids.iter().map(fill).collect()));
        }
        for (_, template, ..) in LAMBDA.into_iter().filter(|(method, ..)| *method == "GET") {
            let subjects = if template.contains("{name}") { vec!["durable".to_owned()] } else { self.arns.clone() };
            let fill = |subject: &String| {
                let path = template.replace("{name}", subject).replace("{arn}", &escaped(subject));
                ["", "?IncludeExecutionData=true", "?ReverseOrder=true"].map(|query| (format!("{path}{query}"), false))
            };
            reads.push((format!("GET {template}"), subjects.iter().flat_map(fill).collect()));
        }
        reads
    }

    /// Which of the secrets a key reads, and through which operations.
    async fn seen_by(&self, key: &str) -> BTreeMap<&'static str, BTreeSet<String>> {
        let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (operation, paths) in self.reads() {
            for (path, streams) in paths {
                let accepts: &[_] =
                    if streams { &["application/json", "text/event-stream"] } else { &["application/json"] };
                for accept in accepts {
                    let request =
                        self.api.server.request(Method::GET, &path).bearer_auth(key).header("accept", *accept);
                    let text = request.send().await.unwrap().text().await.unwrap();
                    for secret in SECRETS.into_iter().filter(|secret| text.contains(*secret)) {
                        seen.entry(secret).or_default().insert(operation.clone());
                    }
                }
            }
        }
        seen
    }
}

async fn a_viewer_reads_no_payload_anywhere() {
    let world = World::new().await;
    assert_eq!(world.seen_by("acme-viewer").await, BTreeMap::new());
    // The control: whoever may read payloads finds each of them by the same reads.
    let seen = world.seen_by("acme-operator").await;
    for secret in SECRETS {
        assert!(seen.contains_key(secret), "{secret} is nowhere, so that it is not found says nothing: {seen:#?}");
    }
    for operation in ["getInvocation", "listInvocations", "getRunEvents", "exportRun"] {
        assert!(seen.values().any(|operations| operations.contains(operation)), "{operation}: {seen:#?}");
    }
}

crate::backend::on_every_store! {
    a_viewer_reads_no_payload_anywhere,
}
