//! Events: in pages, and as they come.

use reqwest::Method;
use serde_json::json;
use servo_server::config::ServerConfig;

use crate::harness::{Answer, Options, Server, endless, frames, keys, one_step};

#[tokio::test]
async fn a_stream_follows_a_run_to_its_end() {
    let server = Server::start().await;
    let run =
        server.start_run(json!([{"stepId": "a", "with": {"sleepMs": 30}}, {"stepId": "b", "dependsOn": ["a"]}])).await;
    let frames = server.follow(&run, "").await;
    let (end, events) = frames.split_last().unwrap();
    assert_eq!(end.event, "end");
    assert_eq!(end.data["status"], "COMPLETED");
    let page = server.get(&format!("/v1/runs/{run}/events?limit=1000")).await.json;
    assert_eq!(end.data["lastEventSeq"], page["lastEventSeq"]);
    let documents: Vec<_> = events.iter().map(|frame| frame.data.clone()).collect();
    assert_eq!(json!(documents), page["events"], "both ways show the same documents");
    for frame in events {
        assert_eq!(frame.id, frame.data["runSeq"].to_string());
        assert_eq!(frame.event, frame.data["eventType"].as_str().unwrap());
    }
    assert_eq!(events.last().unwrap().event, "RunCompleted");
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_interrupted() {
    let server = Server::start().await;
    let run = server.start_run(one_step()).await;
    let all = server.follow(&run, "").await;
    let path = format!("/v1/runs/{run}/events?after=1");
    let resumed = server.request(Method::GET, &path).header("accept", "text/event-stream").header("last-event-id", "3");
    let text = resumed.send().await.unwrap().text().await.unwrap();
    assert_eq!(frames(&text), all[3..]);
    let after = server.request(Method::GET, &path).header("accept", "application/json, text/event-stream;q=0.9");
    assert_eq!(frames(&after.send().await.unwrap().text().await.unwrap()), all[1..]);
}

#[tokio::test]
async fn pages_of_events_join_up() {
    let server = Server::start().await;
    let run = server.start_run(json!([{"stepId": "a"}, {"stepId": "b"}, {"stepId": "c"}])).await;
    server.finish(&run).await;
    let whole = server.get(&format!("/v1/runs/{run}/events?limit=1000")).await.json;
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = server.get(&format!("/v1/runs/{run}/events?after={after}&limit=2")).await.json;
        assert_eq!(page["lastEventSeq"], whole["lastEventSeq"]);
        let next = page["nextAfter"].as_u64().unwrap();
        events.extend(page["events"].as_array().unwrap().clone());
        if next == after {
            break;
        }
        after = next;
    }
    assert_eq!(json!(events), whole["events"]);
}

/// Line breaks of a plan's author do not break the stream.
#[tokio::test]
async fn a_pretty_plan_streams_whole() {
    let server = Server::start().await;
    let plan = crate::harness::plan(json!([{"stepId": "a"}]));
    let reference = crate::harness::plan_ref(&plan);
    let pretty = serde_json::to_string_pretty(&plan).unwrap().replace('\n', "\r\n");
    let answer = server.post_text("/v1/runs", &format!(r#"{{"planRef":{reference},"plan":{pretty}}}"#)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let frames = server.follow(&answer.run_id(), "").await;
    assert_eq!(frames[0].data["plan"], plan);
}

#[tokio::test]
async fn so_many_streams_are_open_and_no_more() {
    let config = ServerConfig { streams_max: 1, ..ServerConfig::default() };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    let run = server.start_run(endless()).await;
    let open = || server.request(Method::GET, &format!("/v1/runs/{run}/events")).header("accept", "text/event-stream");
    let mut first = open().send().await.unwrap();
    assert_eq!(first.status(), 200);
    let opening = first.chunk().await.unwrap().unwrap();
    assert!(opening.starts_with(b":"));
    let second = Answer::of(open()).await;
    assert_eq!(second.status, 429);
    second.is_problem("OVERLOADED");
    drop(first);
    crate::harness::wait_for("the slot to be free again", async || {
        let response = open().send().await.unwrap();
        (response.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams() {
    let server = Server::start().await;
    let run = server.start_run(endless()).await;
    let stream = server.request(Method::GET, &format!("/v1/runs/{run}/events")).header("accept", "text/event-stream");
    let stream = stream.send().await.unwrap();
    server.shutdown.trigger();
    let text = stream.text().await.unwrap();
    assert!(frames(&text).iter().all(|frame| frame.event != "end"), "the run has not ended");
}

#[tokio::test]
async fn the_stream_of_a_deleted_run_ends() {
    let server = Server::start().await;
    let run = server.start_run(endless()).await;
    let stream = server.request(Method::GET, &format!("/v1/runs/{run}/events")).header("accept", "text/event-stream");
    let stream = stream.send().await.unwrap();
    assert_eq!(server.send(Method::DELETE, &format!("/v1/runs/{run}"), "", None).await.status, 204);
    let frames = frames(&stream.text().await.unwrap());
    assert_eq!(frames.last().unwrap().event, "end");
}

/// A stream has the rights of the key that opened it, and only as long as the key has them.
#[tokio::test]
async fn a_stream_ends_with_its_key() {
    let server = Server::with(Options { auth: keys(), ..Options::default() }).await;
    let made = json!({"name": "watcher", "roles": ["viewer"]});
    let made = server.send(Method::POST, "/v1/keys", "acme-admin", Some(&made)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let (id, secret) = (made.json["id"].as_str().unwrap(), made.json["secret"].as_str().unwrap());
    let run = server.start_as("acme-operator", endless()).await;
    let open = |key: &str| {
        let request = server.request(Method::GET, &format!("/v1/runs/{run}/events"));
        request.header("accept", "text/event-stream").bearer_auth(key).send()
    };
    let (revoked, kept) = (open(secret).await.unwrap(), open("acme-viewer").await.unwrap());
    assert_eq!((revoked.status().as_u16(), kept.status().as_u16()), (200, 200));
    let answer = server.send(Method::DELETE, &format!("/v1/keys/{id}"), "acme-admin", None).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    let text = revoked.text().await.unwrap();
    assert!(text.contains("event: StepStarted") && !text.contains("event: end"), "cut before the run's end: {text}");
    assert_eq!(open(secret).await.unwrap().status(), 401);
    let signal = json!({"signalId": "stop", "type": "CANCEL"});
    let cancelled = server.send(Method::POST, &format!("/v1/runs/{run}/signals"), "acme-operator", Some(&signal)).await;
    assert!(cancelled.status.is_success(), "{}", cancelled.text);
    let text = kept.text().await.unwrap();
    assert_eq!(frames(&text).last().unwrap().event, "end", "another's stream goes on to the end");
}
