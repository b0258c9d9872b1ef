//! Many starts at one moment under one key: one run.
//!
//! `SERVO_TEST_ONCE_ROUNDS=1000` tries it as often; without it a few times.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::support::{Api, FUNCTION, PREFIX, WORKFLOW, definition, err, refused};
use crate::backend::Backend;
use crate::harness::{Answer, Options, client};

const CALLERS: usize = 64;
/// Within which two of the starts meet, almost always in the first.
#[cfg(feature = "sabotage")]
const CONTROL_ROUNDS: usize = 40;

/// As many as the campaign asks for, or a few.
#[expect(clippy::disallowed_methods, reason = "whoever runs the campaign sets it")]
fn rounds(few: usize) -> usize {
    std::env::var("SERVO_TEST_ONCE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

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

/// Runs that there are, however many.
async fn records(api: &Api) -> usize {
    let counts = api.get("/invocations:counts").await.json;
    let count = |item: &Value| usize::try_from(item["count"].as_u64().unwrap()).unwrap();
    counts["items"].as_array().unwrap_or_else(|| panic!("no list: {counts}")).iter().map(count).sum()
}

async fn api_with(options: Options) -> Api {
    let api = Api::with(options, &[""]).await;
    for address in [FUNCTION, WORKFLOW] {
        api.activate(&definition(address)).await;
    }
    api
}

async fn api() -> Api {
    api_with(Options::default()).await
}

/// In turn, so that each is met in the same number of rounds.
fn case(round: usize) -> (&'static str, &'static str) {
    [(FUNCTION, "sync"), (FUNCTION, "async"), (WORKFLOW, "sync"), (WORKFLOW, "async")][round % 4]
}

/// What is wrong with many starts of one body under one key, and what came of them.
async fn one_round(api: &Api, clients: &[reqwest::Client], round: usize) -> Vec<String> {
    let (address, mode) = case(round);
    let body = json!({"entrypoint_id": address, "mode": mode, "params": {"amount": round}});
    let (key, case) = (format!("key-{round}"), format!("{address} {mode}, round {round}"));
    let mut findings = Vec::new();
    let mut expect = |holds: bool, what: String| {
        if !holds {
            findings.push(format!("{case}: {what}"));
        }
    };
    let before = (api.calls(), records(api).await);
    let answers = together(api, clients, &key, vec![body.clone(); CALLERS]).await;
    let named: BTreeSet<_> = answers.iter().map(id).collect();
    expect(named.len() == 1, format!("{} runs: {named:?}", named.len()));
    let (created, found) = (statuses(&answers, 201), statuses(&answers, 200));
    expect((created, found) == (1, CALLERS - 1), format!("{created} created one, {found} found one"));
    expect(answers.iter().all(|answer| answer.json["cached"] == false), "an answer was from the cache".to_owned());
    let mut ended = Value::Null;
    for name in &named {
        ended = api.until(name, "succeeded").await;
    }
    if mode == "sync" {
        // Each waited for the same end.
        expect(answers.iter().all(|answer| answer.json["record"] == ended), "the answers differ".to_owned());
    }
    // Also later, and never with other params.
    let again = api.invoke(&body, &[("idempotency-key", &key)]).await;
    expect((again.status.as_u16(), &again.json["record"]) == (200, &ended), format!("again: {}", again.text));
    let other = json!({"entrypoint_id": address, "mode": mode, "params": {"amount": -1}});
    let other = api.invoke(&other, &[("idempotency-key", &key)]).await;
    expect(other.status == 422 && other.json["code"] == err("validation"), format!("other params: {}", other.text));
    let (calls, runs) = (api.calls() - before.0, records(api).await - before.1);
    expect((calls, runs) == (1, 1), format!("{calls} calls and {runs} runs"));
    findings
}

/// SR-376, SR-383, S12: one of them starts the run, all name it, and the handler is called once.
#[expect(clippy::print_stdout, reason = "a figure for whoever runs the campaign")]
async fn many_starts_under_one_key_are_one_run() {
    let (api, clients, rounds) = (api().await, callers(), rounds(16));
    for round in 0..rounds {
        assert_eq!(one_round(&api, &clients, round).await, Vec::<String>::new());
    }
    println!("{rounds} rounds of {CALLERS} starts under one key: one run each");
}

/// SR-383, S12: two requests that differ, under one key at one moment. One of them has it, and who sent the other learns that.
#[expect(clippy::print_stdout, reason = "a figure for whoever runs the campaign")]
async fn of_two_bodies_under_one_key_one_wins() {
    let (api, clients, rounds) = (api().await, callers(), rounds(8));
    for round in 0..rounds {
        let (address, mode) = case(round);
        let body = |amount: usize| json!({"entrypoint_id": address, "mode": mode, "params": {"amount": amount}});
        let before = (api.calls(), records(&api).await);
        let bodies = (0..CALLERS).map(|caller| body(caller % 2)).collect();
        let answers = together(&api, &clients, &format!("key-{round}"), bodies).await;
        let (mine, theirs): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status.is_success());
        let (case, half) = (format!("{address} {mode}, round {round}"), CALLERS / 2);
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
    println!("{rounds} rounds of {CALLERS} starts of two bodies under one key: one run each");
}

/// S12: the control. A server that looks whether the key is free, and does not look again when it records the run, makes several runs,
/// and the same check says so.
#[cfg(feature = "sabotage")]
async fn a_key_that_is_only_looked_up_is_noticed() {
    let (api, clients) = (api_with(Options::default().broken("check-then-insert")).await, callers());
    for round in 0..CONTROL_ROUNDS {
        let findings = one_round(&api, &clients, round).await;
        if findings.iter().any(|finding| finding.contains(" runs: ")) {
            return;
        }
    }
    panic!("several runs under one key went unnoticed in {CONTROL_ROUNDS} rounds");
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

#[cfg(feature = "sabotage")]
mod control {
    use super::{Backend, a_key_that_is_only_looked_up_is_noticed};

    on_threads! { memory Memory, sqlite Sqlite, postgres Postgres; (a_key_that_is_only_looked_up_is_noticed) }
}
