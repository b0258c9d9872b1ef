//! With keys: the console asks for one, shows what its holder may see, and no more.

use serde_json::{Value, json};

use super::sees;
use crate::support::browser::Browser;
use crate::support::process::Servo;
use crate::support::until;

const ROLES: [&str; 2] = ["operator", "viewer"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_sees_how_things_are_and_no_payloads() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\nkind = \"sqlite\"\npath = {:?}\n[engines]\nmock = true\n",
        folder.path().join("data")
    );
    for role in ROLES {
        let sha256 = servo_canon::Digest::of(role.as_bytes());
        config += &format!(
            "[[auth.keys]]\nname = \"{role}\"\ntenant = \"acme\"\nroles = [\"{role}\"]\nsha256 = \"{sha256}\"\nself_made = true\n"
        );
    }
    let file = folder.path().join("servo.toml");
    std::fs::write(&file, config).expect("a file");
    let servo = Servo::server(&file, &[]).expect("it starts");
    let run = start(&servo).await;

    let mut browser = Browser::start();
    let page = format!("{}/console/runs/{run}", servo.url);
    browser.open(&page, "document.querySelector('#key')");
    browser.fill("#key", "nobody");
    browser.press("Enter");
    sees(&mut browser, ".key-page", "not accepted");
    let key = |browser: &mut Browser, text: &str| {
        browser.fill("#key", text);
        browser.press("Enter");
        sees(browser, ".waterfall", "greet");
    };
    key(&mut browser, "viewer");
    sees(&mut browser, "main", "payloads:read");
    browser.click("#tab-Events");
    sees(&mut browser, ".tab-body", "RunQueued");
    let shown = browser.eval("document.documentElement.textContent.includes('secret-7')");
    assert_eq!(shown, json!(false));
    assert_eq!(browser.eval("document.querySelectorAll('main .page-head .button').length"), json!(1), "only `As curl`");
    // The same page with a right to payloads shows them: the test can fail.
    browser.eval("sessionStorage.clear()");
    browser.open(&page, "document.querySelector('#key')");
    key(&mut browser, "operator");
    browser.until("document.documentElement.textContent.includes('secret-7')");
    // The key is nowhere where it could leak from.
    let kept = browser.eval("[location.href.includes('operator'), localStorage.length, document.cookie]");
    assert_eq!(kept, json!([false, 0, ""]));
    // Refusals of wrong keys are all that the browser may complain about.
    assert!(browser.errors.iter().all(|error| error.contains("status of 401")), "{:#?}", browser.errors);
}

async fn start(servo: &Servo) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let plan = json!({"planId": "hello", "planVersion": "1", "schemaVersion": "v1", "engineType": "mock",
        "steps": [{"stepId": "greet", "with": {"error": {"message": "secret-7"}}}]});
    let plan_ref = json!({"planId": "hello", "planVersion": "1", "schemaVersion": "v1",
        "sha256": servo_canon::fingerprint(&plan).expect("finite").to_string()});
    let request = client.post(format!("{}/v1/runs", servo.url)).bearer_auth("operator");
    let answer: Value = request
        .json(&json!({"planRef": plan_ref, "plan": plan}))
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    let id = answer["runId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    until("the run's end", async || {
        let request = client.get(format!("{}/v1/runs/{id}", servo.url)).bearer_auth("operator");
        let snapshot: Value = request.send().await.ok()?.json().await.ok()?;
        (snapshot["status"] == "COMPLETED").then_some(())
    })
    .await;
    id
}
