//! S10: schemathesis, a tester of described APIs, against `/openapi.json` of a server with keys: whatever it sends, the server does not
//! fail, answers as it describes itself, and keeps out whoever has no key or another tenant's.
//!
//! A campaign is judged by its report and not by its exit code: how much was sent, what came back, and whether every operation was
//! reached at all. `SERVO_TEST_REQUESTS=10000` sends more.

mod control;
mod report;
mod seed;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use self::report::Report;
use self::seed::Seeded;
use super::{DUMMY, python};
use crate::support::optional;
use crate::support::process::Servo;

/// Requests of one change.
const REQUESTS: usize = 2_000;
/// So many are sent for each example that an operation is asked for, and so many at least beside those. Both are less than were counted.
const PER_EXAMPLE: usize = 40;
const BESIDE: usize = 1_000;
/// A campaign of one change takes about twenty seconds where nothing else runs.
const WITHIN: Duration = Duration::from_secs(170);
const PHASES: &str = "examples,coverage,fuzzing,stateful";
/// It wants every request that fits the description to be taken. Whether a source is a program, or a cursor one of ours, no schema says.
const LEFT_OUT: &str = "positive_data_acceptance";
/// A stream of frames in both directions, which ends when the caller ends it: nothing for a tester of requests and answers.
const EXCLUDED: &str = "openChannel";

/// Whose keys there are: each is the name of a tenant, too.
const OWNER: &str = "acme";
const STRANGER: &str = "umbrella";

/// A server that lets nobody in without a key.
fn server(folder: &Path) -> Servo {
    let key = |tenant: &str, roles: &str| {
        let sha256 = servo_canon::Digest::of(tenant.as_bytes());
        format!(
            "[[auth.keys]]\nname = \"{tenant}\"\ntenant = \"{tenant}\"\nroles = [{roles}]\nsha256 = \"{sha256}\"\nself_made = true\n"
        )
    };
    let config = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[engines]\nmock = true\n[store]\nkind = \"sqlite\"\npath = {:?}\n{}{}",
        folder.join("data"),
        // The stranger does not run the platform: whoever does sees every tenant.
        key(OWNER, "\"admin\", \"platform-admin\""),
        key(STRANGER, "\"admin\""),
    );
    let file = folder.join("servo.toml");
    std::fs::write(&file, config).expect("a file");
    Servo::server(&file, &[]).expect("it starts")
}

/// Sends so many requests of all phases to what is described, and reads what came of it. Everything that the tester writes is in `folder`.
async fn campaign(folder: &Path, api: &str, described: &Seeded, requests: usize) -> Report {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
    write("openapi.json", described.document.to_string());
    write("bodies.json", json!(described.bodies).to_string());
    let user = |name: &str| json!({"name": name, "fixedHeaders": [{"name": "Authorization", "value": format!("Bearer {name}")}]});
    write("users.json", json!({"auth": [user(OWNER), user(STRANGER)]}).to_string());
    let settings = format!(
        "[phases.examples]\nextra-data-sources = {{ responses = false }}\noperation-ordering = \"none\"\n\
         [auth.wfc]\npath = \"users.json\"\nuser = \"{OWNER}\"\npeers = [\"{OWNER}\", \"{STRANGER}\"]\n"
    );
    write("schemathesis.toml", settings);
    let mut command = python(api, DUMMY);
    command.current_dir(folder).env("SERVO_TEST_BODIES", folder.join("bodies.json"));
    command.env("SCHEMATHESIS_HOOKS", "described");
    command.args(["-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", "openapi.json", "--url", api]);
    command.args(["--exclude-operation-id", EXCLUDED, "--checks", "all", "--exclude-checks", LEFT_OUT]);
    command.args(["--phases", PHASES, "--seed", "1", "--continue-on-failure", "--no-shrink", "--no-color"]);
    command.args(["--max-examples", &(requests.saturating_sub(BESIDE) / PER_EXAMPLE).max(1).to_string()]);
    command.args(["--report", "ndjson", "--report-ndjson-path", "report.ndjson"]);
    let within = WITHIN * u32::try_from(requests / REQUESTS).unwrap_or(1).max(1);
    let output = tokio::process::Command::from(command).kill_on_drop(true).output();
    let output = tokio::time::timeout(within, output).await.expect("in time").expect("it runs");
    let said = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Nothing to complain about, or something: all else is no campaign.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said());
    let text = std::fs::read_to_string(folder.join("report.ndjson")).unwrap_or_else(|_| panic!("{}", said()));
    Report::of(&text, &operations(&described.document))
}

/// Every operation that is asked, as the report calls them.
fn operations(document: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if operation["operationId"] != EXCLUDED {
                all.push(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_fits_the_description_or_not_breaks_the_server() {
    let requests = optional("SERVO_TEST_REQUESTS").and_then(|text| text.parse().ok()).unwrap_or(REQUESTS);
    let folder = tempfile::tempdir().expect("a folder");
    let servo = server(folder.path());
    let described = seed::seed(&servo.url, OWNER).await;
    let report = campaign(folder.path(), &servo.url, &described, requests).await;
    println!("{report}");
    assert_eq!(report.complaints(requests), Vec::<String>::new());
    // It is still there, and does not only refuse.
    assert!(super::service::Service::at(&servo.url).answers("/readyz").await.is_some());
    // Users' keys were looked at, and tenants kept apart: both are counted for requests that were let in.
    for check in ["ignored_auth", "object_level_authorization", "use_after_free", "response_schema_conformance"] {
        assert!(report.checked(check) > requests / 2, "{check}: {report}");
    }
}
