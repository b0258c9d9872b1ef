//! What a newcomer sees first.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::process::{Servo, binary};
use crate::support::until;

/// One command, and there is a finished workflow, one that waits for a person, and one that was undone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_has_something_to_see() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev_with_demo(folder.path()).expect("it starts");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let counts = async || {
        let url = format!("{}/api/serverless-runtime/v1/invocations", servo.url);
        let page: Value = client.get(url).send().await.ok()?.json().await.ok()?;
        let mut counts = BTreeMap::new();
        for record in page["items"].as_array()? {
            *counts.entry(record["status"].as_str()?.to_owned()).or_insert(0) += 1;
        }
        let expected = [("compensated", 1), ("succeeded", 3), ("suspended", 1)].map(|(name, n)| (name.to_owned(), n));
        (counts == BTreeMap::from(expected)).then_some(())
    };
    until("the demo has gone its ways", counts).await;
    drop(servo);

    // Only an empty store gets it.
    let again = Servo::dev_with_demo(folder.path()).expect("it starts");
    let url = format!("{}/api/serverless-runtime/v1/entrypoints", again.url);
    let page: Value = client.get(url).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(page["items"].as_array().map(Vec::len), Some(3), "{page}");
}

/// The demo kills a real server and counts what the next one makes of the order.
#[test]
fn a_killed_server_is_survived_before_your_eyes() {
    let output = binary().args(["demo", "crash", "--json"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!((&summary["status"], &summary["everyStepOnce"]), (&"succeeded".into(), &true.into()), "{summary}");
    assert!(told.contains("kill -9"), "{told}");
}
