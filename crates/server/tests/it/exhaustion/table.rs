//! The table of limits: each at n, which is taken, and at n + 1, which is refused and leaves no trace.
//!
//! Not here, because they are elsewhere: how many requests and streams are open at once (`limits.rs`, `stream.rs`), heads
//! (`heads.rs`), and limits that no single request reaches (events of a run, versions of a function), which the stores' suites have.
//! A cursor that is too long and one that is none are refused alike, so their length shows nowhere.

use reqwest::Method;
use serde_json::{Value, json};
use servo_entrypoint::odata::{DEPTH_MAX, FILTER_BYTES_MAX, IN_MAX, ORDER_KEYS_MAX, TERMS_MAX};
use servo_entrypoint::schemas::{EXPANSION_MAX, SCHEMA_BYTES_MAX};
use servo_entrypoint::validate::{DOCUMENT_BYTES_MAX, TAG_CHARS_MAX, TAGS_MAX, TITLE_CHARS_MAX};
use servo_entrypoint::{BULK_ITEMS_MAX, LIMIT_MAX};
use servo_model::limits::{
    FUNCTION_NAME_CHARS_MAX, ID_CHARS_MAX, JSON_DEPTH_MAX, LABEL_CHARS_MAX, PAGE_SIZE_MAX, STEP_ID_CHARS_MAX,
    TEXT_CHARS_MAX,
};

use super::{FUNCTION, PREFIX, Scene, escaped};
use crate::harness::{Answer, Options, plan, plan_ref, start};
use crate::serverless::support::definition_of;

/// What is sent.
struct Ask {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

impl Ask {
    fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), headers: Vec::new(), body: None }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the body in place")]
    fn post(path: impl Into<String>, body: impl ToString) -> Self {
        Self { method: Method::POST, path: path.into(), headers: Vec::new(), body: Some(body.to_string()) }
    }

    fn put(path: impl Into<String>, body: impl ToString) -> Self {
        Self { method: Method::PUT, ..Self::post(path, body) }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    async fn sent(&self, scene: &Scene) -> Answer {
        let mut request = scene.server.request(self.method.clone(), &self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        Answer::of(request).await
    }
}

/// How a refusal is told apart: the code of `/v1`, the name of the error of the others.
struct Row {
    what: &'static str,
    most: usize,
    taken: u16,
    refused: (u16, &'static str),
    /// The request with so many of it.
    ask: fn(&Scene, usize) -> Ask,
}

const fn row(
    what: &'static str,
    most: usize,
    taken: u16,
    refused: (u16, &'static str),
    ask: fn(&Scene, usize) -> Ask,
) -> Row {
    Row { what, most, taken, refused, ask }
}

const PARAMETER: (u16, &str) = (422, "INVALID_PARAMETER");
const FIELD: (u16, &str) = (422, "SCHEMA_VALIDATION_FAILED");
const LARGE: (u16, &str) = (413, "LIMIT_EXCEEDED");
const VALIDATION: (u16, &str) = (422, "validation");
const BAD_REQUEST: (u16, &str) = (400, "bad_request");
const LAMBDA_VALUE: (u16, &str) = (400, "InvalidParameterValueException");
const LAMBDA_LARGE: (u16, &str) = (413, "RequestTooLargeException");

const STEPS_MAX: usize = 8;
const BODY_MAX: usize = 7 * MIB;
const IMPORT_MAX: usize = 5_000;
const PARAMS_MAX: usize = 6 * MIB;
const LAMBDA_BODY_MAX: usize = 12 * MIB + 256 * 1024;
const MIB: usize = 1024 * 1024;

fn x(count: usize) -> String {
    "x".repeat(count)
}

/// A text of JSON with spaces up to a size.
fn padded(document: &Value, size: usize) -> String {
    let text = document.to_string();
    format!("{text}{}", " ".repeat(size - text.len()))
}

/// A number inside so many lists.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// A definition that nobody has registered yet; sizes make them different.
fn definition(name: &str, size: usize) -> Value {
    definition_of("default", &FUNCTION.replace(".echo.", &format!(".{name}{size}.")))
}

fn registered(name: &str, size: usize, change: impl FnOnce(&mut Value)) -> Ask {
    let mut document = definition(name, size);
    change(&mut document);
    Ask::post(format!("{PREFIX}/entrypoints"), document)
}

fn invoked(params: &Value) -> Ask {
    Ask::post(format!("{PREFIX}/invocations"), json!({"entrypoint_id": FUNCTION, "params": params}))
}

fn signalled(scene: &Scene, signal: &Value) -> Ask {
    Ask::post(format!("{PREFIX}/invocations/{}:signal", scene.invocation), signal)
}

fn filtered(filter: &str) -> Ask {
    Ask::get(format!("{PREFIX}/invocations?%24filter={}", escaped(filter)))
}

fn lambda_invoke(kind: &str, size: usize) -> Ask {
    let body = format!("\"{}\"", x(size - 2));
    Ask::post("/2015-03-31/functions/plain/invocations?Qualifier=%24LATEST", body).with("x-amz-invocation-type", kind)
}

/// A schema in which so many schemas apply to one place: the outer one, and those that it wants all of.
fn expanding(count: usize) -> Value {
    json!({"type": "object", "properties": {"a": {"allOf": vec![json!({}); count - 1]}}})
}

const TABLE: [Row; 54] = [
    // The engine's API.
    row("bytes of a body", BODY_MAX, 201, LARGE, |_, n| {
        Ask::post("/v1/runs", padded(&start(json!([{"stepId": "a"}])), n))
    }),
    row("bytes of a run file", IMPORT_MAX, 400, LARGE, |_, n| Ask::post("/v1/runs/import", " ".repeat(n))),
    row("depth of a body", JSON_DEPTH_MAX, 201, FIELD, |_, n| {
        // The body, the plan, the steps, the step and its input stand around the value.
        Ask::post("/v1/runs", start(json!([{"stepId": "a", "with": {"error": nested(n - 5)}}])))
    }),
    row("steps of a plan", STEPS_MAX, 201, FIELD, |_, n| {
        Ask::post("/v1/runs", start((0..n).map(|step| json!({"stepId": format!("s{step}")})).collect()))
    }),
    row("characters of a step id", STEP_ID_CHARS_MAX, 201, FIELD, |_, n| {
        Ask::post("/v1/runs", start(json!([{"stepId": x(n)}])))
    }),
    row("bytes of a request id", 256, 201, FIELD, |_, n| {
        let mut request = start(json!([{"stepId": "a"}]));
        request["runRequestId"] = x(n).into();
        Ask::post("/v1/runs", request)
    }),
    row("characters of a plan id", ID_CHARS_MAX, 201, FIELD, |_, n| {
        let mut plan = plan(json!([{"stepId": "a"}]));
        plan["planId"] = x(n).into();
        let mut reference = plan_ref(&plan);
        reference["planId"] = x(n).into();
        Ask::post("/v1/runs", json!({"planRef": reference, "plan": plan}))
    }),
    row("characters of a signal id", ID_CHARS_MAX, 200, FIELD, |scene, n| {
        Ask::post(format!("/v1/runs/{}/signals", scene.run), json!({"signalId": x(n), "type": "PAUSE"}))
    }),
    row("runs of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |_, n| Ask::get(format!("/v1/runs?limit={n}"))),
    row("events of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |scene, n| {
        Ask::get(format!("/v1/runs/{}/events?limit={n}", scene.run))
    }),
    row("lines of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |scene, n| {
        Ask::get(format!("/v1/runs/{}/logs?limit={n}", scene.invocation))
    }),
    row("functions of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |_, n| {
        Ask::get(format!("/v1/functions?limit={n}"))
    }),
    row("entries of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |_, n| Ask::get(format!("/v1/audit?limit={n}"))),
    row("dead letters of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |_, n| {
        Ask::get(format!("/v1/dead-letters?limit={n}"))
    }),
    row("global events of a page", PAGE_SIZE_MAX as usize, 200, PARAMETER, |_, n| {
        Ask::get(format!("/runtime/events?limit={n}"))
    }),
    row("characters of a label", LABEL_CHARS_MAX, 200, PARAMETER, |_, n| Ask::get(format!("/v1/audit?actor={}", x(n)))),
    row("characters of a key's name", ID_CHARS_MAX, 201, FIELD, |_, n| {
        Ask::post("/v1/keys", json!({"name": x(n), "roles": ["viewer"]}))
    }),
    row("seconds of a key's life", 10 * 365 * 24 * 60 * 60, 201, FIELD, |_, n| {
        Ask::post("/v1/keys", json!({"name": "brief", "roles": ["viewer"], "expiresInSeconds": n}))
    }),
    row("characters of a function's name", FUNCTION_NAME_CHARS_MAX, 200, PARAMETER, |_, n| {
        Ask::put(format!("/v1/functions/{}", x(n)), json!({"reach": {"kind": "inProcess"}}))
    }),
    // The serverless runtime API.
    row("bytes of a body", BODY_MAX, 200, (413, "bad_request"), |_, n| {
        let dry = json!({"entrypoint_id": FUNCTION, "dry_run": true, "params": {}});
        Ask::post(format!("{PREFIX}/invocations"), padded(&dry, n))
    }),
    row("bytes of params", PARAMS_MAX, 201, VALIDATION, |_, n| {
        invoked(&json!({"a": x(n - json!({"a": ""}).to_string().len())}))
    }),
    row("depth of a body", JSON_DEPTH_MAX, 201, VALIDATION, |_, n| invoked(&json!({"a": nested(n - 2)}))),
    row("characters of an idempotency key", 256, 201, BAD_REQUEST, |_, n| {
        invoked(&json!({})).with("idempotency-key", x(n))
    }),
    row("comparisons of a filter", TERMS_MAX, 200, BAD_REQUEST, |_, n| {
        filtered(&vec!["mode eq 'sync'"; n].join(" or "))
    }),
    row("comparisons of a filter of entrypoints", TERMS_MAX, 200, BAD_REQUEST, |_, n| {
        let filter = vec!["status eq 'draft'"; n].join(" or ");
        Ask::get(format!("{PREFIX}/entrypoints?%24filter={}", escaped(&filter)))
    }),
    row("bytes of a filter", FILTER_BYTES_MAX, 200, BAD_REQUEST, |_, n| {
        let around = "correlation_id eq ''".len();
        filtered(&format!("correlation_id eq '{}'", x(n - around)))
    }),
    row("levels of a filter", DEPTH_MAX, 200, BAD_REQUEST, |_, n| {
        filtered(&format!("{}mode eq 'sync'{}", "(".repeat(n), ")".repeat(n)))
    }),
    row("values of a list in a filter", IN_MAX, 200, BAD_REQUEST, |_, n| {
        filtered(&format!("correlation_id in ({})", vec!["'a'"; n].join(",")))
    }),
    row("fields of an order", ORDER_KEYS_MAX, 200, BAD_REQUEST, |_, n| {
        let fields = ["created_at", "title", "version", "runtime", "status", "owner_type"];
        Ask::get(format!("{PREFIX}/entrypoints?%24orderby={}", escaped(&fields[..n].join(","))))
    }),
    row("bytes of an order", 512, 200, BAD_REQUEST, |_, n| {
        let order = format!("created_at{}desc", " ".repeat(n - "created_atdesc".len()));
        Ask::get(format!("{PREFIX}/entrypoints?%24orderby={}", escaped(&order)))
    }),
    row("invocations of a page", LIMIT_MAX as usize, 200, VALIDATION, |_, n| {
        Ask::get(format!("{PREFIX}/invocations?limit={n}"))
    }),
    row("entrypoints of a page", LIMIT_MAX as usize, 200, VALIDATION, |_, n| {
        Ask::get(format!("{PREFIX}/entrypoints?limit={n}"))
    }),
    row("entries of a timeline's page", LIMIT_MAX as usize, 200, VALIDATION, |scene, n| {
        Ask::get(format!("{PREFIX}/invocations/{}/timeline?limit={n}", scene.invocation))
    }),
    row("invocations of one action", BULK_ITEMS_MAX as usize, 200, VALIDATION, |_, n| {
        let bulk = json!({"action": "cancel", "filter": "mode eq 'sync'", "max_items": n, "dry_run": true});
        Ask::post(format!("{PREFIX}/invocations:bulk"), bulk)
    }),
    row("actions of a second", 1_000, 200, VALIDATION, |_, n| {
        let bulk = json!({"action": "cancel", "filter": "mode eq 'sync'", "per_second": n, "dry_run": true});
        Ask::post(format!("{PREFIX}/invocations:bulk"), bulk)
    }),
    row("comparisons of a filter of an action", TERMS_MAX, 200, VALIDATION, |_, n| {
        let filter = vec!["mode eq 'sync'"; n].join(" or ");
        let bulk = json!({"action": "cancel", "filter": filter, "dry_run": true});
        Ask::post(format!("{PREFIX}/invocations:bulk"), bulk)
    }),
    row("tags", TAGS_MAX, 201, VALIDATION, |_, n| {
        registered("tags", n, |document| document["tags"] = (0..n).map(|tag| json!(format!("t{tag}"))).collect())
    }),
    row("characters of a tag", TAG_CHARS_MAX, 201, VALIDATION, |_, n| {
        registered("tag", n, |document| document["tags"] = json!([x(n)]))
    }),
    row("characters of a title", TITLE_CHARS_MAX, 201, VALIDATION, |_, n| {
        registered("title", n, |document| document["title"] = x(n).into())
    }),
    row("characters of a description", TEXT_CHARS_MAX, 201, VALIDATION, |_, n| {
        registered("description", n, |document| document["description"] = x(n).into())
    }),
    row("characters of an address", 512, 201, VALIDATION, |_, n| {
        let address = |name: &str| FUNCTION.replace(".echo.", &format!(".{name}."));
        let name = format!("a{}", x(n - address("a").len()));
        let mut document = definition_of("default", FUNCTION);
        document["entrypoint_id"] = address(&name).into();
        Ask::post(format!("{PREFIX}/entrypoints"), document)
    }),
    row("bytes of a schema", SCHEMA_BYTES_MAX, 201, VALIDATION, |_, n| {
        let mut schema = json!({"type": "object", "description": ""});
        schema["description"] = x(n - schema.to_string().len()).into();
        registered("schema", n, |document| document["schema"]["params"] = schema)
    }),
    row("references of a schema", 250, 201, VALIDATION, |_, n| {
        let refer = |name: usize| (format!("p{name}"), json!({"$ref": "#/$defs/a"}));
        let properties: Value = (0..n).map(refer).collect::<serde_json::Map<_, _>>().into();
        let schema = json!({"type": "object", "$defs": {"a": {"type": "string"}}, "properties": properties});
        registered("refs", n, |document| document["schema"]["params"] = schema)
    }),
    row("schemas of one place", EXPANSION_MAX as usize, 201, VALIDATION, |_, n| {
        registered("wide", n, |document| document["schema"]["params"] = expanding(n))
    }),
    row("characters of a message's id", ID_CHARS_MAX, 200, VALIDATION, |scene, n| {
        signalled(scene, &json!({"signal_id": x(n), "name": "go"}))
    }),
    row("characters of a message's name", 128, 200, VALIDATION, |scene, n| {
        signalled(scene, &json!({"signal_id": "name", "name": x(n)}))
    }),
    row("bytes of a message", 256 * 1024, 200, VALIDATION, |scene, n| {
        signalled(scene, &json!({"signal_id": "payload", "name": "go", "payload": x(n - 2)}))
    }),
    // Lambda's API.
    row("bytes of a body", LAMBDA_BODY_MAX, 404, LAMBDA_LARGE, |_, n| {
        Ask::post("/2025-12-01/durable-executions/inv_none/stop", padded(&json!({}), n))
    }),
    row("bytes of an input that is waited for", 6 * MIB, 200, LAMBDA_LARGE, |_, n| lambda_invoke("RequestResponse", n)),
    row("bytes of an input that is not", MIB, 202, LAMBDA_LARGE, |_, n| lambda_invoke("Event", n)),
    row("depth of a body", JSON_DEPTH_MAX, 404, (400, "InvalidRequestContentException"), |_, n| {
        Ask::post("/2025-12-01/durable-executions/inv_none/stop", json!({"ErrorData": "", "more": nested(n - 1)}))
    }),
    row("characters of an execution's name", 64, 202, LAMBDA_VALUE, |_, n| {
        Ask::post("/2015-03-31/functions/durable/invocations?Qualifier=%24LATEST", r#"{"do":"hang"}"#)
            .with("x-amz-invocation-type", "Event")
            .with("x-amz-durable-execution-name", x(n))
    }),
    row("executions of a page", 1_000, 200, LAMBDA_VALUE, |_, n| {
        Ask::get(format!("/2025-12-01/functions/durable/durable-executions?MaxItems={n}"))
    }),
    row("events of a history's page", 1_000, 200, LAMBDA_VALUE, |scene, n| {
        Ask::get(format!("/2025-12-01/durable-executions/{}/history?MaxItems={n}", scene.execution))
    }),
];

/// Whether an answer is a refusal by this name.
fn is_named(answer: &Answer, name: &str) -> bool {
    let header = answer.headers.get("x-amzn-errortype").and_then(|name| name.to_str().ok());
    let code = answer.json["code"].as_str().unwrap_or_default();
    header == Some(name) || code == name || code.ends_with(&format!(".err.{name}.v1~"))
}

/// S16
#[tokio::test]
async fn every_limit_holds_at_the_limit_and_not_before_it() {
    let mut options = Options::default();
    options.runtime.limits.request_body_bytes_max = BODY_MAX;
    options.runtime.limits.steps_per_plan_max = STEPS_MAX;
    options.runtime.limits.payload_bytes_max = PARAMS_MAX;
    options.server.import_bytes_max = IMPORT_MAX;
    let scene = Scene::new(options).await;
    let mut wrong = Vec::new();
    for Row { what, most, taken, refused: (status, name), ask } in TABLE {
        let before = scene.contents().await;
        let over = ask(&scene, most + 1);
        let at = format!("{what} ({})", over.path.split('?').next().unwrap_or_default());
        let answer = over.sent(&scene).await;
        if answer.status != status || !is_named(&answer, name) {
            wrong.push(format!("{at}: {} is answered {}: {:.300}", most + 1, answer.status, answer.text));
        }
        if scene.contents().await != before {
            wrong.push(format!("{at}: {} was refused and has changed something", most + 1));
        }
        let answer = ask(&scene, most).sent(&scene).await;
        if answer.status != taken {
            wrong.push(format!("{at}: {most} is answered {}: {:.300}", answer.status, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A definition of a mebibyte has other faults, too, but not its size.
#[tokio::test]
async fn a_definition_has_a_largest_size() {
    let server = crate::harness::Server::start().await;
    let mut document = definition("large", 0);
    document["description"] = "".into();
    let around = document.to_string().len();
    for (size, path) in [(DOCUMENT_BYTES_MAX, "$.description"), (DOCUMENT_BYTES_MAX + 1, "$")] {
        document["description"] = x(size - around).into();
        let answer = server.post(&format!("{PREFIX}/entrypoints"), &document).await;
        assert_eq!(answer.status, 422, "{:.300}", answer.text);
        let paths: Vec<_> = answer.json["errors"].as_array().unwrap().iter().map(|error| &error["path"]).collect();
        assert!(paths.contains(&&json!(path)), "{size}: {paths:?}");
        assert_eq!(paths.contains(&&json!("$")), path == "$", "{size}: {paths:?}");
    }
}

/// What is handed on to a handler is not looked into, and so has no depth: however deep it is, nothing recurses.
#[tokio::test]
async fn an_input_may_be_as_deep_as_it_is_long() {
    let scene = Scene::new(Options::default()).await;
    for text in ["[".repeat(MIB), format!("{}{}", "[".repeat(MIB), "]".repeat(MIB))] {
        for function in ["plain", "durable"] {
            let path = format!("/2015-03-31/functions/{function}/invocations?Qualifier=%24LATEST");
            let answer = Ask::post(path, &text).with("x-amz-invocation-type", "DryRun").sent(&scene).await;
            assert!(answer.status.as_u16() < 500, "{:.300}", answer.text);
        }
    }
    assert_eq!(scene.server.get("/v1/runs").await.status, 200);
}

/// An id that is too long is not refused, but no other is made of it: the request has its own.
#[tokio::test]
async fn a_correlation_id_has_a_longest_form() {
    let server = crate::harness::Server::start().await;
    for (count, is_taken) in [(128, true), (129, false)] {
        let request = server.request(Method::GET, "/v1/runs").header("x-correlation-id", x(count));
        let answer = Answer::of(request).await;
        let given = answer.headers["x-correlation-id"].to_str().unwrap();
        assert_eq!((given == x(count), given == answer.headers["x-request-id"]), (is_taken, !is_taken), "{count}");
    }
}
