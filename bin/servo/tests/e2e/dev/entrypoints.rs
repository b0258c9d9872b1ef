//! A folder of Starlark files.

use serde_json::json;

use super::{ended, open, start, text};

const ORDER: &str = "def main(ctx, input):\n    ctx.wait_signal('approval')\n    return {'from': 'the first'}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_register_themselves_and_runs_keep_their_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    std::fs::create_dir(&files).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(files.join(name), text).expect("a file");
    write("greet.star", "def main(ctx, input):\n    return {'greeting': 'hello ' + input.name}\n");
    write("order.workflow.star", ORDER);
    let arguments = ["--no-sample", "--quiet", "--data-dir", text(&data), "--entrypoints", text(&files)];
    let (servo, mut lines) = open(&arguments);
    lines.until(&["greet.star", "registered", "dev.local.greet.v1"]);
    lines.until(&["order.workflow.star", "registered", "dev.local.order.v1"]);
    let answer = start(&servo, "function", "dev.local.greet.v1", "sync", json!({"name": "Ada"})).await;
    assert_eq!(answer["record"]["result"]["greeting"], "hello Ada", "{answer}");
    let open_run = start(&servo, "workflow", "dev.local.order.v1", "async", json!({})).await;
    let id = open_run["record"]["id"].as_str().expect("an id").to_owned();
    ended(&servo, &id, "suspended").await;

    // A change is a new version, and what changed is shown.
    write("order.workflow.star", &ORDER.replace("the first", "the second"));
    lines.until(&["order.workflow.star", "registered", "dev.local.order.v2"]);
    lines.until(&["--- dev.local.order.v1"]);
    lines.until(&["+++ dev.local.order.v2"]);
    lines.until(&["-    return {'from': 'the first'}"]);
    lines.until(&["+    return {'from': 'the second'}"]);
    let url = format!("{}{}/invocations/{id}:signal", servo.url, super::API);
    let signal = json!({"signal_id": "one", "name": "approval", "payload": {}});
    let sent = super::client().post(url).json(&signal).send().await.expect("an answer");
    assert!(sent.status().is_success(), "{}", sent.status());
    let record = ended(&servo, &id, "succeeded").await;
    assert_eq!(record["result"]["from"], "the first", "a run keeps the version that it began with: {record}");

    // So is a change of what the file beside it says.
    write(
        "greet.json",
        r#"{"title": "Greet somebody", "schema": {"params": {"type": "object", "required": ["name"]}}}"#,
    );
    lines.until(&["greet.star", "registered", "dev.local.greet.v2"]);
    lines.until(&["+", "Greet somebody"]);

    // What is wrong names its place, stops nothing, and leaves what was there.
    write("greet.star", "def main(ctx, input):\n    return {'greeting':\n");
    let fault = lines.until(&["greet.star:3:"]);
    assert!(fault.starts_with(text(&files)), "editors find the file: {fault}");
    lines.until(&["greet.star is not registered", "dev.local.greet.v2 stays"]);
    write("greet.json", "{\"title\": \"Greet\",}");
    lines.until(&["greet.json:1:"]);
    let answer = start(&servo, "function", "dev.local.greet.v2", "sync", json!({"name": "Bob"})).await;
    assert_eq!(answer["record"]["result"]["greeting"], "hello Bob", "{answer}");

    // A file that is gone takes its entrypoint out of use.
    std::fs::remove_file(files.join("order.workflow.star")).expect("a file");
    lines.until(&["order.workflow.star", "disabled", "dev.local.order.v2"]);
    let refused = start(&servo, "workflow", "dev.local.order.v2", "async", json!({})).await;
    assert_eq!(refused["status"], 409, "{refused}");
    assert!(servo.stop().success());

    // A start with a file that cannot be read takes nothing out of use: it may be that file's.
    write("greet.json", "{");
    let (servo, mut lines) = open(&arguments);
    lines.until(&["greet.star is not registered"]);
    let answer = start(&servo, "function", "dev.local.greet.v2", "sync", json!({"name": "Cy"})).await;
    assert_eq!(answer["record"]["result"]["greeting"], "hello Cy", "{answer}");
    // Another name is another entrypoint, and the old one is not left behind.
    write("greet.star", "def main(ctx, input):\n    return {'greeting': 'hi ' + input.name}\n");
    write("greet.json", "{}");
    lines.until(&["greet.star", "registered", "dev.local.greet.v3"]);
    write("greet.json", r#"{"name": "acme.app.greet"}"#);
    lines.until(&["greet.star", "registered", "acme.app.greet.v1"]);
    lines.until(&["disabled", "dev.local.greet.v3"]);
    assert!(servo.stop().success());

    // The next start knows them again, and sees what was removed meanwhile.
    write("order.workflow.star", &ORDER.replace("the first", "the second"));
    std::fs::remove_file(files.join("greet.star")).expect("a file");
    let (servo, mut lines) = open(&arguments);
    lines.until(&["order.workflow.star", "enabled again", "dev.local.order.v2"]);
    lines.until(&["disabled", "acme.app.greet.v1"]);
    assert!(servo.stop().success());
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("nothing");
    let refused = crate::support::process::Servo::watched(&["--ephemeral", "--entrypoints", text(&missing)]);
    let refused = refused.expect_err("no such folder");
    assert!(refused.contains("name a folder of .star files"), "{refused}");
}
