//! Handlers with short limits, calls, the worker's side of the Runtime API, and waiting for a condition.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Response};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers as _, Reply, Right};
use servo_adapter_lambda::{CapturedLine, LambdaHandlers, LineSink, Parts, Settings, WorkerView, WorkerWatch};
use servo_egress::Allowed;
use servo_model::contract::RuntimeEvent;
use servo_model::function::{FunctionSpec, Place, Reach};
use servo_model::{RunId, TenantId, Timestamp};
use tokio::task::JoinHandle;

pub(crate) const NOW: i64 = 1_700_000_000_000;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than any test: a call with it fails the test instead of timing out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) type Answer = Result<Reply, HandlerFailure>;

#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<CapturedLine>>);

impl LineSink for Lines {
    fn line(&self, line: CapturedLine) {
        self.0.lock().unwrap().push(line);
    }
}

/// What was said about workers.
#[derive(Default)]
pub(crate) struct Noted(Mutex<Vec<RuntimeEvent>>);

impl WorkerWatch for Noted {
    fn note(&self, event: RuntimeEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl Noted {
    pub(crate) fn all(&self) -> Vec<RuntimeEvent> {
        self.0.lock().unwrap().clone()
    }
}

impl Lines {
    pub(crate) fn all(&self) -> Vec<CapturedLine> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn find(&self, text: &str) -> Option<CapturedLine> {
        self.all().into_iter().find(|line| line.text.contains(text))
    }
}

pub(crate) struct Fixture {
    pub(crate) handlers: Arc<LambdaHandlers>,
    pub(crate) lines: Arc<Lines>,
    pub(crate) watch: Arc<Noted>,
    pub(crate) client: Client,
}

/// The handlers of tests are on this machine.
pub(crate) fn fixture() -> Fixture {
    let push_allow = Allowed { nets: vec!["127.0.0.0/8".parse().unwrap()], ..Allowed::default() };
    fixture_with(Settings { push_allow, ..Settings::default() })
}

pub(crate) fn fixture_with(settings: Settings) -> Fixture {
    let (lines, watch) = (Arc::new(Lines::default()), Arc::new(Noted::default()));
    let parts = Parts {
        now: Arc::new(|| Timestamp::from_millis(NOW)),
        lines: lines.clone(),
        watch: watch.clone(),
        api_url: "http://127.0.0.1:9999".to_owned(),
        place: Place::default(),
        environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        settings,
    };
    // Building the handlers also sets up the cryptography that the client wants.
    let handlers = Arc::new(LambdaHandlers::new(parts).unwrap());
    Fixture { handlers, lines, watch, client: Client::builder().no_proxy().build().unwrap() }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::default_tenant()
}

pub(crate) fn call(reach: Reach, request_id: &str, payload: &str) -> HandlerCall {
    HandlerCall {
        tenant: tenant(),
        subject: None,
        function: "f".to_owned(),
        version: "1".to_owned(),
        spec: FunctionSpec::new(reach),
        function_arn: Place::default().function_arn("f", "1"),
        request_id: request_id.to_owned(),
        payload: payload.to_owned(),
        timeout: LONG,
        tenant_id: None,
        client_context: None,
        trace: None,
        run_id: RunId::parse(&format!("run_{request_id}")).unwrap(),
        is_awaited: true,
        right: Right::unlimited(),
    }
}

pub(crate) fn pull_call(request_id: &str) -> HandlerCall {
    call(Reach::Pull, request_id, &format!("payload of {request_id}"))
}

#[expect(clippy::disallowed_methods, reason = "tests have no runtime::tasks")]
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}

impl Fixture {
    pub(crate) async fn open(&self) -> SocketAddr {
        self.handlers.open_pull(&tenant(), "f").await.unwrap()
    }

    /// The answer without how long the call waited, which nobody can say beforehand.
    pub(crate) fn start(&self, call: HandlerCall) -> JoinHandle<Answer> {
        let handlers = self.handlers.clone();
        let text = |reply: Reply| Reply::from(reply.text);
        spawn(async move { handlers.call(Box::new(call)).await.map(text) })
    }

    /// Starts a call and waits until it stands in the queue.
    pub(crate) async fn start_waiting(&self, request_id: &str) -> JoinHandle<Answer> {
        self.start_waiting_call(pull_call(request_id)).await
    }

    pub(crate) async fn start_waiting_call(&self, call: HandlerCall) -> JoinHandle<Answer> {
        let before = self.worker().waiting;
        let started = self.start(call);
        until("the call waits", || self.worker().waiting > before).await;
        started
    }

    /// Starts a call for a worker that asks already, so that it does not wait.
    pub(crate) async fn start_taken(&self, call: HandlerCall, address: SocketAddr) -> JoinHandle<Answer> {
        let request_id = call.request_id.clone();
        let come = async {
            until("the worker asks", || self.worker().pollers == 1).await;
            (self.start(call),)
        };
        let ((taken, _), (started,)) = soon(async { tokio::join!(self.next(address), come) }).await;
        assert_eq!(taken, request_id);
        started
    }

    /// What is seen at the only address.
    pub(crate) fn worker(&self) -> WorkerView {
        let mut views = self.handlers.workers();
        assert_eq!(views.len(), 1, "{views:?}");
        views.remove(0)
    }

    pub(crate) async fn next(&self, address: SocketAddr) -> (String, Response) {
        let response = self.client.get(url(address, "invocation/next")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        (header(&response, "Lambda-Runtime-Aws-Request-Id").unwrap(), response)
    }

    pub(crate) async fn post(&self, address: SocketAddr, path: &str, body: impl Into<reqwest::Body>) -> u16 {
        self.client.post(url(address, path)).body(body).send().await.unwrap().status().as_u16()
    }

    pub(crate) async fn respond(&self, address: SocketAddr, request_id: &str, body: &str) -> u16 {
        self.post(address, &format!("invocation/{request_id}/response"), body.to_owned()).await
    }
}

pub(crate) fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}/2018-06-01/runtime/{path}")
}

pub(crate) fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

/// Waits for a condition; the time only says when to give up.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    let wait = async {
        while !holds() {
            ticks.tick().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "in vain: {what}");
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

pub(crate) fn kind(answer: &Answer) -> &str {
    answer.as_ref().unwrap_err().error.error_type.as_deref().unwrap()
}

pub(crate) fn message(answer: &Answer) -> &str {
    answer.as_ref().unwrap_err().error.error_message.as_deref().unwrap()
}
