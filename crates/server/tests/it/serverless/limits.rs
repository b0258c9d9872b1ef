//! Limits of entrypoints over HTTP: what an adapter allows, what the platform's policy bounds and fills in.

use serde_json::{Value, json};

use super::support::{Api, FUNCTION, definition, paths, refused};
use crate::harness::Options;

const PATH: &str = "$.traits.limits";

fn asking_for(limits: Value) -> Value {
    let mut document = definition(FUNCTION);
    document["traits"]["limits"] = limits;
    document
}

/// SR-034: every size that Lambda has, and none beside it; what is left out is the smallest.
#[tokio::test]
async fn a_lambda_function_may_have_any_size_of_lambda() {
    let api = Api::start().await;
    for memory in [128, 512, 513, 1_024, 3_008, 10_240] {
        let document = asking_for(json!({"timeout_seconds": 30, "memory_mb": memory}));
        let checked = api.post("/entrypoints:validate", &document).await;
        assert_eq!(checked.status, 200, "{memory}: {}", checked.text);
    }
    for memory in [json!(127), json!(10_241), json!(0), json!(128.5), json!("128")] {
        let answer = api.post("/entrypoints", &asking_for(json!({"timeout_seconds": 30, "memory_mb": memory}))).await;
        refused(&answer, 422, "validation");
        assert!(paths(&answer).contains(&format!("{PATH}.memory_mb").as_str()), "{}", answer.text);
    }
    let id = api.register(&asking_for(json!({"timeout_seconds": 30}))).await;
    let read = api.get(&format!("/entrypoints/{id}")).await;
    assert_eq!(read.json["traits"]["limits"]["memory_mb"], 128);
}

/// SR-319: a limit above the quota is refused at its place, one that equals it is not.
#[tokio::test]
async fn what_is_above_the_quota_is_refused_at_its_field() {
    let options = Options {
        platform: |platform| {
            platform.policy.quotas.max_memory_per_execution_mb = 256;
            platform.policy.quotas.max_execution_duration_seconds = 50;
        },
        ..Options::default()
    };
    let api = Api::with(options, &[""]).await;
    let answer = api.post("/entrypoints", &asking_for(json!({"timeout_seconds": 51, "memory_mb": 257}))).await;
    refused(&answer, 422, "validation");
    let mut named = paths(&answer);
    named.sort_unstable();
    assert_eq!(named, [format!("{PATH}.memory_mb"), format!("{PATH}.timeout_seconds")]);
    let answer = api.post("/entrypoints", &asking_for(json!({"timeout_seconds": 50, "memory_mb": 256}))).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}
