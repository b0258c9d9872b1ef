//! What commands ask a server for, and the exit codes they end with.

use clap::Parser;
use servo_cli::{Cli, Failure, Next, exit};

use crate::server::{Reply, Server};

async fn run(server: &Server, line: &[&str]) -> Result<u8, Failure> {
    let line = [&["servo", "--server", &server.url][..], line].concat();
    match servo_cli::run(Cli::try_parse_from(line).unwrap()).await? {
        Next::Done(code) => Ok(code),
        Next::Local(local) => panic!("{local:?}"),
    }
}

fn snapshot(status: &str) -> String {
    format!(
        r#"{{"runId":"inv_1","status":"{status}","lastEventSeq":1,"steps":[],"artifacts":[],"failedSteps":0,"message":"why"}}"#
    )
}

fn started() -> String {
    snapshot("PENDING").replacen('{', r#"{"created":true,"#, 1)
}

fn plan_file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, r#"{"planId":"p","planVersion":"1","schemaVersion":"1","steps":[{"stepId":"a"}]}"#).unwrap();
    file
}

const END: &str =
    "id: 1\nevent: RunQueued\ndata: {\"eventType\":\"RunQueued\",\"runSeq\":1}\n\nevent: end\ndata: {}\n\n";

#[tokio::test]
async fn waiting_ends_with_the_runs_own_verdict() {
    for (status, expected) in [("COMPLETED", exit::OK), ("FAILED", exit::RUN_FAILED), ("CANCELLED", exit::RUN_FAILED)] {
        let server = Server::start(vec![
            Reply::json(201, &started()),
            Reply::Close(Reply::stream(END)),
            Reply::json(200, &snapshot(status)),
        ]);
        let plan = plan_file();
        let result = run(&server, &["runs", "start", plan.path().to_str().unwrap(), "--wait"]).await;
        assert_eq!(result.unwrap_or_else(|failure| failure.exit), expected, "{status}");
        let requests = server.finish();
        // The file is canonical already, so the digest of its bytes is the plan's.
        let digest = servo_canon::Digest::of(&std::fs::read(&plan).unwrap()).to_string();
        assert!(requests[0].contains(&digest), "{}", requests[0]);
        assert!(requests[0].contains(r#""triggerSource":"manual""#), "{}", requests[0]);
    }
}

#[tokio::test]
async fn waiting_too_long_is_exit_code_8() {
    let server = Server::start(vec![
        Reply::json(201, &started()),
        Reply::Hold(Reply::stream(": nothing yet\n\n")),
        Reply::json(200, &snapshot("RUNNING")),
    ]);
    let plan = plan_file();
    let line = ["runs", "start", plan.path().to_str().unwrap(), "--wait", "--timeout", "20ms"];
    let failure = run(&server, &line).await.unwrap_err();
    assert_eq!(failure.exit, exit::TIMED_OUT);
    server.finish();
}

#[tokio::test]
async fn one_refusal_does_not_stop_the_others() {
    let refusal = r#"{"type":"t","title":"The run has ended","status":410,"code":"RUN_CLOSED"}"#;
    let accepted = format!(r#"{{"accepted":true,"snapshot":{}}}"#, snapshot("CANCELLED"));
    let server = Server::start(vec![Reply::json(410, refusal), Reply::json(200, &accepted)]);
    let line = ["runs", "cancel", "inv_0", "inv_1", "--reason", "wrong input", "--signal-id", "s-1"];
    assert_eq!(run(&server, &line).await.unwrap(), exit::CONFLICT);
    let requests = server.finish();
    assert!(requests[0].starts_with("POST /v1/runs/inv_0/signals "), "{}", requests[0]);
    assert!(requests[1].starts_with("POST /v1/runs/inv_1/signals "), "{}", requests[1]);
    let body = r#"{"signalId":"s-1","type":"CANCEL","reason":"wrong input"}"#;
    assert!(requests[1].ends_with(body), "{}", requests[1]);
}

#[tokio::test]
async fn a_key_that_is_refused_is_not_tried_again() {
    let refusal = r#"{"type":"t","title":"no","status":401,"code":"UNAUTHENTICATED"}"#;
    let server = Server::start(vec![Reply::json(401, refusal)]);
    assert_eq!(run(&server, &["runs", "delete", "a", "b", "--yes"]).await.unwrap(), exit::AUTH);
    assert_eq!(server.finish().len(), 1);
}

#[tokio::test]
async fn retry_is_about_a_step_or_the_run() {
    let accepted = format!(r#"{{"accepted":true,"snapshot":{}}}"#, snapshot("RUNNING"));
    let server = Server::start(vec![Reply::json(200, &accepted), Reply::json(200, &accepted)]);
    assert_eq!(run(&server, &["runs", "retry", "inv_1", "--step", "load"]).await.unwrap(), exit::OK);
    assert_eq!(run(&server, &["runs", "retry", "inv_1"]).await.unwrap(), exit::OK);
    let failure = run(&server, &["runs", "signal", "inv_1", "skip-step"]).await.unwrap_err();
    assert_eq!(failure.exit, exit::USAGE);
    let failure = run(&server, &["runs", "signal", "inv_1", "pause", "--step", "x"]).await.unwrap_err();
    assert_eq!(failure.exit, exit::USAGE);
    let requests = server.finish();
    assert!(requests[0].ends_with(r#""type":"RETRY_STEP","stepId":"load"}"#), "{}", requests[0]);
    assert!(requests[1].ends_with(r#""type":"RETRY_RUN"}"#), "{}", requests[1]);
}

#[tokio::test]
async fn all_pages_are_asked_for() {
    let item = r#"{"runId":"inv_1","tenantId":"t","projectId":"p","environmentId":"e","planId":"p","planVersion":"1",
                   "status":"FAILED","visible":"failed","createdAt":"2026-02-11T10:30:00.000Z"}"#;
    let server = Server::start(vec![
        Reply::json(200, &format!(r#"{{"items":[{item}],"nextCursor":"c1"}}"#)),
        Reply::json(200, &format!(r#"{{"items":[{item}],"nextCursor":"c2"}}"#)),
        Reply::json(200, r#"{"items":[]}"#),
    ]);
    assert_eq!(run(&server, &["runs", "list", "--all", "--status", "FAILED", "-o", "ids"]).await.unwrap(), exit::OK);
    let requests = server.finish();
    assert!(requests[0].starts_with("GET /v1/runs?status=failed&limit=50 "), "{}", requests[0]);
    assert!(requests[2].starts_with("GET /v1/runs?status=failed&limit=50&cursor=c2 "), "{}", requests[2]);
}

#[tokio::test]
async fn events_are_read_to_the_end() {
    let page = |next: u64| format!(r#"{{"events":[{{"runSeq":{next}}}],"lastEventSeq":4,"nextAfter":{next}}}"#);
    let server = Server::start(vec![Reply::json(200, &page(2)), Reply::json(200, &page(4))]);
    assert_eq!(run(&server, &["runs", "events", "inv_1", "--json"]).await.unwrap(), exit::OK);
    let requests = server.finish();
    assert!(requests[0].starts_with("GET /v1/runs/inv_1/events?after=0&limit=1000 "), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /v1/runs/inv_1/events?after=2&limit=1000 "), "{}", requests[1]);
    let server = Server::start(vec![Reply::json(200, &page(2))]);
    assert_eq!(run(&server, &["runs", "events", "inv_1", "--limit", "1"]).await.unwrap(), exit::OK);
    assert!(server.finish()[0].contains("limit=1 "));
}

#[tokio::test]
async fn damage_that_verification_finds_is_an_error() {
    let report = r#"{"runs":1,"events":2,"findings":[{"runId":"inv_1","problem":"p"}],"integrity":[]}"#;
    let server = Server::start(vec![Reply::json(200, report)]);
    assert_eq!(run(&server, &["store", "verify"]).await.unwrap(), exit::ERROR);
    server.finish();
}

#[tokio::test]
async fn a_server_cannot_be_restored_while_it_runs() {
    let server = Server::start(Vec::new());
    let failure = run(&server, &["store", "restore", "x.backup"]).await.unwrap_err();
    assert_eq!(failure.exit, exit::USAGE);
    server.finish();
}

#[tokio::test]
async fn keys_are_made_listed_and_ended() {
    let key = r#"{"id":"key_1","tenantId":"t","name":"ci","roles":["operator"],"kind":"api","status":"active",
                  "prefix":"svo_abcd","createdAt":"2026-02-11T10:30:00.000Z","createdBy":"x"}"#;
    let made = key.replacen('{', r#"{"secret":"svo_x","#, 1);
    let server = Server::start(vec![
        Reply::json(201, &made),
        Reply::json(200, &format!(r#"{{"items":[{key}]}}"#)),
        Reply::json(200, key),
        Reply::json(200, r#"{"items":[]}"#),
    ]);
    let line = ["keys", "create", "ci", "--role", "operator", "--expires-in", "1h", "--tenant", "t"];
    assert_eq!(run(&server, &line).await.unwrap(), exit::OK);
    assert_eq!(run(&server, &["keys", "list", "-o", "ids"]).await.unwrap(), exit::OK);
    assert_eq!(run(&server, &["keys", "revoke", "key_1"]).await.unwrap(), exit::OK);
    let line = ["audit", "list", "--outcome", "denied", "--action", "key.create", "--from", "2026-01-01T00:00:00Z"];
    assert_eq!(run(&server, &line).await.unwrap(), exit::OK);
    let requests = server.finish();
    assert!(requests[0].starts_with("POST /v1/keys "), "{}", requests[0]);
    let body = r#"{"name":"ci","roles":["operator"],"kind":"api","tenantId":"t","expiresInSeconds":3600}"#;
    assert!(requests[0].ends_with(body), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /v1/keys?limit=100 "), "{}", requests[1]);
    assert!(requests[2].starts_with("DELETE /v1/keys/key_1 "), "{}", requests[2]);
    assert!(
        requests[3].starts_with("GET /v1/audit?action=key.create&outcome=denied&from=2026-01-01T00"),
        "{}",
        requests[3]
    );
}

/// What a caller is taken for is asked of the server, never guessed from the key.
#[tokio::test]
async fn the_server_says_who_i_am() {
    let answer = r#"{"subject":"ci","tenantId":"acme","roles":["operator"],"permissions":["payloads:read"]}"#;
    let server = Server::start(vec![Reply::json(200, answer)]);
    assert_eq!(run(&server, &["whoami"]).await.unwrap_or_else(|failure| failure.exit), exit::OK);
    assert!(server.finish()[0].starts_with("GET /v1/whoami "));
}

/// Needs no server.
#[tokio::test]
async fn completions_are_printed() {
    let server = Server::start(vec![]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert_eq!(run(&server, &["completions", shell]).await.unwrap_or_else(|failure| failure.exit), exit::OK);
    }
    assert!(server.finish().is_empty());
    assert!(Cli::try_parse_from(["servo", "completions", "tcsh"]).is_err());
}

/// Lists of executions have ARNs; other commands take them as the runs they are.
#[tokio::test]
async fn several_runs_are_shown_as_a_list() {
    let server = Server::start(vec![Reply::json(200, &snapshot("RUNNING")), Reply::json(200, &snapshot("COMPLETED"))]);
    assert_eq!(run(&server, &["runs", "get", "inv_1", "inv_2", "-o", "json"]).await.unwrap(), exit::OK);
    let requests = server.finish();
    assert!(requests[1].starts_with("GET /v1/runs/inv_2 "), "{}", requests[1]);
}

#[tokio::test]
async fn watching_ends_with_the_run() {
    let server = Server::start(vec![
        Reply::json(200, &snapshot("RUNNING")),
        Reply::json(503, r#"{"type":"t","title":"busy","status":503,"code":"OVERLOADED"}"#),
        Reply::json(200, &snapshot("COMPLETED")),
    ]);
    let line = ["runs", "get", "inv_1", "--watch", "--every", "100ms"];
    assert_eq!(run(&server, &line).await.unwrap(), exit::OK);
    assert_eq!(server.finish().len(), 3);
    let failure = run(&Server::start(vec![]), &["runs", "get", "a", "b", "--watch"]).await.unwrap_err();
    assert_eq!(failure.exit, exit::USAGE, "one thing at a time");
}

#[tokio::test]
async fn bulk_work_goes_on_until_nothing_is_left() {
    let page = |id: &str, cursor: &str| {
        let info = format!(r#"{{"next_cursor":{cursor},"prev_cursor":null,"has_more":false}}"#);
        Reply::json(200, &format!(r#"{{"items":[{{"invocation_id":"{id}","error":null}}],"page_info":{info}}}"#))
    };
    let server = Server::start(vec![page("inv_1", "\"c1\""), page("inv_2", "null")]);
    let line = ["invocations", "bulk", "retry", "--filter", "status eq 'failed'", "--all", "--per-second", "3"];
    assert_eq!(run(&server, &line).await.unwrap(), exit::OK);
    let requests = server.finish();
    assert!(requests[0].contains(r#""max_items":6"#), "{}", requests[0]);
    assert!(requests[1].contains(r#""cursor":"c1""#), "{}", requests[1]);
}
