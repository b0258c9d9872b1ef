//! One test for each suite. All of its cases run at once.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;

use futures_util::future::join_all;
use servo_conformance::Case;

use crate::handlers;
use crate::runner;
use crate::server::Server;
use crate::service::Service;
use crate::worker::Body;

fn read(suite: &str) -> BTreeMap<String, Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/conformance/aws-durable").join(suite);
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let cases = files.map(|file| {
        let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let case = Case::parse(&std::fs::read_to_string(&file).unwrap(), generate);
        (id.clone(), case.unwrap_or_else(|error| panic!("{id}: {error}")))
    });
    cases.collect()
}

/// Letters and digits that no other case has.
fn generate(length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&format!("{:016x}", RandomState::new().hash_one(text.len())));
    }
    text.truncate(length);
    text
}

/// Runs all cases; says what is wrong with which.
async fn problems(
    service: Service,
    cases: &BTreeMap<String, Case>,
    bodies: &[(&str, Body)],
) -> BTreeMap<String, String> {
    let mut functions: BTreeMap<String, Body> = bodies.iter().map(|(id, body)| (format!("case-{id}"), *body)).collect();
    functions.extend(handlers::TARGETS.iter().map(|(name, body)| ((*name).to_owned(), *body)));
    let server = Server::start(service, functions.clone()).await;
    for function in functions.keys() {
        server.register(function).await;
    }
    let run = async |(id, case): (&String, &Case)| {
        let function = format!("case-{id}");
        let outcome = match functions.contains_key(&function) {
            true => runner::run(&server, &function, case).await,
            false => Err("no handler".to_owned()),
        };
        outcome.err().map(|problem| (id.clone(), problem))
    };
    join_all(cases.iter().map(run)).await.into_iter().flatten().collect()
}

/// Fails on a case without a handler as on one that does not conform.
async fn conforms(service: Service, suite: &str, bodies: &[(&str, Body)]) {
    let cases = read(suite);
    assert!(!cases.is_empty());
    let problems = problems(service, &cases, bodies).await;
    let listed: String = problems.iter().map(|(id, problem)| format!("\n{id}: {problem}")).collect();
    let passed = cases.len() - problems.len();
    assert!(problems.is_empty(), "{suite}: {passed} of {} cases\n{listed}", cases.len());
}

/// Each of these suites passes as it is; with one more wish in every case, each case must be seen to miss it.
async fn notices(suite: &str, bodies: &[(&str, Body)], change: fn(&mut Case)) {
    let mut cases = read(suite);
    cases.values_mut().for_each(change);
    let problems = problems(Service::Own, &cases, bodies).await;
    let unnoticed: Vec<_> = cases.keys().filter(|id| !problems.contains_key(*id)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} passed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_event_is_noticed() {
    let change = |case: &mut Case| case.events.last_mut().unwrap().1["EventType"] = "SomethingElse".into();
    notices("parallel", handlers::parallel::CASES, change).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_event_is_noticed() {
    let change = |case: &mut Case| case.events.push((99, serde_json::json!({"EventId": 99})));
    notices("child", handlers::child::CASES, change).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_outcome_is_noticed() {
    notices("map", handlers::map::CASES, |case| case.status = Some("STOPPED".to_owned())).await;
    let changed = |case: &mut Case| case.result = Some("another result".into());
    notices("map", handlers::map::CASES, changed).await;
}

macro_rules! suites {
    ($service:expr; $($suite:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $suite() {
                conforms($service, stringify!($suite), handlers::$suite::CASES).await;
            }
        )*
    };
}

suites!(Service::Own; step, wait, child, callback, invoke, map, parallel, wait_for_callback, wait_for_condition);

/// DX-044: the same handlers conform as well when their client is the one over AWS's crate.
#[cfg(feature = "aws")]
mod over_aws {
    use super::*;

    suites!(Service::Aws; step, wait, child, callback, invoke, map, parallel, wait_for_callback, wait_for_condition);
}
