//! The channel: checkpoints as frames of one request.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::unfold;
use reqwest::{Body, Method, Response};
use serde_json::{Value, json};
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};
use servo_wire::channel::{CONTENT_TYPE, Frames, NEWS_ONLY, PATH, put_alive, put_call};
use servo_wire::lambda::{Operation, OperationUpdate, Seconds};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::harness::{Options, Server, keys, wait_for};

/// Tells the test with what it was called, and never answers.
struct Telling(UnboundedSender<Value>);

#[async_trait]
impl Handlers for Telling {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        let _ = self.0.send(serde_json::from_str(&call.payload).unwrap());
        std::future::pending().await
    }
}

async fn server(options: Options) -> (Server, UnboundedReceiver<Value>) {
    let (sender, envelopes) = unbounded_channel();
    (Server::with(Options { handlers: Arc::new(Telling(sender)), ..options }).await, envelopes)
}

/// The ARN and the first token of a new execution.
async fn execution(server: &Server, envelopes: &mut UnboundedReceiver<Value>, key: &str) -> (String, String) {
    let spec = json!({"reach": {"kind": "inProcess"}});
    server.send(Method::PUT, "/v1/functions/f", key, Some(&spec)).await;
    let start = server.request(Method::POST, "/2015-03-31/functions/f/invocations?Qualifier=%24LATEST");
    let start = start.bearer_auth(key).header("x-amz-invocation-type", "Event").body("{}");
    assert_eq!(start.send().await.unwrap().status(), 202);
    let envelope = envelopes.recv().await.unwrap();
    let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
    (text("DurableExecutionArn"), text("CheckpointToken"))
}

struct Channel {
    calls: UnboundedSender<Vec<u8>>,
    answers: Response,
    frames: Frames,
}

impl Channel {
    async fn open(server: &Server, key: &str) -> Self {
        Self::open_with(server, key, None).await
    }

    async fn open_with(server: &Server, key: &str, header: Option<&str>) -> Self {
        let (calls, pieces) = unbounded_channel::<Vec<u8>>();
        let body = unfold(pieces, |mut pieces| async move {
            let piece = pieces.recv().await?;
            Some((Ok::<_, std::io::Error>(Bytes::from(piece)), pieces))
        });
        let mut request = server.request(Method::POST, PATH).bearer_auth(key).body(Body::wrap_stream(body));
        if let Some(header) = header {
            request = request.header(header, "1");
        }
        let answers = request.send().await.unwrap();
        assert_eq!(answers.status(), 200);
        assert_eq!(answers.headers()["content-type"], CONTENT_TYPE);
        Self { calls, answers, frames: Frames::new(1 << 20) }
    }

    fn call(&self, number: u32, arn: &str, body: &str) {
        let mut out = Vec::new();
        assert!(put_call(&mut out, number, arn, body.as_bytes()));
        let _ = self.calls.send(out);
    }

    /// The next answer: its call, status, error name and document. `None` when the channel is closed.
    async fn answer(&mut self) -> Option<(u32, u16, String, Value)> {
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                let answer = frame.as_answer().unwrap();
                let document = serde_json::from_slice(answer.body).unwrap();
                return Some((frame.call, answer.status, answer.name.to_owned(), document));
            }
            let chunk = self.answers.chunk().await.ok().flatten()?;
            self.frames.push(&chunk);
        }
    }
}

fn step(token: &str, id: &str) -> String {
    let start = json!({"Id": id, "Type": "STEP", "Action": "START", "Name": id});
    let end = json!({"Id": id, "Type": "STEP", "Action": "SUCCEED", "Name": id, "Payload": "\"done\""});
    json!({"CheckpointToken": token, "Updates": [start, end]}).to_string()
}

/// A checkpoint over a channel is the checkpoint of the API: the same records, the same refusals.
#[tokio::test]
async fn a_channel_carries_checkpoints() {
    let (server, mut envelopes) = server(Options::default()).await;
    let (arn, token) = execution(&server, &mut envelopes, "").await;
    let mut channel = Channel::open(&server, "").await;
    channel.call(1, &arn, &step(&token, "a"));
    let (call, status, name, answer) = channel.answer().await.unwrap();
    assert_eq!((call, status, name.as_str()), (1, 200, ""), "{answer}");
    assert_eq!(answer["NewExecutionState"]["Operations"][0]["Id"], "a", "{answer}");
    let next = answer["CheckpointToken"].as_str().unwrap().to_owned();

    // A token that was used for something else; a body that is no call; an execution of nobody.
    channel.call(2, &arn, &step(&token, "b"));
    let (call, status, name, answer) = channel.answer().await.unwrap();
    assert_eq!((call, status, name.as_str()), (2, 400, "InvalidParameterValueException"));
    assert_eq!(answer["message"], "Invalid checkpoint token");
    channel.call(3, &arn, "{");
    let (call, status, name, _) = channel.answer().await.unwrap();
    assert_eq!((call, status, name.as_str()), (3, 400, "InvalidRequestContentException"));
    channel.call(4, "arn:nothing", &step(&next, "b"));
    assert!(channel.answer().await.unwrap().1 >= 400);

    // None of them cost anything: the execution goes on, and the two ways see the same state.
    let mut alive = Vec::new();
    put_alive(&mut alive);
    channel.calls.send(alive).unwrap();
    channel.call(5, &arn, &step(&next, "b"));
    let (call, status, _, _) = channel.answer().await.unwrap();
    assert_eq!((call, status), (5, 200));
    let path = arn.replace(':', "%3A").replace('/', "%2F").replace('$', "%24");
    let history = server.get(&format!("/2025-12-01/durable-executions/{path}/history")).await;
    let succeeded = history.text.matches(r#""EventType":"StepSucceeded""#).count();
    assert_eq!(succeeded, 2, "{}", history.text);

    // Its maker ends it by ending the request.
    let Channel { calls, mut answers, .. } = channel;
    drop(calls);
    assert_eq!(answers.chunk().await.unwrap(), None);
}

/// Calls that were under way when the frames stop making sense are answered; nothing behind them is read.
#[tokio::test]
async fn a_channel_with_garbage_is_closed() {
    let (server, mut envelopes) = server(Options::default()).await;
    let (arn, token) = execution(&server, &mut envelopes, "").await;
    let mut channel = Channel::open(&server, "").await;
    channel.call(1, &arn, &step(&token, "a"));
    assert_eq!(channel.answer().await.unwrap().1, 200);
    channel.calls.send(u32::MAX.to_be_bytes().to_vec()).unwrap();
    assert!(channel.answer().await.is_none());
}

#[tokio::test]
async fn a_stopping_server_closes_its_channels() {
    let (server, mut envelopes) = server(Options::default()).await;
    let (arn, token) = execution(&server, &mut envelopes, "").await;
    let mut channel = Channel::open(&server, "").await;
    channel.call(1, &arn, &step(&token, "a"));
    assert_eq!(channel.answer().await.unwrap().1, 200);
    server.shutdown.trigger();
    assert!(channel.answer().await.is_none());
}

/// A channel has the rights of the key that opened it, and only as long as the key has them.
#[tokio::test]
async fn a_channel_ends_with_its_key() {
    let (server, mut envelopes) = server(Options { auth: keys(), ..Options::default() }).await;
    let refused = server.request(Method::POST, PATH).bearer_auth("acme-viewer").send().await.unwrap();
    assert_eq!(refused.status(), 403);

    let made = json!({"name": "worker", "roles": ["operator"]});
    let made = server.send(Method::POST, "/v1/keys", "acme-admin", Some(&made)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let (arn, token) = execution(&server, &mut envelopes, "acme-admin").await;
    let mut channel = Channel::open(&server, made.json["secret"].as_str().unwrap()).await;
    channel.call(1, &arn, &step(&token, "a"));
    assert_eq!(channel.answer().await.unwrap().1, 200);
    let id = made.json["id"].as_str().unwrap();
    let revoked = server.send(Method::DELETE, &format!("/v1/keys/{id}"), "acme-admin", None).await;
    assert!(revoked.status.is_success(), "{}", revoked.text);
    wait_for("the channel to be closed", async || {
        channel.call(2, &arn, "{}");
        channel.answer().await.is_none().then_some(())
    })
    .await;
}

/// Whoever asks for news alone is not told what it has said itself, and is told all that it has not.
#[tokio::test]
async fn answers_with_news_alone_leave_out_what_the_call_has_said() {
    let (server, mut envelopes) = server(Options::default()).await;
    let (arn, token) = execution(&server, &mut envelopes, "").await;
    let mut channel = Channel::open_with(&server, "", Some(NEWS_ONLY)).await;
    let step = |id: &str, action: &str| json!({"Id": id, "Type": "STEP", "Action": action, "Name": id});
    let with = |token: &str, updates: Value| json!({"CheckpointToken": token, "Updates": updates}).to_string();
    let ids = |document: &Value| {
        let operations = document["NewExecutionState"]["Operations"].as_array().unwrap().iter();
        operations.map(|operation| operation["Id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // A step that begins and ends, one that only begins, and a wait, of which the service knows more than the call.
    let wait = json!({"Id": "wait", "Type": "WAIT", "Action": "START", "WaitOptions": {"WaitSeconds": 60}});
    channel.call(
        1,
        &arn,
        &with(&token, json!([step("whole", "START"), step("whole", "SUCCEED"), step("begun", "START"), wait])),
    );
    let (_, status, _, document) = channel.answer().await.unwrap();
    assert_eq!((status, ids(&document)), (200, vec!["begun".to_owned(), "wait".to_owned()]), "{document}");
    // A step that an earlier call has begun is told: its beginning was not in this call.
    let token = document["CheckpointToken"].as_str().unwrap();
    channel.call(2, &arn, &with(token, json!([step("begun", "SUCCEED")])));
    let (_, status, _, document) = channel.answer().await.unwrap();
    assert_eq!((status, ids(&document)), (200, vec!["begun".to_owned()]), "{document}");
}

/// What a caller makes of its own update is what the service would have told it.
#[tokio::test]
async fn what_is_left_out_is_what_the_caller_knows() {
    let (server, mut envelopes) = server(Options::default()).await;
    let (arn, token) = execution(&server, &mut envelopes, "").await;
    let mut channel = Channel::open(&server, "").await;
    let error = json!({"ErrorType": "Error", "ErrorMessage": "no"});
    let updates = json!([
        {"Id": "a", "Type": "STEP", "Action": "SUCCEED", "Name": "a", "SubType": "Step", "Payload": "\"x\""},
        {"Id": "b", "Type": "STEP", "Action": "FAIL", "Error": error},
        {"Id": "c", "Type": "CONTEXT", "Action": "SUCCEED", "Payload": "1", "ContextOptions": {"ReplayChildren": true}},
        {"Id": "d", "Type": "CONTEXT", "Action": "SUCCEED", "SubType": "Map", "ContextOptions": {"ReplayChildren": false}},
        {"Id": "e", "Type": "CONTEXT", "Action": "FAIL", "Error": error},
    ]);
    // Each begins in the same call, with all but the outcome.
    let begin = |update: &Value| {
        let mut begin = update.clone();
        begin["Action"] = json!("START");
        for outcome in ["Payload", "Error", "ContextOptions"] {
            begin.as_object_mut().unwrap().remove(outcome);
        }
        [begin, update.clone()]
    };
    let sent: Vec<Value> = updates.as_array().unwrap().iter().flat_map(begin).collect();
    channel.call(1, &arn, &json!({"CheckpointToken": token, "Updates": sent}).to_string());
    let (_, status, _, document) = channel.answer().await.unwrap();
    assert_eq!(status, 200, "{document}");
    let updates: Vec<OperationUpdate> = serde_json::from_value(updates).unwrap();
    let told: Vec<Operation<Seconds>> =
        serde_json::from_value(document["NewExecutionState"]["Operations"].clone()).unwrap();
    assert_eq!(told.len(), updates.len());
    for (update, told) in updates.into_iter().zip(told) {
        assert_eq!(Operation::said_by(update, told.start_timestamp), Some(told));
    }
}
