//! Something for every operation to act on, each with its own: what one operation deletes another one may want to read.
//!
//! The server's own description gets examples that name what is there. Nothing else of it is changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::until;

const FUNCTION: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~";
const WORKFLOW: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~";
const ENTRYPOINTS: &str = "/api/serverless-runtime/v1/entrypoints";
const INVOCATIONS: &str = "/api/serverless-runtime/v1/invocations";
const TAX: &str = "def main(ctx, input):\n    ctx.log('a line')\n    return {'tax': 1}\n";
const ORDER: &str = "def main(ctx, input):\n    return ctx.wait_signal('approval')\n";
const AN_HOUR_MS: u64 = 3_600_000;

/// A description with examples, and the bodies of those by operation, as they are to be sent.
pub(super) struct Seeded {
    pub(super) document: Value,
    pub(super) bodies: BTreeMap<&'static str, String>,
}

struct Garden<'a> {
    client: reqwest::Client,
    api: &'a str,
    /// Also the tenant's name.
    key: &'a str,
}

impl Garden<'_> {
    async fn text(&self, method: reqwest::Method, path: &str, body: Option<&Value>) -> String {
        let mut request = self.client.request(method, format!("{}{path}", self.api)).bearer_auth(self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.expect("an answer");
        let (status, text) = (response.status(), response.text().await.expect("text"));
        assert!(status.is_success(), "{path}: {status}: {text}");
        text
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(reqwest::Method::GET, path, None).await).expect("JSON")
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.text(reqwest::Method::POST, path, Some(body)).await).expect("JSON")
    }

    async fn until(&self, path: &str, status: &str) {
        until(path, async || (self.get(path).await["status"] == status).then_some(())).await;
    }

    fn definition(&self, kind: &str, name: &str, source: &str) -> Value {
        let mut document = json!({
            "entrypoint_id": format!("{kind}acme.app.{name}.v1~"), "version": "1.0.0", "title": name,
            "owner": {"owner_type": "tenant", "id": self.key, "tenant_id": self.key},
            "schema": {"params": {"type": "object"}, "returns": {}},
            "traits": {"invocation": {"supported": ["sync", "async"], "default": "async"},
                "limits": {"timeout_seconds": 20}, "retry": {"max_attempts": 1}},
            "implementation": {"adapter": "gts.x.core.serverless.adapter.starlark.v1~", "kind": "code",
                "code": {"language": "starlark", "source": source}},
        });
        if kind == WORKFLOW {
            let checkpointing = json!({"strategy": "automatic"});
            document["traits"]["workflow"] =
                json!({"compensation": {}, "checkpointing": checkpointing, "max_suspension_days": 1});
        }
        document
    }

    /// Its id.
    async fn draft(&self, kind: &str, name: &str, source: &str) -> String {
        let registered = self.post(ENTRYPOINTS, &self.definition(kind, name, source)).await;
        word(&registered["id"])
    }

    /// Its id and its address.
    async fn active(&self, kind: &str, name: &str, source: &str) -> (String, String) {
        let id = self.draft(kind, name, source).await;
        let active = self.post(&format!("{ENTRYPOINTS}/{id}:status"), &json!({"action": "activate"})).await;
        (id, word(&active["entrypoint_id"]))
    }

    async fn invocation(&self, address: &str, mode: &str, status: &str) -> String {
        let request = json!({"entrypoint_id": address, "mode": mode, "params": {}});
        let started = self.post(INVOCATIONS, &request).await;
        let id = word(&started["record"]["id"]);
        self.until(&format!("{INVOCATIONS}/{id}"), status).await;
        id
    }

    /// A run that is over at once, or one that is not for an hour.
    async fn run(&self, request_id: &str, sleep_ms: u64) -> String {
        let started = self.post("/v1/runs", &plan(request_id, sleep_ms)).await;
        let id = word(&started["runId"]);
        if sleep_ms == 0 {
            self.until(&format!("/v1/runs/{id}"), "COMPLETED").await;
        }
        id
    }

    async fn function(&self, name: &str) -> String {
        let path = format!("/v1/functions/{name}");
        self.text(reqwest::Method::PUT, &path, Some(&json!({"reach": {"kind": "pull"}}))).await;
        name.to_owned()
    }
}

fn word(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn plan(request_id: &str, sleep_ms: u64) -> Value {
    let plan = json!({"planId": "p", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "a", "with": {"sleepMs": sleep_ms}}]});
    let sha256 = servo_canon::fingerprint(&plan).expect("plans are finite").to_string();
    let plan_ref = json!({"sha256": sha256, "schemaVersion": "v1", "planId": "p", "planVersion": "1"});
    json!({"plan": plan, "runRequestId": request_id, "planRef": plan_ref})
}

/// With the key of somebody who may do everything, which is also the name of the tenant.
pub(super) async fn seed(api: &str, key: &str) -> Seeded {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let garden = Garden { client, api, key };
    let document = garden.get("/openapi.json").await;
    let mut seeded = Seeded { document, bodies: BTreeMap::new() };
    entrypoints(&garden, &mut seeded).await;
    runs(&garden, &mut seeded).await;
    functions(&garden, &mut seeded).await;
    seeded
}

async fn entrypoints(garden: &Garden<'_>, seeded: &mut Seeded) {
    let definition = |name: &str| Some(garden.definition(FUNCTION, name, TAX));
    let (tax, address) = garden.active(FUNCTION, "tax", TAX).await;
    let (_, order) = garden.active(WORKFLOW, "order", ORDER).await;
    seeded.example("registerEntrypoint", &[], definition("new"));
    seeded.example("validateEntrypoint", &[], definition("checked"));
    seeded.example("getEntrypoint", &[("id", &tax)], None);
    let drafted = garden.draft(FUNCTION, "drafted", TAX).await;
    seeded.example("updateEntrypoint", &[("id", &drafted)], definition("drafted"));
    seeded.example("deleteEntrypoint", &[("id", &garden.draft(FUNCTION, "gone", TAX).await)], None);
    let ready = garden.draft(FUNCTION, "ready", TAX).await;
    seeded.example("setEntrypointStatus", &[("id", &ready)], Some(json!({"action": "activate"})));
    let start = json!({"entrypoint_id": address, "mode": "sync", "params": {}});
    seeded.example("startInvocation", &[], Some(start));
    let done = garden.invocation(&address, "sync", "succeeded").await;
    seeded.example("getInvocation", &[("id", &done)], None);
    seeded.example("getInvocationTimeline", &[("id", &done)], None);
    seeded.example("getRunLogs", &[("id", &done)], None);
    let waiting = garden.invocation(&order, "async", "suspended").await;
    seeded.example("controlInvocation", &[("id", &waiting)], Some(json!({"action": "cancel"})));
    let waiting = garden.invocation(&order, "async", "suspended").await;
    let signal = json!({"name": "approval", "signal_id": "s1", "payload": {}});
    seeded.example("signalInvocation", &[("id", &waiting)], Some(signal));
    let bulk = json!({"action": "cancel", "filter": "status eq 'suspended'", "dry_run": true});
    seeded.example("bulkControlInvocations", &[], Some(bulk));
}

async fn runs(garden: &Garden<'_>, seeded: &mut Seeded) {
    seeded.example("startRun", &[], Some(plan("example", 0)));
    let finished = garden.run("finished", 0).await;
    for operation in ["getRun", "getRunEvents", "exportRun"] {
        seeded.example(operation, &[("id", &finished)], None);
    }
    seeded.example("deleteRun", &[("id", &garden.run("deleted", 0).await)], None);
    let paused = garden.run("paused", AN_HOUR_MS).await;
    seeded.example("signalRun", &[("id", &paused)], Some(json!({"signalId": "s1", "type": "PAUSE"})));
    let ended = garden.run("ended", AN_HOUR_MS).await;
    seeded.example("terminateRun", &[("id", &ended)], Some(json!({"reason": "enough"})));
    let moved = garden.run("moved", 0).await;
    let file = garden.text(reqwest::Method::GET, &format!("/v1/runs/{moved}/export"), None).await;
    garden.text(reqwest::Method::DELETE, &format!("/v1/runs/{moved}"), None).await;
    seeded.example("importRun", &[], Some(serde_json::from_str(&file).expect("JSON")));
    // Its digest is over the file's text, which is not the same after it was read.
    seeded.bodies.insert("importRun", file);
}

async fn functions(garden: &Garden<'_>, seeded: &mut Seeded) {
    seeded.example("registerFunction", &[("name", "fresh")], Some(json!({"reach": {"kind": "pull"}})));
    let seen = garden.function("seen").await;
    seeded.example("getFunction", &[("name", &seen)], None);
    seeded.example("getFunctionVersion", &[("name", &seen), ("version", "1")], None);
    seeded.example("removeFunction", &[("name", &garden.function("removed").await)], None);
    let aimed = garden.function("aimed").await;
    seeded.example("putAlias", &[("name", &aimed), ("alias", "live")], Some(json!({"version": 1})));
    let named = garden.function("named").await;
    let alias = format!("/v1/functions/{named}/aliases/live");
    garden.text(reqwest::Method::PUT, &alias, Some(&json!({"version": 1}))).await;
    seeded.example("removeAlias", &[("name", &named), ("alias", "live")], None);
    let key = |name: &str| json!({"name": name, "roles": ["viewer"]});
    seeded.example("createKey", &[], Some(key("another")));
    let spare = garden.post("/v1/keys", &key("spare")).await;
    seeded.example("revokeKey", &[("id", &word(&spare["id"]))], None);
}

impl Seeded {
    /// Writes an example into the description of an operation.
    pub(super) fn example(&mut self, id: &'static str, parts: &[(&str, &str)], body: Option<Value>) {
        let paths = self.document["paths"].as_object_mut().expect("paths");
        let operation = paths.values_mut().flat_map(|methods| methods.as_object_mut().expect("methods").values_mut());
        let operation =
            operation.into_iter().find(|operation| operation["operationId"] == id).expect("it is described");
        for (name, value) in parts {
            let parameters = operation["parameters"].as_array_mut().expect("parameters");
            let parameter = parameters.iter_mut().find(|parameter| parameter["name"] == *name);
            parameter.expect("it is described")["example"] = (*value).into();
        }
        if let Some(body) = body {
            operation["requestBody"]["content"]["application/json"]["example"] = body.clone();
            self.bodies.insert(id, body.to_string());
        }
    }
}
