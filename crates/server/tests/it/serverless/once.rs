//! Many starts at one moment under one key: one run.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition, refused};
use crate::backend::Backend;
use crate::harness::{Answer, client};

const CALLERS: usize = 64;
const ROUNDS: usize = 4;

/// Each has connections of its own.
fn callers() -> Vec<reqwest::Client> {
    std::iter::repeat_with(client).take(CALLERS).collect()
}

/// A start of each body under one key, all sent when the last one is ready to.
async fn together(api: &Api, clients: &[reqwest::Client], key: &str, bodies: Vec<Value>) -> Vec<Answer> {
    let ready = Arc::new(Barrier::new(bodies.len()));
    let mut callers = tokio::task::JoinSet::new();
    for (client, body) in clients.iter().zip(bodies) {
        let request = client.request(Method::POST, api.server.url(&format!("{PREFIX}/invocations")));
        let request = request.header("idempotency-key", key).json(&body);
        let ready = ready.clone();
        callers.spawn(async move {
            ready.wait().await;
            Answer::of(request).await
        });
    }
    callers.join_all().await
}

fn id(answer: &Answer) -> &str {
    answer.json["record"]["id"].as_str().unwrap_or_else(|| panic!("no record in {}", answer.text))
}

fn statuses(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

async fn records(api: &Api) -> usize {
    api.get("/invocations?limit=200").await.json["items"].as_array().unwrap().len()
}

async fn api() -> Api {
    let api = Api::start().await;
    for address in [FUNCTION, WORKFLOW] {
        api.activate(&definition(address)).await;
    }
    api
}

/// SR-376, SR-383, S12: one of them starts the run, all name it, and the handler is called once.
async fn many_starts_under_one_key_are_one_run() {
    let (api, clients) = (api().await, callers());
    let mut expected = 0;
    for round in 0..ROUNDS {
        for address in [FUNCTION, WORKFLOW] {
            for mode in ["sync", "async"] {
                let body = json!({"entrypoint_id": address, "mode": mode, "params": {"amount": round}});
                let key = format!("{round}-{mode}");
                let answers = together(&api, &clients, &key, vec![body.clone(); CALLERS]).await;
                expected += 1;
                let case = format!("{address} {mode}, round {round}");
                let named: BTreeSet<_> = answers.iter().map(id).collect();
                assert_eq!(named.len(), 1, "{case}: {named:?}");
                assert_eq!((statuses(&answers, 201), statuses(&answers, 200)), (1, CALLERS - 1), "{case}");
                assert!(answers.iter().all(|answer| answer.json["cached"] == false), "{case}");
                let ended = api.until(id(&answers[0]), "succeeded").await;
                if mode == "sync" {
                    // Each waited for the same end.
                    assert!(answers.iter().all(|answer| answer.json["record"] == ended), "{case}");
                }
                assert_eq!((api.calls(), records(&api).await), (expected, expected), "{case}");
                // Also later, and never with other params.
                let again = api.invoke(&body, &[("idempotency-key", &key)]).await;
                assert_eq!((again.status.as_u16(), &again.json["record"]), (200, &ended), "{case}");
                let other = json!({"entrypoint_id": address, "mode": mode, "params": {"amount": -1}});
                refused(&api.invoke(&other, &[("idempotency-key", &key)]).await, 422, "validation");
                assert_eq!((api.calls(), records(&api).await), (expected, expected), "{case}");
            }
        }
    }
}

/// SR-383, S12: two requests that differ, under one key at one moment. One of them has it, and who sent the other learns that.
async fn of_two_bodies_under_one_key_one_wins() {
    let (api, clients) = (api().await, callers());
    for round in 0..ROUNDS {
        for mode in ["sync", "async"] {
            let body = |amount: usize| json!({"entrypoint_id": FUNCTION, "mode": mode, "params": {"amount": amount}});
            let before = (api.calls(), records(&api).await);
            let bodies = (0..CALLERS).map(|caller| body(caller % 2)).collect();
            let answers = together(&api, &clients, &format!("{round}-{mode}"), bodies).await;
            let (mine, theirs): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status.is_success());
            let (case, half) = (format!("{mode}, round {round}"), CALLERS / 2);
            assert_eq!((mine.len(), theirs.len()), (half, half), "{case}");
            assert_eq!(statuses(&mine, 201), 1, "{case}");
            let named: BTreeSet<_> = mine.iter().map(id).collect();
            assert_eq!(named.len(), 1, "{case}: {named:?}");
            let params: BTreeSet<_> = mine.iter().map(|answer| answer.json["record"]["params"].to_string()).collect();
            assert_eq!(params.len(), 1, "{case}: {params:?}");
            for answer in &theirs {
                refused(answer, 422, "validation");
                assert_eq!(answer.json["errors"][0]["path"], "$.params", "{case}: {}", answer.text);
            }
            api.until(named.first().unwrap(), "succeeded").await;
            assert_eq!((api.calls(), records(&api).await), (before.0 + 1, before.1 + 1), "{case}");
        }
    }
}

/// The control: what shares no key is as many runs, so it is the key that makes them one.
async fn as_many_keys_are_as_many_runs() {
    let (api, clients) = (api().await, callers());
    let body = json!({"entrypoint_id": FUNCTION, "mode": "sync"});
    let mut named = BTreeSet::new();
    for key in ["a", "b", "c"] {
        named.extend(
            together(&api, &clients, key, vec![body.clone(); 2]).await.iter().map(|answer| id(answer).to_owned()),
        );
    }
    assert_eq!((named.len(), api.calls()), (3, 3));
}

/// On several threads, since these tests are about moments.
macro_rules! on_threads {
    ($($name:ident $backend:ident),+; $tests:tt) => {
        $(on_threads!(@ $name $backend $tests);)+
    };
    (@ $name:ident $backend:ident ($($test:ident),+)) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                super::Backend::$backend.run(super::$test()).await;
            })+
        }
    };
}

on_threads! {
    memory Memory, sqlite Sqlite, postgres Postgres;
    (many_starts_under_one_key_are_one_run, of_two_bodies_under_one_key_one_wins, as_many_keys_are_as_many_runs)
}
