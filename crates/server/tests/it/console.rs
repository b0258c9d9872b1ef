//! The console's page and files: open to all, nothing inside, and nothing that another page could use.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Answer, Options, Server, endless, keys};

async fn page(server: &Server, path: &str) -> (Answer, String) {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    let script = answer.text.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    (answer, script)
}

/// Deep links are the page, too: which view it shows is its own business.
#[tokio::test]
async fn every_address_of_the_console_is_the_page() {
    let server = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    for path in ["/console/", "/console/invocations?status=failed", "/console/invocations/inv_1", "/console/a/b/c"] {
        let (answer, script) = page(&server, path).await;
        assert!(answer.text.starts_with("<!doctype html>"), "{path}");
        let file = server.get(&script).await;
        assert_eq!(file.status, 200, "{script}");
        assert_eq!(file.headers["content-type"], "text/javascript; charset=utf-8");
        assert_eq!(file.headers["cache-control"], "public, max-age=31536000, immutable");
    }
    let gone = server.get("/console/assets/0/js/gone.js").await;
    gone.is_problem("NOT_FOUND");
    // Another edition's files are gone with it: a page never gets parts of two.
    server.get("/console/assets/0/js/main.js").await.is_problem("NOT_FOUND");
}

#[tokio::test]
async fn the_page_runs_only_its_own_scripts_and_sits_in_no_frame() {
    let server = Server::start().await;
    let (answer, _) = page(&server, "/console/").await;
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    for rule in
        ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]
    {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!answer.text.contains("<script>") && !answer.text.contains("style="), "nothing inline");
    assert_eq!(answer.headers["referrer-policy"], "no-referrer");
    assert_eq!(answer.headers["x-frame-options"], "DENY");
}

#[tokio::test]
async fn a_page_that_has_not_changed_is_not_sent_again() {
    let server = Server::start().await;
    let (answer, _) = page(&server, "/console/").await;
    let tag = answer.headers["etag"].clone();
    let ask = |tag: &str| server.request(Method::GET, "/console/").header("if-none-match", tag.to_owned());
    let again = Answer::of(ask(tag.to_str().unwrap())).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_eq!(Answer::of(ask("\"other\"")).await.status, 200);
}

#[tokio::test]
async fn browsers_are_shown_the_console_and_programs_are_told_where_it_is() {
    let server = Server::start().await;
    let browser = server.request(Method::GET, "/").header("accept", "text/html,application/xhtml+xml");
    let answer = Answer::of(browser).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["location"]), (303, &"/console/".parse().unwrap()));
    assert!(server.get("/").await.text.contains("/console/"));
}

#[tokio::test]
async fn a_caller_is_told_who_it_is_and_what_it_may() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let viewer = server.send(Method::GET, "/v1/whoami", "acme-viewer", None).await.json;
    assert_eq!((&viewer["tenantId"], &viewer["roles"]), (&json!("acme"), &json!(["viewer"])));
    assert_eq!(viewer["permissions"], json!(["definitions:read", "runs:read"]));
    let operator = server.send(Method::GET, "/v1/whoami", "acme-operator", None).await.json;
    assert!(operator["permissions"].as_array().unwrap().contains(&json!("payloads:read")), "{operator}");
}

/// Events say what happened to everybody who may read runs; what went in is for those who may read payloads.
#[tokio::test]
async fn events_are_without_payloads_for_those_who_may_not_read_them() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let mut steps = endless();
    steps[0]["with"]["error"] = json!({"message": "card 4111"});
    let run = server.start_as("acme-operator", steps).await;
    let path = format!("/v1/runs/{run}/events");
    let operator = server.send(Method::GET, &path, "acme-operator", None).await;
    assert!(operator.text.contains("4111"), "{}", operator.text);
    let viewer = server.send(Method::GET, &path, "acme-viewer", None).await;
    assert_eq!(viewer.json["events"][0]["eventType"], "RunQueued", "{}", viewer.text);
    assert_eq!(viewer.json["events"][0]["payloadsHidden"], true);
    assert!(!viewer.text.contains("4111"), "{}", viewer.text);
    // The stream of an ended run ends; it says no more than the page does.
    let cancel = json!({"signalId": "s", "type": "CANCEL"});
    let path = format!("/v1/runs/{run}/signals");
    assert!(server.send(Method::POST, &path, "acme-operator", Some(&cancel)).await.status.is_success());
    let told = |frames: Vec<crate::harness::Frame>| frames.iter().any(|frame| frame.data.to_string().contains("4111"));
    assert!(told(server.follow(&run, "acme-operator").await));
    assert!(!told(server.follow(&run, "acme-viewer").await));
}
