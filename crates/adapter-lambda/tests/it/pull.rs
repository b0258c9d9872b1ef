//! Workers that ask for their calls.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use servo_adapter::{Claim, FailureKind, HandlerCall, Handlers as _, Right, Standing};
use servo_adapter_lambda::{Error, Settings, WorkerKind};

use tokio::sync::watch;

use crate::support::{
    Fixture, LONG, NOW, fixture, fixture_with, header, kind, message, pull_call, soon, spawn, tenant, until, url,
};

const LIMIT: usize = 6 * 1024 * 1024 + 64 * 1024;

/// DX-093: a function is reached by pull: the worker gets the call with its headers, and its response is the answer.
#[tokio::test]
async fn a_worker_asks_and_answers() {
    let fixture = fixture();
    let address = fixture.open().await;
    assert_eq!(fixture.open().await, address, "asking again changes nothing");
    let tenant_id = Some("acme".to_owned());
    let started = fixture.start(HandlerCall { tenant_id, trace: Some("Root=1".to_owned()), ..pull_call("r1") });
    let (id, response) = soon(fixture.next(address)).await;
    assert_eq!(id, "r1");
    let deadline = (NOW + i64::try_from(LONG.as_millis()).unwrap()).to_string();
    for (name, value) in [
        ("Lambda-Runtime-Deadline-Ms", deadline.as_str()),
        ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:f:1"),
        ("Lambda-Runtime-Trace-Id", "Root=1"),
        ("Lambda-Runtime-Aws-Tenant-Id", "acme"),
        ("Content-Type", "application/json"),
    ] {
        assert_eq!(header(&response, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(response.text().await.unwrap(), "payload of r1");
    assert_eq!((fixture.worker().kind, fixture.worker().in_flight), (WorkerKind::Pull, 1));
    assert_eq!(fixture.respond(address, "r1", "done").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
    assert_eq!(fixture.respond(address, "r1", "again").await, 400, "answered already");
    assert_eq!(fixture.worker().in_flight, 0);
}

/// DX-093: a worker gets the client context as JSON, in the characters that a header can have.
#[tokio::test]
async fn a_worker_gets_the_client_context() {
    let fixture = fixture();
    let address = fixture.open().await;
    // {"custom":\n{"größe":"𝄞"}}
    let client_context = Some("eyJjdXN0b20iOgp7Imdyw7bDn2UiOiLwnYSeIn19".to_owned());
    let _started = fixture.start(HandlerCall { client_context, ..pull_call("r1") });
    let (_, response) = soon(fixture.next(address)).await;
    let told = header(&response, "Lambda-Runtime-Client-Context").unwrap();
    assert_eq!(told, r#"{"custom": {"gr\u00f6\u00dfe":"\ud834\udd1e"}}"#);
    let read: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(read["custom"]["größe"], "𝄞");
}

/// DX-093: an error that the worker reports reaches the caller with type, message and stack.
#[tokio::test]
async fn a_worker_reports_an_error() {
    let fixture = fixture();
    let address = fixture.open().await;
    let (body, bare) = (r#"{"errorType":"E","errorMessage":"m","stackTrace":["at x"]}"#, r#"{"errorMessage":"m"}"#);
    for (body, expected) in [(body, "E"), (bare, "Header.Type")] {
        let started = fixture.start(pull_call("r1"));
        soon(fixture.next(address)).await;
        let request = fixture.client.post(url(address, "invocation/r1/error"));
        let request = request.header("Lambda-Runtime-Function-Error-Type", "Header.Type").body(body);
        assert_eq!(request.send().await.unwrap().status(), 202);
        let answer = soon(started).await.unwrap();
        assert_eq!((kind(&answer), message(&answer)), (expected, "m"));
        let failure = answer.unwrap_err();
        assert_eq!(failure.error.stack_trace.is_some(), expected == "E");
        assert_eq!(
            (failure.kind, failure.error.error_data.as_deref()),
            (FailureKind::Raised, Some(body)),
            "as it was sent"
        );
    }
}

#[tokio::test]
async fn calls_are_handed_out_in_order() {
    let fixture = fixture();
    let address = fixture.open().await;
    for id in ["a", "b", "c"] {
        fixture.start_waiting(id).await;
    }
    for id in ["a", "b", "c"] {
        assert_eq!(soon(fixture.next(address)).await.0, id);
    }
}

/// A thousand calls for many workers: each answered once, by whoever took it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_share_many_calls() {
    const WORKERS: usize = 16;
    const CALLS: usize = 1_000;
    let fixture = Arc::new(fixture());
    let address = fixture.open().await;
    for _ in 0..WORKERS {
        let fixture: Arc<Fixture> = fixture.clone();
        spawn(async move {
            loop {
                let (id, response) = fixture.next(address).await;
                let payload = response.text().await.unwrap();
                assert_eq!(fixture.respond(address, &id, &format!("answer to {payload}")).await, 202);
            }
        });
    }
    let calls: Vec<_> = (0..CALLS).map(|n| fixture.start(pull_call(&format!("r{n}")))).collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(soon(call).await.unwrap(), Ok(format!("answer to payload of r{n}").into()));
    }
    until("all workers ask again", || fixture.worker().pollers == WORKERS).await;
    assert_eq!((fixture.worker().waiting, fixture.worker().in_flight), (0, 0));
}

/// DX-093: a call that was stopped is forgotten, before and after a worker took it; the worker goes on.
#[tokio::test]
async fn a_dropped_call_is_forgotten() {
    let fixture = fixture();
    let address = fixture.open().await;
    let waiting = fixture.start_waiting("waiting").await;
    waiting.abort();
    until("it no longer waits", || fixture.worker().waiting == 0).await;
    let taken = fixture.start_waiting("taken").await;
    assert_eq!(soon(fixture.next(address)).await.0, "taken");
    taken.abort();
    until("it is not in flight any more", || fixture.worker().in_flight == 0).await;
    assert_eq!(fixture.respond(address, "taken", "late").await, 400);
    let later = fixture.start(pull_call("later"));
    assert_eq!(soon(fixture.next(address)).await.0, "later");
    assert_eq!(fixture.respond(address, "later", "x").await, 202);
    assert_eq!(soon(later).await.unwrap(), Ok("x".to_owned().into()));
}

/// DX-093: a handler that takes too long has crashed.
#[tokio::test]
async fn a_call_times_out() {
    let fixture = fixture();
    let address = fixture.open().await;
    let short = HandlerCall { timeout: Duration::from_millis(200), ..pull_call("b") };
    let poll = fixture.next(address);
    let (answer, _) = soon(async { tokio::join!(fixture.handlers.call(Box::new(short)), poll) }).await;
    assert_eq!((kind(&answer), message(&answer)), ("Sandbox.Timedout", "Task timed out after 0.20 seconds"));
    assert_eq!(answer.unwrap_err().kind, FailureKind::Crashed);
    assert_eq!(fixture.respond(address, "b", "late").await, 400);
}

/// DX-093: the function's time begins when a worker takes the call, and not while it waits for one. How long that was is told.
#[tokio::test]
async fn waiting_for_a_worker_is_no_part_of_the_timeout() {
    let fixture = fixture();
    let address = fixture.open().await;
    let busy = fixture.start(pull_call("busy"));
    assert_eq!(soon(fixture.next(address)).await.0, "busy");
    let handlers = fixture.handlers.clone();
    let call = HandlerCall { timeout: Duration::from_millis(1), ..pull_call("queued") };
    let queued = spawn(async move { handlers.call(Box::new(call)).await });
    until("it waits", || fixture.worker().waiting == 1).await;
    // The only worker is at work for longer than the other call may take.
    let mut waits = tokio::time::interval(Duration::from_millis(50));
    waits.tick().await;
    waits.tick().await;
    assert_eq!(fixture.worker().waiting, 1, "nobody has it, so its time has not begun");
    assert_eq!(fixture.respond(address, "busy", "done").await, 202);
    assert!(soon(busy).await.unwrap().is_ok());
    let (id, response) = soon(fixture.next(address)).await;
    assert_eq!(id, "queued");
    let deadline = (NOW + 1).to_string();
    assert_eq!(header(&response, "Lambda-Runtime-Deadline-Ms"), Some(deadline), "counted from now");
    let answer = soon(queued).await.unwrap();
    assert_eq!(message(&answer), "Task timed out after 0.00 seconds");
    assert!(answer.unwrap_err().usage.waited_ms >= 50);
}

/// DX-093: a call that nobody takes did not reach the function, also where a worker is there and busy: it comes again, and others
/// have its slot meanwhile. Nobody takes what was given back.
#[tokio::test]
async fn a_call_that_nobody_takes_is_given_back() {
    let fixture = fixture_with(Settings { worker_wait: Duration::from_millis(30), ..Settings::default() });
    let address = fixture.open().await;
    let answer = soon(fixture.start(pull_call("a"))).await.unwrap();
    assert_eq!(kind(&answer), "Runtime.NoWorker");
    assert!(message(&answer).starts_with("no worker of `f` took the call of version 1"), "{answer:?}");
    assert_eq!(answer.unwrap_err().kind, FailureKind::Unreached);
    let first = fixture.start_taken(pull_call("first"), address).await;
    let answer = soon(fixture.start_waiting("second").await).await.unwrap();
    assert!(message(&answer).ends_with("all are busy, start more"), "{answer:?}");
    let failure = answer.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreached);
    assert!(failure.usage.waited_ms >= 30, "{failure:?}");
    assert_eq!(fixture.worker().waiting, 0);
    assert_eq!(fixture.respond(address, "first", "x").await, 202);
    assert!(soon(first).await.unwrap().is_ok());
}

/// A worker that went away while it asked gets no call.
#[tokio::test]
async fn a_poll_that_was_given_up_takes_nothing() {
    let fixture = fixture();
    let address = fixture.open().await;
    for _ in 0..3 {
        let request = fixture.client.get(url(address, "invocation/next"));
        let poll = spawn(async move { request.send().await });
        until("it asks", || fixture.worker().pollers == 1).await;
        poll.abort();
        until("it is gone", || fixture.worker().pollers == 0).await;
    }
    let started = fixture.start(pull_call("r1"));
    assert_eq!(soon(fixture.next(address)).await.0, "r1");
    assert_eq!(fixture.respond(address, "r1", "x").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("x".to_owned().into()));
}

#[tokio::test]
async fn too_many_waiting_calls_are_refused() {
    let fixture = fixture_with(Settings { waiting_max: 2, ..Settings::default() });
    fixture.open().await;
    let _waiting = (fixture.start_waiting("a").await, fixture.start_waiting("b").await);
    let answer = fixture.handlers.call(Box::new(pull_call("c"))).await;
    assert_eq!(kind(&answer), "TooManyRequests");
    assert_eq!(answer.unwrap_err().kind, FailureKind::Unreached);
    let bytes = fixture_with(Settings { waiting_bytes_max: 10, ..Settings::default() });
    assert_eq!(kind(&bytes.handlers.call(Box::new(pull_call("c"))).await), "TooManyRequests");
}

#[tokio::test]
async fn a_response_has_a_largest_size() {
    let fixture = fixture();
    let address = fixture.open().await;
    for (id, size, status) in [("fits", LIMIT, 202), ("too-large", LIMIT + 1, 413)] {
        let started = fixture.start(pull_call(id));
        soon(fixture.next(address)).await;
        let body = "x".repeat(size);
        assert_eq!(fixture.respond(address, id, &body).await, status, "{id}");
        match soon(started).await.unwrap() {
            Ok(answer) => assert_eq!((answer.text.len(), status), (LIMIT, 202)),
            answer => {
                assert_eq!((kind(&answer), status), ("Function.ResponseSizeTooLarge", 413));
                assert_eq!(answer.unwrap_err().kind, FailureKind::Failed, "it would be as large again");
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_the_runtime_api_is_not_found() {
    let fixture = fixture();
    let address = fixture.open().await;
    assert_eq!(fixture.respond(address, "unknown", "x").await, 400);
    assert_eq!(fixture.post(address, "invocation/unknown/error", "{}").await, 400);
    assert_eq!(fixture.post(address, "invocation/next", "").await, 404);
    assert_eq!(fixture.post(address, "other", "").await, 404);
    let answer = fixture.client.get(format!("http://{address}/")).send().await.unwrap();
    assert_eq!(answer.status(), 404);
    assert!(answer.text().await.unwrap().contains("errorType"));
}

/// DX-093: when the only worker cannot begin, those who wait for it learn why.
#[tokio::test]
async fn a_worker_that_cannot_begin_says_so() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start_waiting("r1").await;
    let body = r#"{"errorType":"Runtime.ImportError","errorMessage":"no module"}"#;
    assert_eq!(fixture.post(address, "init/error", body).await, 202);
    let answer = soon(started).await.unwrap();
    assert_eq!((kind(&answer), message(&answer)), ("Runtime.ImportError", "no module"));
}

/// Calls may come before there is an address: they wait for it.
#[tokio::test]
async fn a_call_waits_for_the_address_of_its_function() {
    let fixture = fixture();
    let started = fixture.start(pull_call("r1"));
    let address = fixture.open().await;
    assert_eq!(soon(fixture.next(address)).await.0, "r1");
    assert_eq!(fixture.respond(address, "r1", "x").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("x".to_owned().into()));
}

#[tokio::test]
async fn stopping_ends_calls_and_listeners() {
    let fixture = fixture();
    let address = fixture.open().await;
    let taken = fixture.start_waiting("taken").await;
    soon(fixture.next(address)).await;
    let waiting = fixture.start_waiting("waiting").await;
    soon(fixture.handlers.stop()).await;
    for (started, how) in [(taken, FailureKind::Crashed), (waiting, FailureKind::Unreached)] {
        let answer = soon(started).await.unwrap();
        assert_eq!(kind(&answer), "Runtime.ExitError");
        assert_eq!(answer.unwrap_err().kind, how);
    }
    assert_eq!(kind(&fixture.handlers.call(Box::new(pull_call("r"))).await), "Runtime.ExitError");
    assert!(fixture.client.get(url(address, "invocation/next")).send().await.is_err());
    assert!(matches!(fixture.handlers.open_pull(&tenant(), "g").await, Err(Error::Stopping)));
}

/// Functions of the same name in two tenants share nothing.
#[tokio::test]
async fn tenants_have_workers_of_their_own() {
    let fixture = fixture();
    let other = servo_model::TenantId::parse("other").unwrap();
    let address = fixture.open().await;
    let theirs = fixture.handlers.open_pull(&other, "f").await.unwrap();
    assert_ne!(address, theirs);
    let _ours = fixture.start(pull_call("ours"));
    let _theirs = fixture.start(HandlerCall { tenant: other, ..pull_call("theirs") });
    assert_eq!(soon(fixture.next(theirs)).await.0, "theirs");
    assert_eq!(soon(fixture.next(address)).await.0, "ours");
    assert_eq!(fixture.respond(address, "theirs", "x").await, 400);
}

/// A run that may be another node's, until somebody says whose it is.
struct Doubted(watch::Receiver<Standing>);

#[async_trait]
impl Claim for Doubted {
    fn standing(&self) -> Standing {
        *self.0.borrow()
    }

    async fn settled(&self) -> bool {
        let mut changes = self.0.clone();
        let settled = changes.wait_for(|standing| *standing != Standing::InDoubt).await.map(|standing| *standing);
        settled.is_ok_and(|standing| standing == Standing::Held)
    }
}

/// R14: a worker gets no call of a run that may be another node's; calls of other runs pass by.
#[tokio::test]
async fn a_call_in_doubt_is_handed_over_once_it_is_not() {
    for passes_on in [false, true] {
        let fixture = fixture();
        let address = fixture.open().await;
        let (say, told) = watch::channel(Standing::InDoubt);
        let right = Right::new(Arc::new(Doubted(told)));
        let doubted = fixture.start_waiting_call(HandlerCall { right, ..pull_call("doubted") }).await;
        let _other = fixture.start_waiting("other").await;
        assert_eq!(soon(fixture.next(address)).await.0, "other");
        let later = fixture.start_waiting("later").await;
        assert_eq!(soon(fixture.next(address)).await.0, "later");
        drop(later);
        if passes_on {
            let asking = spawn({
                let (client, url) = (fixture.client.clone(), url(address, "invocation/next"));
                async move { client.get(url).send().await }
            });
            say.send(Standing::PassedOn).unwrap();
            let failure = soon(doubted).await.unwrap().unwrap_err();
            assert_eq!(failure.kind, FailureKind::Unreached, "{failure:?}");
            asking.abort();
        } else {
            say.send(Standing::Held).unwrap();
            assert_eq!(soon(fixture.next(address)).await.0, "doubted");
        }
    }
}
