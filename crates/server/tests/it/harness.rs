//! A server on a free port, and requests to it.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use servo_adapter::Handlers;
use servo_adapter::mock::Mock;
use servo_canon::Digest;
use servo_model::{Role, RunId, TenantId};
use servo_runtime::serverless::{Platform, Serverless};
use servo_runtime::{Clock, Ids, InProcessBus, Parts, Runtime, RuntimeConfig, Shutdown, SystemClock, Tasks, Types};
use servo_server::auth::{Auth, Key};
use servo_server::config::ServerConfig;
use servo_server::{App, PlanSources, Tls};
use servo_store::testkit::faulty::{FaultyStore, Plan};
use tokio::net::TcpListener;

use crate::backend::Backend;
use crate::lint;

/// What a test may want different.
pub(crate) struct Options {
    pub(crate) auth: Auth,
    pub(crate) server: ServerConfig,
    pub(crate) runtime: RuntimeConfig,
    pub(crate) plan_sources: Vec<String>,
    pub(crate) loopback: bool,
    pub(crate) dev: bool,
    pub(crate) tls: Option<Tls>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) handlers: Arc<dyn Handlers>,
    pub(crate) backend: Backend,
    /// Counts the calls of the store, and lets some fail.
    pub(crate) store_plan: Option<Plan>,
    /// What the serverless runtime is told differently.
    pub(crate) platform: fn(&mut Platform),
}

impl Default for Options {
    fn default() -> Self {
        let mut runtime = RuntimeConfig { poll_ms: 20, shutdown_grace_ms: 100, ..RuntimeConfig::default() };
        // Long enough that nothing expires while a test looks.
        runtime.authority.lease_ms = 600_000;
        Self {
            auth: Auth::Development,
            server: ServerConfig::default(),
            runtime,
            plan_sources: Vec::new(),
            loopback: true,
            dev: false,
            tls: None,
            clock: Arc::new(SystemClock),
            handlers: Arc::new(servo_adapter::handler::NoHandlers),
            backend: Backend::here(),
            store_plan: None,
            platform: |_| {},
        }
    }
}

#[cfg(feature = "sabotage")]
impl Options {
    /// With a broken variant of the runtime or the server, for controls.
    pub(crate) fn broken(mut self, variant: &str) -> Self {
        self.runtime.sabotage = Some(variant.to_owned());
        self
    }
}

/// Keys `acme-viewer` … `globex-platform-admin`, each its own name.
pub(crate) fn keys() -> Auth {
    let mut keys = Vec::new();
    for tenant in ["acme", "globex"] {
        for (role, name) in ROLES {
            let name = format!("{tenant}-{name}");
            let sha256 = Digest::of(name.as_bytes());
            keys.push(Key {
                name,
                tenant: TenantId::parse(tenant).unwrap(),
                roles: vec![role],
                sha256,
                self_made: true,
            });
        }
    }
    Auth::Keys { keys, access_keys: Vec::new() }
}

pub(crate) const ROLES: [(Role, &str); 5] = [
    (Role::Viewer, "viewer"),
    (Role::Operator, "operator"),
    (Role::Developer, "developer"),
    (Role::Admin, "admin"),
    (Role::PlatformAdmin, "platform-admin"),
];

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) runtime: Runtime,
    pub(crate) shutdown: Shutdown,
    pub(crate) tasks: Tasks,
    client: reqwest::Client,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let clock = options.clock.clone();
        let (limits, time) = (options.runtime.limits.clone(), Arc::new(move || clock.now()));
        let mut store = options.backend.open(limits, time).await;
        if let Some(plan) = options.store_plan {
            store = Arc::new(FaultyStore::new(store, plan));
        }
        let tasks = Tasks::on_tokio();
        let runtime = Runtime::start(Parts {
            store,
            clock: options.clock,
            ids: Arc::new(Ids::from_os()),
            tasks: tasks.clone(),
            bus: Arc::new(InProcessBus::default()),
            adapters: vec![Arc::new(Mock)],
            handlers: options.handlers,
            spans: None,
            types: Types::published(),
            config: options.runtime.clone(),
        })
        .await
        .unwrap();
        let mut platform = Platform::new(runtime.engine());
        (options.platform)(&mut platform);
        let serverless = Serverless::new(runtime.executions().clone(), platform);
        let shutdown = Shutdown::default();
        let bytes_max = options.runtime.limits.request_body_bytes_max;
        let app = App::new(servo_server::Parts {
            host: Arc::new(servo_server::host::NoHost),
            runtime: runtime.clone(),
            sight: serverless.sight().clone(),
            serverless: Arc::new(serverless),
            auth: options.auth,
            plan_sources: PlanSources::new(&options.plan_sources, bytes_max).unwrap(),
            config: options.server,
            loopback: options.loopback,
            dev: options.dev,
            shutdown: shutdown.clone(),
        })
        .await
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (serving, tls) = (tasks.clone(), options.tls);
        tasks.spawn("server", async move { servo_server::serve(listener, tls, app, &serving).await });
        let server = Self { address, runtime, shutdown, tasks, client: client() };
        server.until_ready().await;
        server
    }

    /// The authority is taken by a loop, a moment after the start.
    async fn until_ready(&self) {
        wait_for("the runtime to be ready", async || {
            let snapshot = self.runtime.snapshot().await.unwrap();
            snapshot.readiness.ready.then_some(())
        })
        .await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        // What is not JSON is refused, but for where any body is taken.
        let has_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        let request = self.client.request(method, self.url(path));
        if has_body { request.header("content-type", "application/json") } else { request }
    }

    /// Sends and lints. `key` is left out when empty.
    pub(crate) async fn send(&self, method: Method, path: &str, key: &str, body: Option<&Value>) -> Answer {
        let mut request = self.request(method, path);
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        Answer::of(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, "", Some(body)).await
    }

    /// A body as it is written.
    pub(crate) async fn post_text(&self, path: &str, body: &str) -> Answer {
        Answer::of(self.request(Method::POST, path).body(body.to_owned())).await
    }

    /// Puts an exported run into this server's store. The file must not be parsed and written anew on the way.
    pub(crate) async fn import_as(&self, key: &str, file: &Answer) -> Answer {
        let mut request = self.request(Method::POST, "/v1/runs/import").body(file.text.clone());
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        Answer::of(request).await
    }

    /// Starts a run as a principal and gives its id.
    pub(crate) async fn start_as(&self, key: &str, steps: Value) -> RunId {
        let answer = self.send(Method::POST, "/v1/runs", key, Some(&start(steps))).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.run_id()
    }

    pub(crate) async fn start_run(&self, steps: Value) -> RunId {
        self.start_as("", steps).await
    }

    /// The events of a run, up to its end.
    pub(crate) async fn follow(&self, run: &RunId, key: &str) -> Vec<Frame> {
        let mut request =
            self.request(Method::GET, &format!("/v1/runs/{run}/events")).header("accept", "text/event-stream");
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        frames(&response.text().await.unwrap())
    }

    /// Waits for the run's end and gives its snapshot.
    pub(crate) async fn finish(&self, run: &RunId) -> Value {
        self.follow(run, "").await;
        self.get(&format!("/v1/runs/{run}")).await.json
    }
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// An answer that has passed the linter.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
    /// Null when the body is not JSON.
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.unwrap();
        let method = request.method().clone();
        let bearer = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let caller = bearer.trim_start_matches("Bearer ").to_owned();
        let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
        let sent = format!("{} {}", request.url(), String::from_utf8_lossy(body));
        let response = client.execute(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let path = response.url().path().to_owned();
        let text = response.text().await.unwrap();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        let answer = Self { status, headers, text, json };
        lint::check(&answer, &path);
        lint::check_foreign(&answer, &caller, &sent);
        lint::described::check(&answer, &method, &path);
        answer
    }

    pub(crate) fn run_id(&self) -> RunId {
        RunId::parse(self.json["runId"].as_str().unwrap_or_else(|| panic!("no runId in {}", self.text))).unwrap()
    }

    /// Checks that it is this problem.
    #[track_caller]
    pub(crate) fn is_problem(&self, code: &str) {
        assert_eq!(self.json["code"], code, "{}", self.text);
    }

    #[track_caller]
    pub(crate) fn names(&self, pointer: &str) {
        assert_eq!(self.json["errors"][0]["pointer"], pointer, "{}", self.text);
    }
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

pub(crate) fn frames(text: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty() && !block.starts_with(':')) {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        let data = serde_json::from_str(&field("data: ")).unwrap_or_else(|error| panic!("{error} in {block}"));
        frames.push(Frame { id: field("id: "), event: field("event: "), data });
    }
    frames
}

/// A plan of these steps.
#[expect(clippy::needless_pass_by_value, reason = "callers write the steps in place")]
pub(crate) fn plan(steps: Value) -> Value {
    json!({"planId": "demo", "planVersion": "1", "schemaVersion": "v1", "engineType": "mock", "steps": steps})
}

pub(crate) fn plan_ref(plan: &Value) -> Value {
    let sha256 = servo_canon::fingerprint(plan).unwrap();
    json!({"sha256": sha256, "schemaVersion": "v1", "planId": "demo", "planVersion": "1"})
}

/// A request to start a run of these steps.
pub(crate) fn start(steps: Value) -> Value {
    let plan = plan(steps);
    json!({"planRef": plan_ref(&plan), "plan": plan})
}

pub(crate) fn one_step() -> Value {
    json!([{"stepId": "a"}])
}

/// A step that stays in flight for as long as any test lasts.
pub(crate) fn endless() -> Value {
    json!([{"stepId": "a", "with": {"sleepMs": 3_600_000}}])
}

/// Asks again until there is an answer.
pub(crate) async fn wait_for<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(5));
    for _ in 0..6_000 {
        ticks.tick().await;
        if let Some(answer) = ask().await {
            return answer;
        }
    }
    panic!("waited in vain for {what}");
}
