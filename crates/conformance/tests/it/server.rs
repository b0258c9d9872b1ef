//! The engine on SQLite in a folder of its own, behind the HTTP server on a free port.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};
use servo_runtime::serverless::{Platform, Serverless};
use servo_runtime::{
    Clock as _, Ids, InProcessBus, Parts, Runtime, RuntimeConfig, Shutdown, SystemClock, Tasks, Types,
};
use servo_server::config::ServerConfig;
use servo_server::{App, PlanSources};
use servo_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

use crate::service::Service;
use crate::worker::{Body, Worker};

pub(crate) struct Server {
    service: Service,
    base: String,
    client: reqwest::Client,
    pub(crate) worker: Arc<Worker>,
    _folder: tempfile::TempDir,
    _runtime: Runtime,
}

/// Handlers that are there once the server has an address for them to talk to.
#[derive(Default)]
struct Later(OnceLock<Arc<Worker>>);

#[async_trait]
impl Handlers for Later {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        self.0.get().unwrap().call(*call).await.map(Reply::from)
    }
}

impl Server {
    pub(crate) async fn start(service: Service, bodies: BTreeMap<String, Body>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = RuntimeConfig { poll_ms: 20, shutdown_grace_ms: 100, ..RuntimeConfig::default() };
        // Long enough that nothing expires while a test looks.
        config.authority.lease_ms = 600_000;
        let store = servo_store_sqlite::Config::new(folder.path(), Arc::new(|| SystemClock.now()));
        let (tasks, later) = (Tasks::on_tokio(), Arc::new(Later::default()));
        let runtime = Runtime::start(Parts {
            store: Arc::new(SqliteStore::open(store).unwrap()),
            clock: Arc::new(SystemClock),
            ids: Arc::new(Ids::from_os()),
            tasks: tasks.clone(),
            bus: Arc::new(InProcessBus::default()),
            adapters: Vec::new(),
            handlers: later.clone(),
            spans: None,
            types: Types::published(),
            config: config.clone(),
        })
        .await
        .unwrap();
        let serverless = Serverless::new(runtime.executions().clone(), Platform::new(runtime.engine()));
        let app = App::new(servo_server::Parts {
            sight: serverless.sight().clone(),
            serverless: Arc::new(serverless),
            host: Arc::new(servo_server::host::NoHost),
            runtime: runtime.clone(),
            auth: service.auth(),
            plan_sources: PlanSources::new(&[], config.limits.request_body_bytes_max).unwrap(),
            config: ServerConfig::default(),
            loopback: true,
            dev: false,
            shutdown: Shutdown::default(),
        })
        .await
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = tasks.clone();
        tasks.spawn("server", async move { servo_server::serve(listener, None, app, &serving).await });
        let worker = Arc::new(Worker::new(service.client(&base), bodies));
        assert!(later.0.set(worker.clone()).is_ok());
        // The SDK's own client installs what TLS needs, which reqwest asks for even without TLS.
        servo_sdk::ServoClient::new(&base, None).unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let server = Self { service, base, client, worker, _folder: folder, _runtime: runtime.clone() };
        while !runtime.snapshot().await.unwrap().readiness.ready {
            server.pause().await;
        }
        server
    }

    #[cfg(feature = "aws")]
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Between two looks at something that is not there yet.
    pub(crate) async fn pause(&self) {
        SystemClock.sleep(std::time::Duration::from_millis(50)).await;
    }

    pub(crate) async fn register(&self, function: &str) {
        let spec = json!({"reach": {"kind": "inProcess"}});
        let path = format!("/v1/functions/{function}");
        let (status, _, text) = self.send(Method::PUT, &path, &[], spec.to_string()).await;
        assert_eq!(status, 200, "{text}");
    }

    /// Status, ARN of the execution and body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> (u16, Option<String>, String) {
        let mut request = self.client.request(method, format!("{}{path}", self.base)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = self.service.token() {
            request = request.bearer_auth(token);
        }
        if path.starts_with("/v1/") {
            request = request.header("content-type", "application/json");
        }
        let response = request.send().await.unwrap();
        let arn = response.headers().get("x-amz-durable-execution-arn").map(|arn| arn.to_str().unwrap().to_owned());
        (response.status().as_u16(), arn, response.text().await.unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, _, text) = self.send(Method::GET, path, &[], String::new()).await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}
