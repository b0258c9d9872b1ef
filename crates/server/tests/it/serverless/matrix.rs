//! S1, SR-536: every operation that names something, asked by one tenant for what is another's. The answer is the one for what is
//! not there, to the last character, and the owner finds everything as it was. Operations come from the OpenAPI document, so one
//! without a row fails.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition_of};
use crate::harness::{Answer, Options, endless, keys, wait_for};

/// What acme has, and what nobody has, in pairs of one length.
struct Two {
    api: Api,
    entrypoint: [String; 2],
    /// One that has ended, one that is under way, and a run of a plan.
    runs: [[String; 2]; 3],
    key: [String; 2],
    function: [String; 2],
}

/// As long, of the same form, and not there.
fn unknown(id: &str) -> [String; 2] {
    let (prefix, rest) = id.split_once('_').unwrap();
    [id.to_owned(), format!("{prefix}_{}", "0".repeat(rest.len()))]
}

const ACTIVATE: &str = "activate";

const REACHED_BY_THE_PLATFORM: [&str; 5] =
    ["revokeKey", "getEntrypoint", "updateEntrypoint", "setEntrypointStatus", "deleteEntrypoint"];

impl Two {
    async fn new() -> Self {
        let api =
            Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer", "globex-developer"]).await;
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
        Self {
            entrypoint: unknown(&entrypoint),
            runs: [unknown(&runs[0]), unknown(&runs[1]), unknown(&runs[2])],
            key: unknown(&text(&key, "id")),
            function: ["theirs".to_owned(), "nobody".to_owned()],
            api,
        }
    }

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

    /// All that acme has, as it reads it.
    async fn of_acme(&self) -> Vec<(String, Value)> {
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
        ];
        for [run, _] in &self.runs {
            paths.extend(["", "/events", "/export", "/logs"].map(|more| format!("/v1/runs/{run}{more}")));
        }
        for [run, _] in &self.runs[..2] {
            paths.extend(["", "/timeline"].map(|more| format!("{PREFIX}/invocations/{run}{more}")));
        }
        let mut seen = Vec::new();
        for path in paths {
            let answer = self.api.server.send(Method::GET, &path, "acme-admin", None).await;
            assert_eq!(answer.status, 200, "it is there: {path}: {}", answer.text);
            seen.push((path, answer.json));
        }
        seen
    }

    async fn ask(&self, key: &str, call: &Call) -> Answer {
        let mut request = self.api.server.request(call.method.clone(), &call.path).bearer_auth(key);
        if let Some(accept) = call.accept {
            request = request.header("accept", accept);
        }
        if let Some(idempotency_key) = &call.idempotency_key {
            request = request.header("idempotency-key", idempotency_key);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        Answer::of(request).await
    }
}

#[derive(Debug, Clone)]
struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
    accept: Option<&'static str>,
    idempotency_key: Option<String>,
}

impl Call {
    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, path: path.into(), body, accept: None, idempotency_key: None }
    }
}

/// All that may tell two answers apart: which request it was, when, and the name that was asked for.
fn essence(answer: &Answer, name: &str) -> (u16, Vec<String>, String) {
    let mut json = answer.json.clone();
    if let Some(members) = json.as_object_mut() {
        for own in ["requestId", "trace_id", "createdAt"] {
            members.remove(own);
        }
    }
    let own = ["date", "x-request-id", "x-correlation-id"];
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(header, _)| !own.contains(&header.as_str()))
        .map(|(header, value)| format!("{header}: {value:?}"))
        .collect();
    headers.sort_unstable();
    let text = if json.is_null() { answer.text.clone() } else { json.to_string() };
    (answer.status.as_u16(), headers, text.replace(name, "NAME"))
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

async fn what_is_foreign_is_answered_as_what_is_not_there() {
    let two = Two::new().await;
    let before = two.of_acme().await;
    let mut asked = 0;
    for (id, method, template) in operations() {
        let named = two.named(&id).unwrap_or_else(|| panic!("{id} has no row: whose is what it names?"));
        for [foreign, unknown] in named {
            assert_eq!(foreign.len(), unknown.len());
            let path = |name: &str| {
                let path = template.replace("{id}", name).replace("{name}", name);
                path.replace("{version}", "1").replace("{alias}", "live")
            };
            assert!(!path(foreign).contains('{'), "{template}");
            let accepts: &[_] = match id.as_str() {
                "getRunEvents" | "getInvocationTimeline" => &[None, Some("text/event-stream")],
                _ => &[None],
            };
            for accept in accepts {
                for key in
                    ["globex-viewer", "globex-operator", "globex-developer", "globex-admin", "globex-platform-admin"]
                {
                    // Who runs the platform reaches every key and every registration.
                    if REACHED_BY_THE_PLATFORM.contains(&id.as_str()) && key == "globex-platform-admin" {
                        continue;
                    }
                    let call = |name| Call { accept: *accept, ..Call::new(method.clone(), path(name), body(&id)) };
                    let (theirs, nobodys) = (two.ask(key, &call(foreign)).await, two.ask(key, &call(unknown)).await);
                    let case = format!("{id} {accept:?} as {key}");
                    assert_eq!(essence(&theirs, foreign), essence(&nobodys, unknown), "{case}");
                    let expected: &[u16] = if id == "registerFunction" { &[200, 403] } else { &[403, 404] };
                    assert!(expected.contains(&theirs.status.as_u16()), "{case}: {}", theirs.text);
                    if key == "globex-admin" && id != "registerFunction" {
                        assert_eq!(theirs.status, 404, "{case}: {}", theirs.text);
                    }
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 150, "{asked}");
    assert_eq!(two.of_acme().await, before, "acme finds everything as it was");
}

/// What requests name elsewhere: in bodies, filters and parameters.
async fn what_is_foreign_in_a_body_or_a_filter_is_not_there_either() {
    let two = Two::new().await;
    let before = two.of_acme().await;
    let nobodys = |address: &str| address.replace("vendor.app", "nobody.app");
    let start = |address: &str| {
        let body = json!({"entrypoint_id": address, "mode": "sync"});
        Call::new(Method::POST, format!("{PREFIX}/invocations"), Some(body))
    };
    let dry = |address: &str| {
        let body = json!({"entrypoint_id": address, "dry_run": true});
        Call::new(Method::POST, format!("{PREFIX}/invocations"), Some(body))
    };
    let under_a_key = |address: &str| Call { idempotency_key: Some("k".to_owned()), ..start(address) };
    let get = |path: String| Call::new(Method::GET, path, None);
    let bulk = |filter: String, dry_run: bool| {
        let body = json!({"action": "cancel", "filter": filter, "dry_run": dry_run});
        Call::new(Method::POST, format!("{PREFIX}/invocations:bulk"), Some(body))
    };
    let refers = |path: &str, function: &str| {
        let mut document = definition_of("globex", WORKFLOW);
        document["implementation"]["adapter_ref"]["definition_id"] = function.into();
        Call::new(Method::POST, format!("{PREFIX}/{path}"), Some(document))
    };
    let undone_by = |path: &str, hook: &str, address: &str| {
        let mut document = definition_of("globex", &WORKFLOW.replace("flow", "other"));
        document["traits"]["workflow"]["compensation"][hook] = address.into();
        Call::new(Method::POST, format!("{PREFIX}/{path}"), Some(document))
    };
    let (running, theirs, none) = (&two.runs[1], &two.function[0], &two.function[1]);
    let (function, unknown) = (FUNCTION, nobodys(FUNCTION));
    // (foreign, unknown, what the two differ in, status)
    let mut rows: Vec<(Call, Call, [String; 2], u16)> = Vec::new();
    let addresses = || [function.to_owned(), unknown.clone()];
    for make in [&start as &dyn Fn(&str) -> Call, &dry, &under_a_key] {
        rows.push((make(function), make(&unknown), addresses(), 404));
    }
    for path in ["entrypoints", "entrypoints:validate"] {
        for (more, status) in [("", 422), (":live", 422), (":1", 422)] {
            let (foreign, unknown) = (format!("{theirs}{more}"), format!("{none}{more}"));
            rows.push((refers(path, &foreign), refers(path, &unknown), two.function.clone(), status));
        }
        for hook in ["on_failure", "on_cancel"] {
            rows.push((undone_by(path, hook, function), undone_by(path, hook, &unknown), addresses(), 422));
        }
    }
    for list in ["invocations", "invocations:counts", "entrypoints"] {
        let tenants = ["acme", "nobo"].map(str::to_owned);
        let of = |tenant: &str| get(format!("{PREFIX}/{list}?tenant_id={tenant}"));
        rows.push((of(&tenants[0]), of(&tenants[1]), tenants.clone(), 200));
    }
    for list in ["invocations?entrypoint_id=", "invocations:counts?entrypoint_id=", "entrypoints?entrypoint_id_prefix="]
    {
        let of = |address: &str| get(format!("{PREFIX}/{list}{address}"));
        rows.push((of(function), of(&unknown), addresses(), 200));
    }
    for field in ["id", "invocation_id"] {
        let of = |id: &str| get(format!("{PREFIX}/invocations?%24filter={field}%20eq%20%27{id}%27"));
        rows.push((of(&running[0]), of(&running[1]), running.clone(), 200));
        for dry_run in [true, false] {
            let of = |id: &str| bulk(format!("{field} eq '{id}'"), dry_run);
            rows.push((of(&running[0]), of(&running[1]), running.clone(), 200));
        }
    }
    let of = |tenant: &str| bulk(format!("tenant_id eq '{tenant}' or status eq 'running'"), false);
    rows.push((of("acme"), of("nobo"), ["acme", "nobo"].map(str::to_owned), 200));
    for path in ["/v1/keys", "/v1/audit"] {
        let of = |tenant: &str| get(format!("{path}?tenantId={tenant}"));
        rows.push((of("acme"), of("nobo"), ["acme", "nobo"].map(str::to_owned), 403));
    }
    for (theirs, nobodys, names, status) in rows {
        let (foreign, unknown) = (two.ask("globex-admin", &theirs).await, two.ask("globex-admin", &nobodys).await);
        assert_eq!(foreign.status, status, "{theirs:?}: {}", foreign.text);
        assert_eq!(essence(&foreign, &names[0]), essence(&unknown, &names[1]), "{theirs:?}");
        if status == 200 {
            let items = foreign.json["items"].as_array().unwrap_or_else(|| panic!("no list: {}", foreign.text));
            let all: u64 = items.iter().map(|item| item["count"].as_u64().unwrap_or(1)).sum();
            assert_eq!(all, 0, "{theirs:?}: {}", foreign.text);
        }
    }
    assert_eq!(two.of_acme().await, before, "acme finds everything as it was");
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
        two.ask(key, &Call { idempotency_key: Some("order-7".to_owned()), ..call }).await
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
    an_idempotency_key_is_its_tenants,
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
