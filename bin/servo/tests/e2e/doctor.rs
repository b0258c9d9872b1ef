//! `servo doctor` over the real binary: the database of a configuration, and functions that nobody works for.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::certificates::Certificates;
use crate::support::cluster::{Cluster, OWNER};
use crate::support::process::{Servo, binary};
use crate::support::until;

/// What it found, by name, and its exit code.
fn doctor(arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let output = binary().args(["doctor", "--json"]).args(arguments).output().expect("servo runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("hunter2"), "{said}");
    let document: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    (document["checks"].as_array().cloned().unwrap_or_default(), output.status.code())
}

/// The status and the words of one check.
fn check(found: &[Value], name: &str) -> (String, String) {
    let check = found.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("no check {name} in {found:#?}"));
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("detail"))
}

fn configure(file: &Path, cluster: &Cluster, query: &str) {
    let port = cluster.port();
    let url = format!("postgres://{OWNER}:hunter2@localhost:{port}/servo?hostaddr=127.0.0.1&{query}");
    let text = format!("[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"postgres\"\nurl = {url:?}\n");
    std::fs::write(file, text).expect("a file");
}

#[test]
fn a_database_is_looked_at_and_left_as_it_is() {
    let certificates = Certificates::make();
    let cluster = certificates.cluster();
    cluster.psql("postgres", "CREATE DATABASE servo");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servo.toml");
    let config = file.to_str().expect("utf-8").to_owned();
    let verified = format!("sslmode=verify-full&sslrootcert={}", certificates.text("ours.pem"));
    configure(&file, &cluster, &verified);
    // Nothing listens there; that check fails, and says nothing of the database.
    let nowhere = ["--config", &config, "--server", "http://127.0.0.1:1"];
    let (found, code) = doctor(&nowhere);
    assert_eq!(code, Some(1));
    assert_eq!(check(&found, "database").0, "ok", "{found:#?}");
    assert!(check(&found, "schema").1.contains("none yet"), "{found:#?}");
    assert_eq!(cluster.psql("servo", "SELECT count(*) FROM pg_namespace WHERE nspname = 'servo'"), "0");

    let server = Servo::server(&file, &[]).expect("it starts");
    let (found, code) = doctor(&["--config", &config, "--server", &server.url]);
    assert_eq!(code, Some(0), "{found:#?}");
    let (status, how) = check(&found, "encryption");
    assert!(status == "ok" && how.contains("TLSv1.3") && how.contains("verified"), "{how}");
    assert!(check(&found, "schema").1.starts_with("version "), "{found:#?}");
    assert_eq!(check(&found, "roles").0, "ok");
    assert_eq!(check(&found, "durability").0, "ok");
    assert!(server.stop().success());

    cluster.psql("servo", "DELETE FROM servo.schema_migrations WHERE version > 1");
    cluster.set("fsync = off\n");
    cluster.ctl("restart", "fast");
    let (found, _) = doctor(&nowhere);
    assert_eq!(check(&found, "schema").0, "warn", "{found:#?}");
    assert_eq!(check(&found, "durability"), ("fail".to_owned(), "fsync is off".to_owned()));

    for (query, words) in [
        (format!("sslmode=verify-full&sslrootcert={}", certificates.text("theirs.pem")), "is not trusted"),
        ("sslmode=disable".to_owned(), "say sslmode=verify-full"),
        ("sslmode=verify-full&sslrootcert=/no/such.pem".to_owned(), "/no/such.pem: cannot be read"),
    ] {
        configure(&file, &cluster, &query);
        let (found, code) = doctor(&nowhere);
        let (status, detail) = check(&found, "database");
        assert!(code == Some(1) && status == "fail" && detail.contains(words), "{query}: {detail}");
        let refused = Servo::server(&file, &[]).expect_err("it says why");
        assert!(refused.contains(words) && !refused.contains("hunter2"), "{query}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_that_nobody_works_for_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    // Building it also sets up the cryptography that the other client wants.
    let _api = Api::new();
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let (found, _) = doctor(&["--server", &servo.url]);
    assert_eq!(check(&found, "workers").0, "ok", "{found:#?}");
    let registration = json!({"reach": {"kind": "pull"}});
    let put = http.put(format!("{}/v1/functions/orders", servo.url)).json(&registration).send().await;
    let item: Value = put.expect("an answer").json().await.expect("JSON");
    let (found, code) = doctor(&["--server", &servo.url]);
    let (status, detail) = check(&found, "workers");
    assert!(status == "warn" && detail.contains("orders") && code == Some(0), "{detail}");

    let address = item["workerAddress"].as_str().expect("where its workers ask");
    let ask = http.get(format!("http://{address}/2018-06-01/runtime/invocation/next")).send();
    let noticed = until("the worker is seen", async || {
        let (found, _) = tokio::task::block_in_place(|| doctor(&["--server", &servo.url]));
        (check(&found, "workers").0 == "ok").then_some(())
    });
    tokio::select! {
        () = noticed => {}
        call = ask => panic!("there is nothing to do: {call:?}"),
    }
    assert!(servo.stop().success());
}
