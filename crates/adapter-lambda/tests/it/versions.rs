//! Workers of one version get that version's calls; workers at the function's own address get any.

use servo_adapter::HandlerCall;
use servo_adapter_lambda::{Error, Settings};
use servo_model::RunId;

use crate::support::{fixture, fixture_with, kind, message, pull_call, soon, tenant, until};

fn of(version: &str, request_id: &str) -> HandlerCall {
    HandlerCall { version: version.to_owned(), ..pull_call(request_id) }
}

/// §57: a run that is pinned to a version goes to a worker of that version, also when another one asked first.
#[tokio::test]
async fn a_worker_of_a_version_gets_that_versions_calls() {
    let fixture = fixture();
    let one = fixture.handlers.open_version(&tenant(), "f", "1").await.unwrap();
    let two = fixture.handlers.open_version(&tenant(), "f", "2").await.unwrap();
    assert_ne!(one, two);
    assert_eq!(fixture.handlers.open_version(&tenant(), "f", "2").await.unwrap(), two, "asking again changes nothing");
    // Both ask before there is anything; then the calls come in the other order.
    let asked = async { tokio::join!(fixture.next(one), fixture.next(two)) };
    let come = async {
        until("both ask", || fixture.handlers.workers().iter().all(|worker| worker.pollers == 1)).await;
        (fixture.start(of("2", "b")), fixture.start(of("1", "a")))
    };
    let ((got_one, got_two), (b, a)) = soon(async { tokio::join!(asked, come) }).await;
    assert_eq!((got_one.0.as_str(), got_two.0.as_str()), ("a", "b"));
    assert_eq!(fixture.respond(one, "a", "by one").await, 202);
    assert_eq!(fixture.respond(two, "b", "by two").await, 202);
    assert_eq!(soon(a).await.unwrap().unwrap().text, "by one");
    assert_eq!(soon(b).await.unwrap().unwrap().text, "by two");
}

/// The line is not held up by a call that nobody here can take, and nobody is given a call of another version.
#[tokio::test]
async fn a_call_without_a_worker_waits_and_others_pass() {
    let fixture = fixture();
    let two = fixture.handlers.open_version(&tenant(), "f", "2").await.unwrap();
    let old = fixture.start_waiting_call(of("1", "old")).await;
    let _new = fixture.start_waiting_call(of("2", "new")).await;
    assert_eq!(soon(fixture.next(two)).await.0, "new");
    let run = |id: &str| RunId::parse(&format!("run_{id}")).unwrap();
    assert_eq!(fixture.handlers.awaited_worker(&tenant(), &run("old")).as_deref(), Some("f:1"));
    assert_eq!(fixture.handlers.awaited_worker(&tenant(), &run("new")), None, "it has a worker");
    // The function's own address takes any version.
    let any = fixture.open().await;
    assert_eq!(soon(fixture.next(any)).await.0, "old");
    assert_eq!(fixture.handlers.awaited_worker(&tenant(), &run("old")), None);
    assert_eq!(fixture.respond(any, "old", "done").await, 202);
    assert_eq!(soon(old).await.unwrap().unwrap().text, "done");
}

/// Many workers of two versions: every call is answered, by a worker of its version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_between_versions() {
    const EACH: usize = 150;
    let fixture = std::sync::Arc::new(fixture());
    for version in ["1", "2"] {
        let address = fixture.handlers.open_version(&tenant(), "f", version).await.unwrap();
        for _ in 0..4 {
            let fixture = fixture.clone();
            crate::support::spawn(async move {
                loop {
                    let (id, _) = fixture.next(address).await;
                    assert_eq!(fixture.respond(address, &id, version).await, 202);
                }
            });
        }
    }
    let calls: Vec<_> = (0..EACH)
        .flat_map(|number| {
            ["1", "2"].map(|version| (version, fixture.start(of(version, &format!("c{number}-{version}")))))
        })
        .collect();
    for (version, call) in calls {
        assert_eq!(soon(call).await.unwrap().unwrap().text, version);
    }
}

#[tokio::test]
async fn it_is_said_which_version_has_no_worker() {
    let fixture = fixture_with(Settings { worker_wait: std::time::Duration::from_millis(30), ..Settings::default() });
    let two = fixture.handlers.open_version(&tenant(), "f", "2").await.unwrap();
    // One of another version does not help.
    let _busy = fixture.start_taken(of("2", "busy"), two).await;
    let answer = soon(fixture.start(of("1", "r"))).await.unwrap();
    assert_eq!(kind(&answer), "Runtime.NoWorker");
    assert!(message(&answer).contains("of version 1"), "{}", message(&answer));
}

#[tokio::test]
async fn addresses_of_one_function_are_limited() {
    let fixture = fixture_with(Settings { addresses_max: 2, ..Settings::default() });
    for version in ["1", "2"] {
        fixture.handlers.open_version(&tenant(), "f", version).await.unwrap();
    }
    let refused = fixture.handlers.open_version(&tenant(), "f", "3").await.unwrap_err();
    assert!(matches!(refused, Error::Full { setting: "addresses_max", .. }), "{refused}");
}
