//! schemathesis, a tester of described APIs, against `/openapi.json` of a development server: whatever it sends, the server
//! does not fail, and answers as it describes itself.

use std::time::Duration;

use super::{DUMMY, python};
use crate::support::process::Servo;

/// More than enough; it takes about twenty seconds.
const WITHIN: Duration = Duration::from_secs(90);
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_fits_the_description_or_not_breaks_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("a server");
    let mut command = python(&servo.url, DUMMY);
    command.current_dir(folder.path()).args(["-m", "schemathesis.cli", "run"]);
    command.arg(format!("{}/openapi.json", servo.url)).args(["--include-path-regex", "^/api/serverless-runtime"]);
    command.args([
        "--checks",
        CHECKS,
        "--max-examples",
        "15",
        "--phases",
        "coverage,fuzzing",
        "--seed",
        "1",
        "--no-color",
    ]);
    let output = tokio::process::Command::from(command).kill_on_drop(true).output();
    let output = tokio::time::timeout(WITHIN, output).await.expect("in time").expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("generated"), "nothing was sent: {said}");
}
