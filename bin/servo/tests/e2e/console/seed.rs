//! Something to look at: entrypoints and invocations of every kind.

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::process::Servo;
use crate::support::until;

const FUNCTION: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~";
const WORKFLOW: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~";
const API: &str = "/api/serverless-runtime/v1";

/// Markup that would run if anything took it for markup.
pub(super) const MARKUP: &str = "<img src=x onerror=\"window.broken = 1\"><script>window.broken = 1</script>";

pub(super) const FULFIL: &str = r#"
def main(ctx, input):
    held = ctx.step("reserve stock", lambda: "r-" + input.order_id)
    answer = ctx.wait_signal("approval")
    parcels = ctx.map(["books", "games"], lambda part: ctx.step("pack " + part, lambda: part))
    return {"held": held, "by": answer.by, "parcels": parcels}
"#;

/// A development server and a client of it.
pub(super) struct Shop {
    pub(super) servo: Servo,
    client: reqwest::Client,
    _folder: TempDir,
}

impl Shop {
    pub(super) fn open() -> Self {
        Self::with(&[])
    }

    /// With settings of its own, as variables.
    pub(super) fn with(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let servo = Servo::dev(&folder.path().join("data"), variables).expect("it starts");
        let _ = rustls::crypto::ring::default_provider().install_default();
        // The server closes connections that say nothing; one that is about to be closed must not be used again.
        let patience = std::time::Duration::from_secs(2);
        let client = reqwest::Client::builder().no_proxy().pool_idle_timeout(patience).build().expect("a client");
        Self { servo, client, _folder: folder }
    }

    pub(super) fn page(&self, path: &str) -> String {
        format!("{}/console/{path}", self.servo.url)
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{API}{path}", self.servo.url)).json(body);
        let response = request.send().await.expect("an answer");
        let (status, document) = (response.status(), response.json().await.expect("JSON"));
        assert!(status.is_success(), "{path}: {document}");
        document
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let response = self.client.get(format!("{}{path}", self.servo.url)).send().await.expect("an answer");
        assert!(response.status().is_success(), "{path}: {}", response.status());
        response.json().await.expect("JSON")
    }

    /// Puts an exported run into this store.
    pub(super) async fn put_run(&self, file: &Value) {
        let request = self.client.post(format!("{}/v1/runs/import", self.servo.url)).json(file);
        let response = request.send().await.expect("an answer");
        assert!(response.status().is_success(), "{}", response.text().await.unwrap_or_default());
    }

    /// A function whose workers would ask for work.
    pub(super) async fn publish(&self, name: &str) {
        let request = self.client.put(format!("{}/v1/functions/{name}", self.servo.url));
        let response = request.json(&json!({"reach": {"kind": "pull"}})).send().await.expect("an answer");
        assert!(response.status().is_success(), "{}", response.status());
    }

    /// Registers and activates; gives back the address and the id of the registration.
    pub(super) async fn register(&self, workflow: bool, name: &str, title: &str, source: &str) -> (String, String) {
        self.activate(&definition(workflow, name, title, source)).await
    }

    /// A workflow that is undone by another program when it fails.
    pub(super) async fn register_undone(&self, name: &str, source: &str, undo: &str) -> String {
        let mut undoes = definition(false, &format!("{name}.undo"), "Undoes", undo);
        // It is called with what is to be undone.
        undoes["schema"]["params"] = json!({"type": "object"});
        let (undoes, _) = self.activate(&undoes).await;
        let mut document = definition(true, name, name, source);
        document["traits"]["workflow"]["compensation"]["on_failure"] = undoes.into();
        self.activate(&document).await.0
    }

    async fn activate(&self, document: &Value) -> (String, String) {
        let registered = self.post("/entrypoints", document).await;
        let id = registered["id"].as_str().expect("an id").to_owned();
        self.post(&format!("/entrypoints/{id}:status"), &json!({"action": "activate"})).await;
        (registered["entrypoint_id"].as_str().expect("an address").to_owned(), id)
    }

    pub(super) async fn start(&self, address: &str, mode: &str, params: Value) -> String {
        let request = json!({"entrypoint_id": address, "mode": mode, "params": params});
        let answer = self.post("/invocations", &request).await;
        answer["record"]["id"].as_str().expect("an id").to_owned()
    }

    /// So many, each to its end, a few at a time: a tenant has a quota of runs under way.
    pub(super) async fn start_many(&self, address: &str, count: usize) {
        let each = |number: usize| self.start(address, "sync", json!({"order_id": format!("o-{number}")}));
        stream::iter((0..count).map(each)).buffer_unordered(64).for_each(|_| async {}).await;
    }

    pub(super) async fn until(&self, id: &str, status: &str) {
        until(&format!("{id} is {status}"), async || {
            let path = format!("{}{API}/invocations/{id}", self.servo.url);
            let record: Value = self.client.get(path).send().await.ok()?.json().await.ok()?;
            (record["status"] == status).then_some(())
        })
        .await;
    }
}

fn definition(workflow: bool, name: &str, title: &str, source: &str) -> Value {
    let kind = if workflow { WORKFLOW } else { FUNCTION };
    let mut document = json!({
        "entrypoint_id": format!("{kind}shop.app.{name}.v1~"), "version": "1.0.0", "title": title,
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "schema": {"params": params(), "returns": {}},
        "traits": {"invocation": {"supported": ["sync", "async"], "default": "async"},
            "limits": {"timeout_seconds": 60}, "retry": {"max_attempts": 1}},
        "implementation": {"adapter": "gts.x.core.serverless.adapter.starlark.v1~", "kind": "code",
            "code": {"language": "starlark", "source": source}},
    });
    if workflow {
        document["traits"]["workflow"] = json!({"compensation": {"on_failure": null, "on_cancel": null},
            "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 30});
    }
    document
}

fn params() -> Value {
    json!({"type": "object", "required": ["order_id"], "properties": {
        "order_id": {"type": "string", "title": "Order", "minLength": 1},
        "amount": {"type": "number", "title": "Amount"},
        "gift": {"type": "boolean", "title": "Gift"},
    }})
}
