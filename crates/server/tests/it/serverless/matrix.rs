//! S1, SR-536: every operation that names something, asked by one tenant for what is another's. The answer is the one for what is
//! not there, to the last character, and the owner finds everything as it was. Operations come from the OpenAPI document, and those of
//! the Lambda API from the table of its routes, so one without a row fails.
//!
//! Each check gives what it found, so that the controls below can run the same check over a server that drops the tenant from a query.

mod elsewhere;
mod lambda;
mod world;

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{FUNCTION, PREFIX, WORKFLOW, definition_of};
use world::{ACTIVATE, Findings, STREAM, Two, essence};

pub(super) use world::{Call, ask, escaped, execution};

const REACHED_BY_THE_PLATFORM: [&str; 5] =
    ["revokeKey", "getEntrypoint", "updateEntrypoint", "setEntrypointStatus", "deleteEntrypoint"];

/// Those of the other tenant.
const KEYS: [&str; 5] =
    ["globex-viewer", "globex-operator", "globex-developer", "globex-admin", "globex-platform-admin"];

impl Two {
    /// What an operation's path names: pairs of the foreign and the unknown. `None` if it has no row.
    fn named(&self, operation: &str) -> Option<Vec<&[String; 2]>> {
        Some(match operation {
            "getEntrypoint" | "updateEntrypoint" | "deleteEntrypoint" | "setEntrypointStatus" => vec![&self.entrypoint],
            "getInvocation"
            | "controlInvocation"
            | "signalInvocation"
            | "getInvocationTimeline"
            | "getRun"
            | "deleteRun"
            | "getRunEvents"
            | "signalRun"
            | "exportRun"
            | "terminateRun"
            | "getRunLogs" => self.runs.iter().collect(),
            "getFunction" | "registerFunction" | "removeFunction" | "getFunctionVersion" | "putAlias"
            | "removeAlias" => vec![&self.function],
            "revokeKey" => vec![&self.key],
            // Types are the platform's, the same for all.
            "getType" => vec![],
            _ => return None,
        })
    }
}

/// What is sent to an operation, so that its owner would get a yes.
fn body(operation: &str) -> Option<Value> {
    Some(match operation {
        "updateEntrypoint" => definition_of("globex", WORKFLOW),
        "setEntrypointStatus" => json!({"action": "disable"}),
        "controlInvocation" => json!({"action": "cancel"}),
        "signalInvocation" => json!({"signal_id": "s", "name": "n"}),
        "signalRun" => json!({"signalId": "s", "type": "CANCEL"}),
        "terminateRun" => json!({"reason": "mine"}),
        "registerFunction" => json!({"reach": {"kind": "inProcess"}}),
        "putAlias" => json!({"version": 1}),
        _ => return None,
    })
}

/// The operations whose path names something, as id, method and path.
fn operations() -> Vec<(String, Method, String)> {
    let mut found = Vec::new();
    for (path, methods) in servo_server::openapi::document()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if path.contains('{') {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                found.push((operation["operationId"].as_str().unwrap().to_owned(), method, path.clone()));
            }
        }
    }
    // Whoever registers a function has it from then on.
    found.sort_by_key(|(id, ..)| id == "registerFunction");
    found
}

/// How a request may be varied: as a stream where there is one, and under conditions, which are about something that is there.
fn variations(id: &str) -> Vec<Vec<(&'static str, String)>> {
    let header = |name, value: &str| vec![(name, value.to_owned())];
    let mut all = vec![vec![], header("if-match", "*"), header("if-none-match", "*")];
    if matches!(id, "getRunEvents" | "getInvocationTimeline") {
        all.push(header("accept", STREAM));
    }
    all
}

/// What differs between the answers about what is foreign and what is not there, by the path.
async fn crossings(two: &Two) -> Vec<String> {
    let (before, mut findings, mut asked) = (two.of_acme().await, Findings::default(), 0);
    for (path, status, answer) in &before {
        assert_eq!(*status, 200, "it is there: {path}: {answer}");
    }
    for (id, method, template) in operations() {
        let Some(named) = two.named(&id) else {
            findings.0.push(format!("{id} has no row: whose is what it names?"));
            continue;
        };
        for [foreign, unknown] in named {
            assert_eq!(foreign.len(), unknown.len());
            let path = |name: &str| {
                let path = template.replace("{id}", name).replace("{name}", name);
                path.replace("{version}", "1").replace("{alias}", "live")
            };
            assert!(!path(foreign).contains('{'), "{template}");
            for headers in variations(&id) {
                for key in KEYS {
                    // Who runs the platform reaches every key and every registration.
                    if REACHED_BY_THE_PLATFORM.contains(&id.as_str()) && key == "globex-platform-admin" {
                        continue;
                    }
                    let call =
                        |name| Call { headers: headers.clone(), ..Call::new(method.clone(), path(name), body(&id)) };
                    let (theirs, nobodys) = (two.ask(key, &call(foreign)).await, two.ask(key, &call(unknown)).await);
                    let case = format!("{id} {headers:?} as {key}");
                    findings.same(&case, (&theirs, foreign), (&nobodys, unknown));
                    let expected: &[u16] = match (id.as_str(), key) {
                        // Whoever registers a function has it from then on.
                        ("registerFunction", _) => &[200, 403],
                        (_, "globex-admin") => &[404],
                        _ => &[403, 404],
                    };
                    let status = theirs.status.as_u16();
                    findings.expect(expected.contains(&status), || format!("{case}: {status} {}", theirs.text));
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 450, "{asked}");
    findings.unchanged(two, &before).await;
    findings.0
}

/// What lists and the like tell one tenant of another: every operation that reads and names nothing.
async fn told(two: &Two) -> Vec<String> {
    let [ended, hanging, of_plan] = &two.runs;
    let names = [&two.entrypoint, ended, hanging, of_plan, &two.key, &two.function, &two.callback, &two.token];
    let mut findings = Findings::default();
    for (path, methods) in servo_server::openapi::document()["paths"].as_object().unwrap() {
        if path.contains('{') || methods.get("get").is_none() || path == "/openapi.json" {
            continue;
        }
        for key in KEYS.into_iter().filter(|key| *key != "globex-platform-admin") {
            let answer = two.ask(key, &Call::new(Method::GET, path, None)).await;
            for name in names.iter().map(|[name, _]| name.as_str()).chain(["acme"]) {
                findings
                    .expect(!answer.text.contains(name), || format!("{path} tells {key} of {name}: {}", answer.text));
            }
        }
    }
    findings.0
}

/// Nothing was found.
#[track_caller]
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings: {findings:#?}", findings.len());
}

async fn what_is_foreign_is_answered_as_what_is_not_there() {
    none(&crossings(&Two::new().await).await);
}

async fn what_is_foreign_in_a_body_or_a_filter_is_not_there_either() {
    none(&elsewhere::crossings(&Two::new().await).await);
}

async fn what_is_foreign_is_not_there_in_the_lambda_api() {
    let two = Two::new().await;
    none(&lambda::crossings(&two).await);
    lambda::still_works(&two).await;
}

async fn nothing_is_told_of_another_tenant() {
    none(&told(&Two::new().await).await);
}

/// SR-383: what one tenant used up is another's to use, and neither learns of the other.
async fn an_idempotency_key_is_its_tenants() {
    let two = Two::new().await;
    let path = format!("{PREFIX}/entrypoints");
    let made =
        two.ask("globex-developer", &Call::new(Method::POST, &path, Some(definition_of("globex", FUNCTION)))).await;
    let path = format!("{path}/{}:status", made.json["id"].as_str().unwrap());
    let active = two.ask("globex-developer", &Call::new(Method::POST, path, Some(json!({"action": ACTIVATE})))).await;
    assert_eq!(active.status, 200, "{}", active.text);
    let start = async |key: &str, amount: u64| {
        let body = json!({"entrypoint_id": FUNCTION, "mode": "sync", "params": {"amount": amount}});
        let call = Call::new(Method::POST, format!("{PREFIX}/invocations"), Some(body));
        two.ask(key, &call.with("idempotency-key", "order-7")).await
    };
    let calls = two.api.calls();
    let (acme, globex) = (start("acme-operator", 1).await, start("globex-operator", 2).await);
    assert_eq!((acme.status.as_u16(), globex.status.as_u16()), (201, 201), "{}", globex.text);
    assert_ne!(acme.json["record"]["id"], globex.json["record"]["id"]);
    assert_eq!(globex.json["record"]["result"], json!({"amount": 2}));
    for (key, amount, first) in [("acme-operator", 1, &acme), ("globex-operator", 2, &globex)] {
        let again = start(key, amount).await;
        assert_eq!((again.status.as_u16(), &again.json["record"]), (200, &first.json["record"]), "{}", again.text);
        assert_eq!(start(key, 3 - amount).await.status, 422, "its own is taken");
    }
    assert_eq!(two.api.calls(), calls + 2);
}

crate::backend::on_every_store! {
    what_is_foreign_is_answered_as_what_is_not_there,
    what_is_foreign_in_a_body_or_a_filter_is_not_there_either,
    what_is_foreign_is_not_there_in_the_lambda_api,
    nothing_is_told_of_another_tenant,
    an_idempotency_key_is_its_tenants,
}

/// The control: over a server that drops the tenant from one query, the look at a run, the same checks are red.
#[cfg(feature = "sabotage")]
mod control {
    use super::*;
    use crate::harness::Options;

    async fn broken() -> Two {
        Two::with(Options::default().broken("foreign-runs")).await
    }

    fn has(findings: &[String], start: &str) -> bool {
        findings.iter().any(|finding| finding.starts_with(start))
    }

    async fn a_query_without_its_tenant_is_noticed() {
        let two = broken().await;
        let findings = crossings(&two).await;
        for operation in ["getRun ", "getInvocation ", "getInvocationTimeline [(\"accept\""] {
            assert!(has(&findings, operation), "{operation} went unnoticed: {findings:#?}");
        }
        // What other queries keep apart is still kept apart.
        for operation in ["getRunEvents ", "getFunction ", "revokeKey "] {
            assert!(!has(&findings, operation), "{operation} {findings:#?}");
        }
    }

    async fn a_query_without_its_tenant_is_noticed_in_the_lambda_api() {
        let findings = lambda::crossings(&broken().await).await;
        let get = "GET /2025-12-01/durable-executions/{arn} ";
        assert!(has(&findings, get), "{get} went unnoticed: {findings:#?}");
        assert!(!has(&findings, "POST /2015-03-31/functions/{name}/invocations "), "{findings:#?}");
    }

    crate::backend::on_every_store! {
        a_query_without_its_tenant_is_noticed,
        a_query_without_its_tenant_is_noticed_in_the_lambda_api,
    }
}

/// The control: this comparison finds the least difference.
#[tokio::test]
async fn the_comparison_sees_what_differs() {
    let two = Two::new().await;
    let path = |id: &str| format!("{PREFIX}/invocations/{id}");
    let [foreign, unknown] = &two.runs[0];
    // The owner's own answers differ from those for what is not there.
    let ask = async |id: &str| two.ask("acme-admin", &Call::new(Method::GET, path(id), None)).await;
    let (own, none) = (ask(foreign).await, ask(unknown).await);
    assert_ne!(essence(&own, foreign), essence(&none, unknown));
    // A name that slips into a detail, and a header, are seen as well.
    let mut leaking = none.clone();
    leaking.json["detail"] = json!("it is acme's");
    assert_ne!(essence(&leaking, unknown), essence(&none, unknown));
    let mut leaking = none.clone();
    leaking.headers.insert("etag", "\"1\"".parse().unwrap());
    assert_ne!(essence(&leaking, unknown), essence(&none, unknown));
}
