//! Following events over connections that break.

use std::time::Duration;

use servo_client::{Client, Error, Follower};
use servo_model::RunId;

use crate::server::{Reply, Server};

fn follower(server: &Server, after: u64) -> Follower {
    let client = Client::new(&server.url, None).unwrap();
    client.follow_events(&RunId::parse("inv_1").unwrap(), after).with_backoff(Duration::ZERO)
}

fn event(seq: u64) -> String {
    format!("id: {seq}\nevent: StepStarted\ndata: {{\"runSeq\":{seq}}}\n\n")
}

async fn drain(follower: &mut Follower) -> Result<Vec<u64>, Error> {
    let mut seen = Vec::new();
    while let Some(event) = follower.next().await? {
        assert_eq!(event.document.get(), format!("{{\"runSeq\":{}}}", event.run_seq));
        seen.push(event.run_seq);
    }
    Ok(seen)
}

#[tokio::test]
async fn every_event_comes_once_although_the_connection_breaks() {
    let half = &event(4)[..20];
    let server = Server::start(vec![
        Reply::Close(Reply::stream(&format!(": hello\n\n{}{}", event(1), event(3)))),
        // Restarting: one refusal that passes, one connection that says nothing.
        Reply::json(503, r#"{"type":"t","title":"stopping","status":503,"code":"SHUTTING_DOWN"}"#),
        Reply::Close(String::new()),
        // Repeats what was seen, and breaks off inside an event.
        Reply::Close(Reply::stream(&format!("{}{half}", event(3)))),
        Reply::Hold(Reply::stream(&format!("{}id: 4\nevent: end\ndata: {{}}\n\n", event(4)))),
    ]);
    let mut follower = follower(&server, 0);
    assert_eq!(drain(&mut follower).await.unwrap(), [1, 3, 4]);
    assert_eq!(follower.after(), 4);
    assert!(follower.next().await.unwrap().is_none(), "an ended stream stays ended");
    let requests = server.finish();
    assert!(!requests[0].contains("last-event-id"), "{}", requests[0]);
    assert!(requests[0].contains("accept: text/event-stream"), "{}", requests[0]);
    for request in &requests[1..] {
        assert!(request.contains("last-event-id: 3\r\n"), "{request}");
    }
}

#[tokio::test]
async fn a_run_that_is_gone_ends_the_reconnecting() {
    let server = Server::start(vec![
        Reply::Close(Reply::stream(&event(1))),
        Reply::json(404, r#"{"type":"t","title":"No such run","status":404,"code":"RUN_NOT_FOUND"}"#),
    ]);
    let mut follower = follower(&server, 0);
    assert_eq!(follower.next().await.unwrap().unwrap().run_seq, 1);
    assert_eq!(follower.next().await.unwrap_err().exit_code(), 4);
    server.finish();
}

#[tokio::test]
async fn the_first_connection_is_not_repeated() {
    let server = Server::start(vec![Reply::Close(String::new())]);
    let error = follower(&server, 7).next().await.unwrap_err();
    assert_eq!(error.exit_code(), 9);
    let requests = server.finish();
    assert!(requests[0].starts_with("GET /v1/runs/inv_1/events?after=7 "), "{}", requests[0]);
    assert!(requests[0].contains("last-event-id: 7\r\n"), "{}", requests[0]);
}

#[tokio::test]
async fn a_server_that_never_recovers_is_given_up() {
    let script = std::iter::once(Reply::Close(Reply::stream(&event(1))));
    let server = Server::start(script.chain((0..16).map(|_| Reply::Close(String::new()))).collect());
    let mut follower = follower(&server, 0);
    let error = drain(&mut follower).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(server.finish().len(), 17);
}

#[tokio::test]
async fn what_is_no_event_stream_is_an_error() {
    let server = Server::start(vec![Reply::json(200, "{}")]);
    let error = follower(&server, 0).next().await.unwrap_err();
    assert!(matches!(&error, Error::Decode { reason, .. } if reason.contains("application/json")), "{error}");
    server.finish();
    let server = Server::start(vec![Reply::Close(Reply::stream("id: x\ndata: {}\n\n"))]);
    let error = follower(&server, 0).next().await.unwrap_err();
    assert!(matches!(&error, Error::Decode { .. }), "{error}");
    server.finish();
}
