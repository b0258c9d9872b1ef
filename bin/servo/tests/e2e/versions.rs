//! A run stays with the version that it started with, and so do workers that ask for one version.

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::process::Servo;
use crate::support::until;

async fn json(request: reqwest::RequestBuilder) -> Value {
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    let document: Value = answer.json().await.expect("JSON");
    assert!(status.is_success(), "{status} {document}");
    document
}

/// §57: with a worker of version 2 alone, a run of version 1 waits and says for what; a worker of version 1 gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_waits_for_a_worker_of_its_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    // Building it also sets up the cryptography that the other client wants.
    let (api, url) = (Api::new(), servo.url.clone());
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    for seconds in [50, 40] {
        let spec = json!({"reach": {"kind": "pull"}, "invocationTimeoutSeconds": seconds});
        json(http.put(format!("{url}/v1/functions/f")).json(&spec)).await;
    }
    let mut addresses = Vec::new();
    for version in [1, 2] {
        let found = json(http.get(format!("{url}/v1/functions/f/versions/{version}"))).await;
        assert_eq!(found["version"], version);
        let address = found["workerAddress"].as_str().expect("where its workers ask");
        addresses.push(format!("http://{address}/2018-06-01/runtime/invocation"));
    }
    let missing = http.get(format!("{url}/v1/functions/f/versions/3")).send().await.expect("an answer");
    assert_eq!(missing.status(), 404);

    let invoke = http.post(format!("{url}/2015-03-31/functions/f/invocations?Qualifier=1"));
    let begun = invoke.header("x-amz-invocation-type", "Event").body("{}").send().await.expect("an answer");
    let arn = begun.headers()["x-amz-durable-execution-arn"].to_str().expect("text").to_owned();
    let run = arn.rsplit('/').next().expect("a run").to_owned();
    let test = async {
        let waits = until("the run waits for a worker", async || {
            let (_, snapshot) = api.get(&url, &format!("/v1/runs/{run}")).await?;
            (snapshot["blockedBy"][0]["cause"] == "worker").then_some(snapshot)
        })
        .await;
        assert_eq!(waits["message"], "Waiting for a worker of f:1.");
        let call = http.get(format!("{}/next", addresses[0])).send().await.expect("a call");
        let id = call.headers()["lambda-runtime-aws-request-id"].to_str().expect("text").to_owned();
        let arn_of_call = call.headers()["lambda-runtime-invoked-function-arn"].to_str().expect("text").to_owned();
        assert!(arn_of_call.ends_with(":f:1"), "{arn_of_call}");
        let answer = json!({"Status": "SUCCEEDED", "Result": "1"}).to_string();
        let answered = http.post(format!("{}/{id}/response", addresses[0])).body(answer).send().await;
        assert_eq!(answered.expect("an answer").status(), 202);
        until("the end", async || {
            let (_, snapshot) = api.get(&url, &format!("/v1/runs/{run}")).await?;
            let blocked = snapshot["blockedBy"].as_array().is_some_and(|blocked| !blocked.is_empty());
            (snapshot["status"] == "COMPLETED" && !blocked).then_some(())
        })
        .await;
    };
    // The worker of version 2 asks all the time, and is given nothing.
    tokio::select! {
        () = test => {}
        call = http.get(format!("{}/next", addresses[1])).send() => panic!("a call of another version: {call:?}"),
    }
}

/// A server that has no functions inside says so when one is registered, not when it is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_inside_a_server_that_has_none_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let _cryptography = Api::new();
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("{}/v1/functions/f", servo.url);
    let put = http.put(&url).json(&json!({"reach": {"kind": "inProcess"}})).send().await.expect("an answer");
    assert_eq!(put.status(), 422);
    let problem: Value = put.json().await.expect("JSON");
    assert_eq!(problem["errors"][0]["pointer"], "/reach/kind", "{problem}");
    assert!(problem["errors"][0]["detail"].as_str().is_some_and(|detail| detail.contains("embed")), "{problem}");
    assert_eq!(http.get(&url).send().await.expect("an answer").status(), 404, "nothing was registered");
    servo.kill();
}
