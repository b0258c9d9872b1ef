//! Push functions on AWS's Python SDK, driven through boto3.

use serde_json::json;

use super::handlers::Pushed;
use super::service::{Service, marks};
use super::{DUMMY, Keys, drive};
use crate::support::process::Servo;
use crate::support::until;

/// DX-094: steps, waits, parallel, map, chained invoke, retries and failures of AWS's Python SDK, each step run once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_handlers_run_every_kind_of_operation() {
    let pushed = Pushed::start().await;
    drive("workflows", pushed.folder.path(), &pushed.service.api, DUMMY).await;
}

/// DX-094: state in several pages, a context that is replayed from its children, and payloads of 6 MB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_handlers_reach_the_published_limits() {
    let pushed = Pushed::start().await;
    drive("sizes", pushed.folder.path(), &pushed.service.api, DUMMY).await;
}

/// DX-094: callbacks are answered, kept alive, and refused when they are over, in boto3's own types.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boto3_answers_callbacks() {
    let pushed = Pushed::start().await;
    drive("callbacks", pushed.folder.path(), &pushed.service.api, DUMMY).await;
}

/// DX-094: every call on executions by boto3, its paginators and its typed exceptions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boto3_starts_reads_lists_and_stops_executions() {
    let pushed = Pushed::start().await;
    drive("executions", pushed.folder.path(), &pushed.service.api, DUMMY).await;
}

/// DX-093: a handler that dies is invoked again, and what it had recorded does not run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_survives_the_death_of_its_handler() {
    let mut pushed = Pushed::start().await;
    let (path, gate) = (pushed.folder.path().join("marks"), pushed.folder.path().join("gate"));
    let arn = pushed.service.start("gated", &json!({"marks": path, "gate": gate})).await;
    until("the second step", async || (marks(&path).len() == 2).then_some(())).await;
    // The step is under way; what is before it is recorded.
    pushed.service.event(&arn, "StepSucceeded").await;
    pushed.kill_handlers();
    std::fs::write(&gate, "open").expect("a gate");
    pushed.serve(DUMMY);
    let result = pushed.service.result(&arn).await;
    let seen = marks(&path);
    assert_eq!((seen.len(), seen[0].as_str(), seen[3].as_str()), (4, "first", "last"), "{seen:?}");
    assert_ne!(seen[1], seen[2], "another process");
    assert_eq!(seen[2], format!("hang {}", result[1]), "{result}");
}

/// DX-094: with access keys configured a signature of boto3 and of the SDK inside the handler is verified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boto3_signs_with_the_right_secret_or_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let known = Keys { id: "AKIASERVO0EXAMPLE", secret: "s3cret/with+signs+and+length" };
    let sha256 = servo_canon::Digest::of(b"admin");
    let config = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"sqlite\"\npath = {:?}\n\
         [functions]\npush_allow_nets = [\"127.0.0.0/8\"]\n\
         [[auth.keys]]\nname = \"admin\"\ntenant = \"acme\"\nroles = [\"admin\"]\nsha256 = \"{sha256}\"\nself_made = true\n\
         [[auth.access_keys]]\nid = \"{}\"\nsecret = \"{}\"\ntenant = \"acme\"\nroles = [\"operator\"]\n",
        folder.path().join("data"),
        known.id,
        known.secret,
    );
    let file = folder.path().join("servo.toml");
    std::fs::write(&file, config).expect("a file");
    let servo = Servo::server(&file, &[]).expect("it starts");
    let service = Service::at(&servo.url).with_token("admin");
    let pushed = Pushed::over(folder, servo, service, known).await;
    let (folder, api) = (pushed.folder.path(), &pushed.service.api);
    let other_secret = Keys { secret: "another", ..known };
    let other_id = Keys { id: "AKIAOTHER", ..known };
    tokio::join!(
        drive("signed", folder, api, known),
        drive("refused_keys", folder, api, other_secret),
        drive("refused_keys", folder, api, other_id),
    );
}
