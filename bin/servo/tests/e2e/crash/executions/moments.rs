//! R1, R13 and R15 at the worst moment each: the server is killed right there. Each scenario is played with a whole server, and
//! (as the control) with one that is broken so that just this moment shows it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::api;
use super::check::check;
use super::ledger::Ledger;
use super::worker::{Op, Program, Worker};
use crate::support::process::Servo;
use crate::support::{PATIENCE, until};

/// Long enough for a wait of a second; what has not ended by then is given up, in controls.
#[cfg(feature = "sabotage")]
const SHORT: Duration = Duration::from_secs(12);

struct Scene {
    folder: tempfile::TempDir,
    sabotage: Option<&'static str>,
    servo: Option<Servo>,
    address: watch::Sender<String>,
    gate: watch::Sender<bool>,
    ledger: Arc<Ledger>,
    program: Program,
    arn: String,
}

fn serve(folder: &Path, sabotage: Option<&str>) -> Servo {
    let variables: Vec<(&str, &str)> = sabotage.map(|name| ("SERVO_SABOTAGE", name)).into_iter().collect();
    Servo::dev(folder, &variables).expect("the server starts")
}

impl Scene {
    async fn begin(ops: Vec<Op>, sabotage: Option<&'static str>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let servo = serve(folder.path(), sabotage);
        let (address, server) = watch::channel(servo.url.clone());
        let (gate, opened) = watch::channel(false);
        let ledger = Arc::new(Ledger::default());
        let handlers = Worker::start(ledger.clone(), server, opened).await;
        api::register(&servo.url, &handlers).await;
        let program = Program { name: "moment".to_owned(), ops };
        let arn = api::start(&api::client(), &servo.url, &program).await.expect("it starts");
        Self { folder, sabotage, servo: Some(servo), address, gate, ledger, program, arn }
    }

    async fn comes_to_gate(&self, times: usize) {
        until("the gate", async || (self.ledger.came_to_gate() >= times).then_some(())).await;
    }

    fn kill(&mut self) {
        self.servo.take().expect("it runs").kill();
        let servo = serve(self.folder.path(), self.sabotage);
        self.address.send_replace(servo.url.clone());
        self.servo = Some(servo);
    }

    /// What is wrong once the gate is open.
    async fn end(self, patience: Duration) -> Vec<String> {
        self.gate.send_replace(true);
        let servo = self.servo.expect("it runs");
        let mut findings = check(&servo.url, &self.arn, &self.program, &self.ledger, patience).await;
        findings.extend(self.ledger.findings());
        findings
    }
}

/// The handler has gone on with a step's outcome when the server dies.
async fn outcome_was_told(sabotage: Option<&'static str>, patience: Duration) -> Vec<String> {
    let mut scene = Scene::begin(vec![Op::Step(0), Op::Gate], sabotage).await;
    scene.comes_to_gate(1).await;
    scene.kill();
    // The handler of before would go on if it were let; the next one is to be asked first.
    scene.comes_to_gate(2).await;
    scene.end(patience).await
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_after_an_outcome_was_told_does_not_change_it() {
    assert_eq!(outcome_was_told(None, PATIENCE).await, Vec::<String>::new());
}

/// The control: a checkpoint that is answered before it is written is lost with the server.
#[cfg(feature = "sabotage")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_finds_checkpoints_that_were_answered_too_early() {
    let findings = outcome_was_told(Some("answer-before-commit"), SHORT).await;
    assert!(
        findings.iter().any(|finding| finding.contains("and became")),
        "a lost outcome went unnoticed: {findings:?}"
    );
}

/// Nothing but a wait is left of the execution when the server dies.
async fn waits(sabotage: Option<&'static str>, patience: Duration) -> Vec<String> {
    let mut scene = Scene::begin(vec![Op::Wait], sabotage).await;
    let (http, url) = (api::client(), scene.address.borrow().clone());
    until("the wait", async || {
        let history = api::get(&http, &url, &scene.arn, "/history").await?;
        let events = history["Events"].as_array()?;
        events.iter().any(|event| event["EventType"] == "InvocationCompleted").then_some(())
    })
    .await;
    scene.kill();
    scene.end(patience).await
}

/// R13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_during_a_wait_does_not_lose_it() {
    assert_eq!(waits(None, PATIENCE).await, Vec::<String>::new());
}

/// The control: a server that passes over the timers of the one before it leaves a wait that never ends.
#[cfg(feature = "sabotage")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_finds_forgotten_timers() {
    let findings = waits(Some("forget-timers"), SHORT).await;
    assert!(findings.iter().any(|finding| finding.contains("does not end")), "forgotten timers went unnoticed");
}

/// The server dies under a handler, which goes on beside the one that is invoked in its place.
async fn handler_goes_on(sabotage: Option<&'static str>, patience: Duration) -> (usize, Vec<String>) {
    let mut scene = Scene::begin(vec![Op::Gate], sabotage).await;
    scene.comes_to_gate(1).await;
    scene.kill();
    scene.comes_to_gate(2).await;
    let ledger = scene.ledger.clone();
    let mut findings = scene.end(patience).await;
    // The old handler may be the slower one.
    let over = |ledger: &Ledger| ledger.counts().1 > 0 || !ledger.findings().is_empty();
    let called = until("the old handler's call", async || over(&ledger).then_some(()));
    if tokio::time::timeout(patience, called).await.is_err() {
        findings.push("the old handler was not answered".to_owned());
    }
    findings.extend(ledger.findings());
    (ledger.counts().1, findings)
}

/// R15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_under_a_handler_leaves_one_invocation_that_counts() {
    let (refused, findings) = handler_goes_on(None, PATIENCE).await;
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(refused, 1, "the replaced one was told so");
}

/// The control: an invocation that records beside the one that replaced it.
#[cfg(feature = "sabotage")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_control_finds_two_invocations_at_once() {
    // Which of the two is faster is not ours to say: once the new one has ended the execution, the old one is refused even so.
    for _ in 0..6 {
        let (_, findings) = handler_goes_on(Some("two-invocations"), SHORT).await;
        if findings.iter().any(|finding| finding.contains("recorded after another had begun")) {
            return;
        }
    }
    panic!("two invocations went unnoticed");
}
