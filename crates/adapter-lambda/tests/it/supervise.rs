//! Real processes as workers. The scripts do not speak HTTP: the test asks at their private address in their place.

use std::path::Path;
use std::time::Duration;

use servo_adapter::HandlerCall;
use servo_adapter_lambda::{Error, Settings, WorkerCommand, WorkerKind};

use crate::support::{Fixture, fixture, fixture_with, kind, message, pull_call, soon, tenant, until};

fn script(text: &str) -> WorkerCommand {
    WorkerCommand { args: vec!["-c".to_owned(), text.to_owned()], ..WorkerCommand::new("/bin/sh") }
}

async fn supervise(fixture: &Fixture, command: WorkerCommand) -> std::net::SocketAddr {
    fixture.handlers.supervise(&tenant(), "f", command).await.unwrap()
}

/// The worker's own number, which its script must write first.
async fn pid(fixture: &Fixture) -> String {
    until("the worker says its number", || fixture.lines.find("pid ").is_some()).await;
    fixture.lines.find("pid ").unwrap().text.replace("pid ", "")
}

fn lives(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// DX-093: a handler that dies fails its call at once, with the way it died, and a new one is started.
#[tokio::test]
async fn the_end_of_the_process_fails_its_calls() {
    let fixture = fixture();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("die");
    let text = format!("while [ ! -e {} ]; do sleep 0.01; done; exit 7", flag.display());
    let address = supervise(&fixture, script(&text)).await;
    assert_eq!(fixture.worker().kind, WorkerKind::Supervised);
    let started = fixture.start(pull_call("r1"));
    let (id, response) = soon(fixture.next(address)).await;
    assert_eq!(id, "r1");
    drop(response);
    std::fs::write(&flag, "").unwrap();
    let answer = soon(started).await.unwrap();
    assert_eq!(kind(&answer), "Runtime.ExitError");
    assert!(message(&answer).contains("exit status: 7"), "{answer:?}");
    until("it is started again", || fixture.worker().restarts >= 1).await;
    assert_eq!(fixture.worker().last_exit.as_deref(), Some("exit status: 7"));
    soon(fixture.handlers.stop()).await;
    assert!(fixture.handlers.workers().is_empty());
}

/// DX-093: what a worker wrote before it died, and how it died, is in the log of the run that it had, and in the invocation's error.
#[tokio::test]
async fn the_last_words_of_a_worker_are_told() {
    for (death, how) in [("exit 7", "exit status: 7"), ("kill -9 $$", "signal: 9 (SIGKILL)")] {
        let fixture = fixture();
        let dir = tempfile::tempdir().unwrap();
        let flag = dir.path().join("die");
        let text = format!(
            "echo before >&2; while [ ! -e {} ]; do sleep 0.01; done; echo to stdout; echo 'cannot go on' >&2; \
             printf 'because: x' >&2; {death}",
            flag.display()
        );
        let address = supervise(&fixture, script(&text)).await;
        until("it has begun", || fixture.lines.find("before").is_some()).await;
        let started = fixture.start(pull_call("r1"));
        assert_eq!(soon(fixture.next(address)).await.0, "r1");
        std::fs::write(&flag, "").unwrap();
        let answer = soon(started).await.unwrap();
        let said = format!("the worker of `f` ended before it answered: {how}; it last wrote: because: x");
        assert_eq!((kind(&answer), message(&answer)), ("Runtime.ExitError", said.as_str()));
        let trace = answer.unwrap_err().error.stack_trace;
        assert_eq!(trace, Some(vec!["cannot go on".to_owned(), "because: x".to_owned()]));
        // By the time that the invocation has failed.
        let ended = format!("the worker ended before it answered: {how}");
        for text in ["to stdout", "cannot go on", "because: x", &ended] {
            let line = fixture.lines.find(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((line.request_id.as_deref(), line.text.as_str()), (Some("r1"), text));
        }
        soon(fixture.handlers.stop()).await;
    }
}

/// Who waits for a worker that cannot begin learns from it why.
#[tokio::test]
async fn the_last_words_of_a_worker_that_cannot_begin_are_told() {
    let fixture = fixture_with(Settings {
        worker_wait: Duration::from_millis(10),
        restart_first: Duration::from_secs(600),
        restart_max: Duration::from_secs(600),
        ..Settings::default()
    });
    supervise(&fixture, script("echo 'no module named x' >&2; exit 1")).await;
    until("it has ended", || fixture.worker().last_exit.is_some()).await;
    let answer = soon(fixture.start(pull_call("r1"))).await.unwrap();
    assert_eq!(kind(&answer), "Runtime.NoWorker");
    let why = "the last one ended: exit status: 1; it last wrote: no module named x";
    assert!(message(&answer).contains(why), "{answer:?}");
    soon(fixture.handlers.stop()).await;
}

/// Calls of outside workers do not end with the process.
#[tokio::test]
async fn the_end_of_the_process_concerns_only_its_own_calls() {
    let fixture = fixture();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("die");
    let text = format!("while [ ! -e {} ]; do sleep 0.01; done; exit 7", flag.display());
    let (outside, private) = (fixture.open().await, supervise(&fixture, script(&text)).await);
    let first = fixture.start(pull_call("r1"));
    assert_eq!(soon(fixture.next(outside)).await.0, "r1");
    let second = fixture.start(pull_call("r2"));
    assert_eq!(soon(fixture.next(private)).await.0, "r2");
    std::fs::write(&flag, "").unwrap();
    assert_eq!(kind(&soon(second).await.unwrap()), "Runtime.ExitError");
    assert_eq!(fixture.respond(outside, "r1", "done").await, 202);
    assert_eq!(soon(first).await.unwrap(), Ok("done".to_owned().into()));
    soon(fixture.handlers.stop()).await;
}

#[tokio::test]
async fn a_worker_that_keeps_ending_is_started_again_with_growing_delay() {
    let settings = Settings {
        restart_first: Duration::from_millis(1),
        restart_max: Duration::from_millis(4),
        ..Settings::default()
    };
    let fixture = fixture_with(settings);
    supervise(&fixture, script("echo life; exit 3")).await;
    until("it was started often", || fixture.worker().restarts >= 5).await;
    assert_eq!(fixture.worker().last_exit.as_deref(), Some("exit status: 3"));
    assert!(fixture.lines.all().len() >= 5);
    let slow = Settings {
        restart_first: Duration::from_secs(600),
        restart_max: Duration::from_secs(600),
        ..Settings::default()
    };
    let fixture = fixture_with(slow);
    supervise(&fixture, script("exit 3")).await;
    until("it ended", || fixture.worker().last_exit.is_some()).await;
    assert_eq!(fixture.worker().restarts, 0, "the delay has not passed");
    soon(fixture.handlers.stop()).await;
}

#[tokio::test]
async fn a_worker_finds_what_runtimes_expect_and_nothing_of_the_server() {
    let fixture = fixture();
    let env = vec![("AWS_ACCESS_KEY_ID".to_owned(), "mine".to_owned()), ("_HANDLER".to_owned(), "no".to_owned())];
    let command = WorkerCommand { env, ..script("env; echo complete; exec sleep 1000") };
    let address = supervise(&fixture, command).await;
    until("the environment is there", || fixture.lines.find("complete").is_some()).await;
    let lines: Vec<String> = fixture.lines.all().into_iter().map(|line| line.text).collect();
    for expected in [
        format!("AWS_LAMBDA_RUNTIME_API={address}"),
        "AWS_LAMBDA_FUNCTION_NAME=f".to_owned(),
        "AWS_LAMBDA_FUNCTION_VERSION=$LATEST".to_owned(),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512".to_owned(),
        "AWS_REGION=us-east-1".to_owned(),
        "AWS_DEFAULT_REGION=us-east-1".to_owned(),
        "AWS_ENDPOINT_URL_LAMBDA=http://127.0.0.1:9999".to_owned(),
        "AWS_ACCESS_KEY_ID=mine".to_owned(),
        "AWS_SECRET_ACCESS_KEY=servo".to_owned(),
        "_HANDLER=bootstrap".to_owned(),
    ] {
        assert!(lines.contains(&expected), "{expected} is missing in {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("CARGO_")), "the environment of the server leaks: {lines:?}");
    soon(fixture.handlers.stop()).await;
}

#[tokio::test]
async fn stopping_ends_the_process_gently_or_not() {
    for (text, grace) in [
        ("trap 'echo goodbye; exit 0' TERM; echo pid $$; while :; do sleep 0.01; done", Duration::from_secs(600)),
        ("trap '' TERM; echo pid $$; while :; do sleep 0.01; done", Duration::from_millis(50)),
    ] {
        let fixture = fixture_with(Settings { stop_grace: grace, ..Settings::default() });
        supervise(&fixture, script(text)).await;
        let pid = pid(&fixture).await;
        assert!(lives(&pid));
        soon(fixture.handlers.stop()).await;
        assert!(!lives(&pid));
        assert_eq!(fixture.lines.find("goodbye").is_some(), text.contains("goodbye"));
        let late = fixture.handlers.supervise(&tenant(), "f", script("exit 0")).await;
        assert!(matches!(late, Err(Error::Stopping)), "{late:?}");
    }
}

/// What a worker has in hand when it is stopped, it may answer.
#[tokio::test]
async fn stopping_lets_a_worker_answer() {
    let fixture = fixture_with(Settings { stop_grace: Duration::from_secs(600), ..Settings::default() });
    let address = supervise(&fixture, script("exec sleep 1000")).await;
    let started = fixture.start(pull_call("r1"));
    soon(fixture.next(address)).await;
    let stop = fixture.handlers.stop();
    let answer = async {
        assert_eq!(fixture.respond(address, "r1", "done").await, 202);
        assert_eq!(started.await.unwrap(), Ok("done".to_owned().into()));
    };
    soon(async { tokio::join!(stop, answer) }).await;
}

#[tokio::test]
async fn processes_end_with_the_handlers() {
    let mut fixture = fixture();
    supervise(&fixture, script("echo pid $$; exec sleep 1000")).await;
    let pid = pid(&fixture).await;
    fixture.handlers = crate::support::fixture().handlers;
    until("the process is gone", || !lives(&pid)).await;
}

#[tokio::test]
async fn dismissing_ends_the_workers_of_one_function() {
    let fixture = fixture();
    supervise(&fixture, script("exec sleep 1000")).await;
    fixture.handlers.supervise(&tenant(), "g", script("exec sleep 1000")).await.unwrap();
    fixture.handlers.dismiss(&tenant(), "f");
    until("it is gone", || fixture.handlers.workers().len() == 1).await;
    assert_eq!(fixture.worker().function, "g");
    soon(fixture.handlers.stop()).await;
}

/// DX-093: a handler that hangs past its deadline is ended, so that the function can be invoked again.
#[tokio::test]
async fn a_worker_that_hangs_is_replaced() {
    let fixture = fixture();
    let address = supervise(&fixture, script("exec sleep 1000")).await;
    let started = fixture.start(HandlerCall { timeout: Duration::from_millis(300), ..pull_call("r1") });
    assert_eq!(soon(fixture.next(address)).await.0, "r1");
    assert_eq!(kind(&soon(started).await.unwrap()), "Sandbox.Timedout");
    until("it is started again", || fixture.worker().restarts == 1).await;
    let exit = fixture.worker().last_exit.unwrap();
    assert!(exit.contains("did not come back") && exit.contains("signal: 15"), "{exit}");
    let again = fixture.start(pull_call("r2"));
    assert_eq!(soon(fixture.next(address)).await.0, "r2");
    assert_eq!(fixture.respond(address, "r2", "done").await, 202);
    assert_eq!(soon(again).await.unwrap(), Ok("done".to_owned().into()));
    soon(fixture.handlers.stop()).await;
}

#[tokio::test]
async fn a_changed_file_is_noticed_when_asked() {
    let fixture = fixture();
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("worker");
    let install = |text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let fresh = dir.path().join("fresh");
        std::fs::write(&fresh, format!("#!/bin/sh\n{text}; exec sleep 1000\n")).unwrap();
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&fresh, &program).unwrap();
    };
    install("echo first");
    supervise(&fixture, WorkerCommand::new(&program)).await;
    until("the first runs", || fixture.lines.find("first").is_some()).await;
    assert_eq!(fixture.handlers.replace_changed().await, 0);
    install("echo the second");
    assert_eq!(fixture.handlers.replace_changed().await, 1);
    until("the second runs", || fixture.lines.find("the second").is_some()).await;
    assert_eq!(fixture.handlers.replace_changed().await, 0);
    assert_eq!((fixture.worker().restarts, fixture.worker().last_exit), (1, None));
    soon(fixture.handlers.stop()).await;
}

#[tokio::test]
async fn what_cannot_run_is_refused_or_shown() {
    let fixture = fixture_with(Settings { processes_max: 1, ..Settings::default() });
    let missing = fixture.handlers.supervise(&tenant(), "f", WorkerCommand::new("/no/such/worker")).await;
    assert!(matches!(missing, Err(Error::Program { .. })), "{missing:?}");
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    supervise(&fixture, WorkerCommand::new(&plain)).await;
    until("it is said", || fixture.worker().last_exit.is_some_and(|exit| exit.contains("could not be started"))).await;
    let more = fixture.handlers.supervise(&tenant(), "f", script("exit 0")).await;
    assert!(matches!(more, Err(Error::Full { .. })), "{more:?}");
    soon(fixture.handlers.stop()).await;
}
