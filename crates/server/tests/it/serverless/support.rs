//! Handlers that do as their params say, and requests to the API.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};

use crate::harness::{Answer, Options, Server, wait_for};

pub(super) const PREFIX: &str = "/api/serverless-runtime/v1";

pub(super) fn err(name: &str) -> String {
    format!("gts.x.core.serverless.err.v1~x.core.serverless.err.{name}.v1~")
}

/// Answers with its input, fails or hangs, as the input says; counts its calls, and keeps what the durable ones that hang were given.
#[derive(Default)]
pub(crate) struct Obedient {
    pub(super) calls: AtomicUsize,
    hanging: Mutex<Vec<Value>>,
}

impl Obedient {
    /// The envelopes of invocations that hang: each has its ARN and the token for its next checkpoint.
    pub(crate) fn hanging(&self) -> Vec<Value> {
        self.hanging.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Handlers for Obedient {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let payload: Value = serde_json::from_str(&call.payload).unwrap();
        let durable = call.spec.durable;
        let input: Value = match &payload["InitialExecutionState"]["Operations"][0]["ExecutionDetails"]["InputPayload"]
        {
            Value::String(text) if durable => serde_json::from_str(text).unwrap(),
            _ => payload.clone(),
        };
        let error = json!({"ErrorType": "Boom", "ErrorMessage": "no"});
        match (input["do"].as_str(), durable) {
            (Some("hang"), _) => {
                if durable {
                    self.hanging.lock().unwrap_or_else(PoisonError::into_inner).push(payload);
                }
                std::future::pending().await
            }
            (Some("fail"), true) => Ok(json!({"Status": "FAILED", "Error": error}).to_string().into()),
            (Some("fail"), false) => {
                let error = servo_model::operation::ErrorObject::new("Boom", "no");
                Err(HandlerFailure::new(servo_adapter::FailureKind::Failed, error))
            }
            (_, true) => Ok(json!({"Status": "SUCCEEDED", "Result": input.to_string()}).to_string().into()),
            (_, false) => Ok(input.to_string().into()),
        }
    }
}

/// A server with a plain function `plain` and a durable one `durable`, for each tenant that is asked for.
pub(super) struct Api {
    pub(super) server: Server,
    pub(super) handler: Arc<Obedient>,
}

pub(crate) const FUNCTION: &str =
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.echo.v1~";
pub(super) const WORKFLOW: &str =
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~vendor.app.flow.v1~";

pub(super) fn definition(address: &str) -> Value {
    definition_of("default", address)
}

pub(crate) fn definition_of(tenant: &str, address: &str) -> Value {
    let workflow = address.contains("workflow");
    let params = json!({"type": "object", "properties": {"do": {"type": "string"}, "amount": {"type": "number"}}});
    let mut document = json!({
        "entrypoint_id": address, "version": "1.0.0", "title": "Echo", "tags": ["test"],
        "owner": {"owner_type": "tenant", "id": tenant, "tenant_id": tenant},
        "schema": {"params": params, "returns": {"type": "object"}, "errors": []},
        "traits": {
            "invocation": {"supported": ["sync", "async"], "default": "async"},
            "limits": {"timeout_seconds": 30}, "retry": {"max_attempts": if workflow { 3 } else { 1 }},
        },
        "implementation": {
            "adapter": "gts.x.core.serverless.adapter.lambda.v1~", "kind": "adapter_ref",
            "adapter_ref": {"definition_id": if workflow { "durable" } else { "plain" }},
        },
    });
    if workflow {
        document["traits"]["workflow"] = json!({
            "compensation": {"on_failure": null, "on_cancel": null},
            "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 30,
        });
    }
    document
}

impl Api {
    pub(super) async fn start() -> Self {
        Self::with(Options::default(), &[""]).await
    }

    /// With the functions registered by each of these keys.
    pub(super) async fn with(options: Options, keys: &[&str]) -> Self {
        let handler = Arc::new(Obedient::default());
        let server = Server::with(Options { handlers: handler.clone(), ..options }).await;
        for key in keys {
            for (name, durable) in [("plain", false), ("durable", true)] {
                let spec = json!({"reach": {"kind": "inProcess"}, "durable": durable});
                let answer = server.send(Method::PUT, &format!("/v1/functions/{name}"), key, Some(&spec)).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
            }
        }
        Self { server, handler }
    }

    pub(super) fn calls(&self) -> usize {
        self.handler.calls.load(Ordering::SeqCst)
    }

    pub(super) async fn send(&self, method: Method, path: &str, key: &str, body: Option<&Value>) -> Answer {
        self.server.send(method, &format!("{PREFIX}{path}"), key, body).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, "", Some(body)).await
    }

    /// Registers and gives the registration's id.
    pub(super) async fn register(&self, document: &Value) -> String {
        let answer = self.post("/entrypoints", document).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn act(&self, id: &str, action: &str) -> Answer {
        self.post(&format!("/entrypoints/{id}:status"), &json!({"action": action})).await
    }

    pub(super) async fn activate(&self, document: &Value) -> String {
        let id = self.register(document).await;
        let answer = self.act(&id, "activate").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        id
    }

    /// A start with headers.
    pub(super) async fn invoke(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.server.request(Method::POST, &format!("{PREFIX}/invocations")).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    }

    /// Starts one and gives its id.
    pub(super) async fn begin(&self, address: &str, params: &Value) -> String {
        let answer = self.invoke(&json!({"entrypoint_id": address, "params": params}), &[]).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json["record"]["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn until(&self, id: &str, status: &str) -> Value {
        wait_for(&format!("{id} to be {status}"), async || {
            let record = self.get(&format!("/invocations/{id}")).await.json;
            (record["status"] == status).then_some(record)
        })
        .await
    }

    pub(super) async fn control(&self, id: &str, action: &str) -> Answer {
        self.post(&format!("/invocations/{id}:control"), &json!({"action": action})).await
    }
}

#[track_caller]
pub(super) fn refused(answer: &Answer, status: u16, name: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.json["code"].as_str()),
        (status, Some(err(name).as_str())),
        "{}",
        answer.text
    );
}

/// The paths that a validation error names.
pub(super) fn paths(answer: &Answer) -> Vec<&str> {
    answer.json["errors"].as_array().into_iter().flatten().filter_map(|error| error["path"].as_str()).collect()
}
