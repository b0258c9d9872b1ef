//! Functions and the Lambda API: what goes over the wire, down to the encoding of names.

use std::time::Duration;

use servo_client::{Client, Error, ExecutionFilter, HistoryFilter, Invocation, execution_arn};
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{ErrorObject, ExecutionStatus};
use servo_model::{AliasName, FunctionName, RunId};

use crate::server::{Reply, Server};

fn client(server: &Server) -> Client {
    Client::new(&server.url, None).unwrap()
}

fn name() -> FunctionName {
    FunctionName::parse("orders").unwrap()
}

fn run() -> RunId {
    RunId::parse("inv_1").unwrap()
}

const ARN: &str = "inv_1";
const ITEM: &str = r#"{"name":"orders","version":2,"spec":{"reach":{"kind":"pull"}},"digest":"d",
                       "createdAt":"2026-02-11T10:30:00.000Z","workerAddress":"127.0.0.1:9001"}"#;

#[tokio::test]
async fn functions_are_registered_shown_and_removed() {
    let view = format!(
        r#"{{"latest":{ITEM},"versions":[{{"version":2,"createdAt":"2026-02-11T10:30:00Z","openRuns":3}}],"aliases":[]}}"#
    );
    let server = Server::start(vec![
        Reply::json(200, ITEM),
        Reply::json(200, &format!(r#"{{"items":[{ITEM}],"after":"orders"}}"#)),
        Reply::json(200, &view),
        Reply::json(200, r#"{"alias":"live","version":2}"#),
        Reply::whole(204, "text/plain", ""),
        Reply::whole(204, "text/plain", ""),
    ]);
    let client = client(&server);
    let alias = AliasName::parse("live").unwrap();
    let item = client.register_function(&name(), &FunctionSpec::new(Reach::Pull)).await.unwrap();
    assert_eq!((item.version, item.worker_address.as_deref()), (2, Some("127.0.0.1:9001")));
    assert_eq!(client.functions(Some("a"), Some(1)).await.unwrap().after.as_deref(), Some("orders"));
    assert_eq!(client.function(&name()).await.unwrap().versions[0].open_runs, 3);
    assert_eq!(client.put_alias(&name(), &alias, 2).await.unwrap().version, 2);
    client.remove_alias(&name(), &alias).await.unwrap();
    client.remove_function(&name()).await.unwrap();
    let requests = server.finish();
    assert!(requests[0].starts_with("PUT /v1/functions/orders "), "{}", requests[0]);
    assert!(requests[0].contains(r#"{"reach":{"kind":"pull"},"durable":true,"#), "{}", requests[0]);
    assert!(requests[1].starts_with("GET /v1/functions?after=a&limit=1 "), "{}", requests[1]);
    assert!(requests[2].starts_with("GET /v1/functions/orders "), "{}", requests[2]);
    assert!(requests[3].starts_with("PUT /v1/functions/orders/aliases/live "), "{}", requests[3]);
    assert!(requests[3].ends_with(r#"{"version":2}"#), "{}", requests[3]);
    assert!(requests[4].starts_with("DELETE /v1/functions/orders/aliases/live "), "{}", requests[4]);
    assert!(requests[5].starts_with("DELETE /v1/functions/orders "), "{}", requests[5]);
}

#[tokio::test]
async fn an_invocation_carries_its_headers_both_ways() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\nx-amz-executed-version: 2\r\n\
                  x-amz-durable-execution-arn: arn:x/durable-execution/n/inv_1\r\n\
                  x-amz-function-error: Unhandled\r\n\r\n1.0";
    let accepted = "HTTP/1.1 202 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = Server::start(vec![Reply::Close(answer.to_owned()), Reply::Close(accepted.to_owned())]);
    let client = client(&server);
    let invocation = Invocation {
        function: "arn:aws:lambda:us-east-1:000000000000:function:orders:$LATEST".to_owned(),
        qualifier: Some("live+1".to_owned()),
        name: Some("order-7".to_owned()),
        payload: Some(r#"{ "n": 1.50 }"#.to_owned()),
        is_event: false,
    };
    let invoked = client.invoke(&invocation).await.unwrap();
    assert_eq!((invoked.status, invoked.payload.as_str()), (200, "1.0"));
    assert_eq!(invoked.execution_arn.as_deref(), Some("arn:x/durable-execution/n/inv_1"));
    assert_eq!(invoked.executed_version.as_deref(), Some("2"));
    assert_eq!(invoked.function_error.as_deref(), Some("Unhandled"));
    let event = Invocation { function: "orders".to_owned(), is_event: true, ..Invocation::default() };
    assert_eq!(client.invoke(&event).await.unwrap().status, 202);
    let requests = server.finish();
    let path = "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Aorders%3A%24LATEST\
                /invocations?Qualifier=live%2B1 ";
    assert!(requests[0].starts_with(&format!("POST {path}")), "{}", requests[0]);
    assert!(requests[0].contains("x-amz-invocation-type: requestresponse\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("x-amz-durable-execution-name: order-7\r\n"), "{}", requests[0]);
    assert!(requests[0].ends_with("\r\n\r\n{ \"n\": 1.50 }"), "{}", requests[0]);
    assert!(requests[1].starts_with("POST /2015-03-31/functions/orders/invocations "), "{}", requests[1]);
    assert!(requests[1].contains("x-amz-invocation-type: event\r\n"), "{}", requests[1]);
    assert!(!requests[1].contains("x-amz-durable-execution-name"), "{}", requests[1]);
}

#[tokio::test]
async fn executions_are_listed_read_and_stopped() {
    let summary = r#"{"DurableExecutionArn":"a","DurableExecutionName":"n","FunctionArn":"f","Status":"RUNNING",
                      "StartTimestamp":1770805800.5}"#;
    let started = r#"{"EventType":"ExecutionStarted","EventId":1,"EventTimestamp":1770805800.5,
                      "ExecutionStartedDetails":{"Input":{"Payload":"1"},"ExecutionTimeout":60}}"#;
    let server = Server::start(vec![
        Reply::json(200, &format!(r#"{{"DurableExecutions":[{summary}],"NextMarker":"m"}}"#)),
        Reply::json(200, summary),
        Reply::json(200, &format!(r#"{{"Events":[{started}],"NextMarker":"m"}}"#)),
        Reply::json(200, r#"{"StopTimestamp":1770805801.0}"#),
    ]);
    let client = client(&server);
    let filter = ExecutionFilter {
        statuses: vec![ExecutionStatus::Failed, ExecutionStatus::TimedOut],
        limit: Some(5),
        marker: Some("a+b=".to_owned()),
        ..ExecutionFilter::default()
    };
    assert_eq!(client.executions("orders", &filter).await.unwrap().next_marker.as_deref(), Some("m"));
    let arn = execution_arn(&run());
    assert_eq!(client.execution(&arn).await.unwrap().status, ExecutionStatus::Running);
    let filter = HistoryFilter { newest_first: true, marker: Some("m".to_owned()), ..HistoryFilter::default() };
    assert_eq!(client.history(&arn, &filter).await.unwrap().events[0].event_id, 1);
    let why = ErrorObject { error_message: Some("wrong input".to_owned()), ..ErrorObject::default() };
    client.stop_execution(&arn, &why).await.unwrap();
    let requests = server.finish();
    let list = "/2025-12-01/functions/orders/durable-executions\
                ?MaxItems=5&Marker=a%2Bb%3D&Statuses=FAILED&Statuses=TIMED_OUT ";
    assert!(requests[0].starts_with(&format!("GET {list}")), "{}", requests[0]);
    assert!(requests[1].starts_with(&format!("GET /2025-12-01/durable-executions/{ARN} ")), "{}", requests[1]);
    let history = format!("GET /2025-12-01/durable-executions/{ARN}/history?ReverseOrder=true&Marker=m ");
    assert!(requests[2].starts_with(&history), "{}", requests[2]);
    assert!(requests[3].starts_with(&format!("POST /2025-12-01/durable-executions/{ARN}/stop ")), "{}", requests[3]);
    assert!(requests[3].ends_with(r#"{"ErrorMessage":"wrong input"}"#), "{}", requests[3]);
}

#[tokio::test]
async fn callbacks_are_answered_under_their_encoded_id() {
    let server = Server::start((0..3).map(|_| Reply::json(200, "{}")).collect());
    let client = client(&server);
    client.succeed_callback("a/b+c=", Some("\"done\"".to_owned())).await.unwrap();
    client.fail_callback("cb", &ErrorObject::new("E", "m")).await.unwrap();
    client.heartbeat_callback("cb").await.unwrap();
    let requests = server.finish();
    let path = "POST /2025-12-01/durable-execution-callbacks/a%2Fb%2Bc%3D/succeed ";
    assert!(requests[0].starts_with(path), "{}", requests[0]);
    assert!(requests[0].ends_with("\r\n\r\n\"done\""), "{}", requests[0]);
    assert!(requests[1].contains("/cb/fail "), "{}", requests[1]);
    assert!(requests[1].ends_with(r#"{"ErrorMessage":"m","ErrorType":"E"}"#), "{}", requests[1]);
    assert!(requests[2].contains("/cb/heartbeat "), "{}", requests[2]);
}

#[tokio::test]
async fn a_refusal_in_the_lambda_apis_words_keeps_its_name() {
    let refusal = |status: u16, name: &str, body: &str| {
        let length = body.len();
        Reply::Close(format!(
            "HTTP/1.1 {status} X\r\nx-amzn-errortype: {name}\r\nx-request-id: req_1\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        ))
    };
    let server = Server::start(vec![
        refusal(404, "ResourceNotFoundException", r#"{"Type":"User","Message":"Function not found: f"}"#),
        refusal(429, "TooManyRequestsException:http://internal/", r#"{"message":"slower"}"#),
        refusal(500, "ServiceException", "<html>"),
    ]);
    let client = client(&server);
    let mut said = Vec::new();
    for _ in 0..3 {
        let error = client.executions("f", &ExecutionFilter::default()).await.unwrap_err();
        let (exit, transient, text) = (error.exit_code(), error.is_transient(), error.to_string());
        let Error::Lambda { name, request_id, .. } = error else { panic!("{text}") };
        assert_eq!(request_id.as_deref(), Some("req_1"));
        said.push((name, text, exit, transient));
    }
    let expected = [
        ("ResourceNotFoundException", "Function not found: f", 4, false),
        ("TooManyRequestsException", "slower", 6, true),
        ("ServiceException", "the server answered 500 Internal Server Error: ServiceException", 1, false),
    ];
    assert_eq!(said, expected.map(|(name, text, exit, transient)| (name.to_owned(), text.to_owned(), exit, transient)));
    server.finish();
}

fn line(number: u64) -> String {
    format!(
        r#"{{"items":[{{"number":{number},"at":"2026-02-11T10:30:00Z","requestId":"r","source":"stdout","text":"t"}}]}}"#
    )
}

fn snapshot(status: &str) -> Reply {
    let body = format!(
        r#"{{"runId":"inv_1","status":"{status}","lastEventSeq":1,"steps":[],"artifacts":[],"failedSteps":0}}"#
    );
    Reply::json(200, &body)
}

#[tokio::test]
async fn lines_are_followed_until_the_run_has_ended() {
    let server = Server::start(vec![
        snapshot("RUNNING"),
        Reply::json(200, &line(3)),
        // Restarting.
        Reply::Close(String::new()),
        snapshot("COMPLETED"),
        Reply::json(200, &line(4)),
        Reply::json(200, r#"{"items":[]}"#),
    ]);
    let mut follower = client(&server).follow_lines(&run(), 2).with_interval(Duration::ZERO);
    let mut numbers = Vec::new();
    while let Some(page) = follower.next().await.unwrap() {
        numbers.extend(page.items.iter().map(|line| line.number));
    }
    assert_eq!(numbers, [3, 4]);
    let requests = server.finish();
    assert!(requests[1].starts_with("GET /v1/runs/inv_1/logs?after=2&limit=1000 "), "{}", requests[1]);
    assert!(requests[4].starts_with("GET /v1/runs/inv_1/logs?after=3&limit=1000 "), "{}", requests[4]);
    assert!(requests[5].starts_with("GET /v1/runs/inv_1/logs?after=4&limit=1000 "), "{}", requests[5]);
}

#[tokio::test]
async fn lines_of_a_server_that_never_answered_are_not_waited_for() {
    let server = Server::start(vec![Reply::Close(String::new())]);
    let error = client(&server).follow_lines(&run(), 0).next().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    server.finish();
}
