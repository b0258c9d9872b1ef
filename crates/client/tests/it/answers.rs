//! How answers become values and errors.

use servo_client::{Client, Error, RunFilter};
use servo_model::RunId;

use crate::server::{Reply, Server};

fn run() -> RunId {
    RunId::parse("inv_1").unwrap()
}

#[tokio::test]
async fn a_value_keeps_the_text_that_it_came_as() {
    let body = r#"{"items":[], "nextCursor":"c","of a newer server":1.50}"#;
    let server = Server::start(vec![Reply::json(200, body)]);
    let client = Client::new(&server.url, Some("key-1".to_owned())).unwrap();
    let filter = RunFilter { status: Some("failed".to_owned()), limit: Some(5), ..RunFilter::default() };
    let list = client.list_runs(&filter).await.unwrap();
    assert_eq!(list.next_cursor.as_deref(), Some("c"));
    assert_eq!(list.raw(), body);
    let requests = server.finish();
    assert!(requests[0].starts_with("GET /v1/runs?status=failed&limit=5 HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("authorization: bearer key-1\r\n"), "{}", requests[0]);
}

#[tokio::test]
async fn a_problem_is_an_error_with_everything_it_says() {
    let body = r#"{"type":"urn:servo:error:RUN_NOT_FOUND","title":"No such run","status":404,"code":"RUN_NOT_FOUND"}"#;
    let server = Server::start(vec![Reply::json(404, body)]);
    let error = Client::new(&server.url, None).unwrap().run(&run()).await.unwrap_err();
    assert_eq!(error.exit_code(), 4);
    let problem = error.problem().unwrap();
    assert_eq!((problem.code.as_str(), problem.request_id.as_deref()), ("RUN_NOT_FOUND", Some("req_1")));
    server.finish();
}

#[tokio::test]
async fn a_page_of_a_proxy_is_an_error_too() {
    let server = Server::start(vec![Reply::whole(502, "text/html", "<h1>Bad\x1b Gateway</h1>")]);
    let error = Client::new(&server.url, None).unwrap().run(&run()).await.unwrap_err();
    assert_eq!(error.exit_code(), 9);
    assert!(error.is_transient());
    assert_eq!(error.to_string(), "The server answered 502 Bad Gateway: <h1>Bad  Gateway</h1>");
    server.finish();
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = "HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = Server::start(vec![Reply::Close(elsewhere.to_owned())]);
    let error = Client::new(&server.url, Some("k".to_owned())).unwrap().run(&run()).await.unwrap_err();
    assert!(matches!(error, Error::Api { status: 307, .. }), "{error}");
    server.finish();
}

#[tokio::test]
async fn an_answer_of_another_shape_names_the_request() {
    let server = Server::start(vec![Reply::json(200, r#"{"runId":"inv_1"}"#)]);
    let error = Client::new(&server.url, None).unwrap().run(&run()).await.unwrap_err();
    assert!(matches!(&error, Error::Decode { .. }), "{error}");
    assert!(error.to_string().contains("/v1/runs/inv_1"), "{error}");
    assert_eq!(error.exit_code(), 1);
    server.finish();
}

#[tokio::test]
async fn a_connection_that_ends_early_is_unreachable() {
    let server = Server::start(vec![Reply::Close("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned())]);
    let error = Client::new(&server.url, None).unwrap().run(&run()).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { .. }), "{error}");
    assert_eq!(error.exit_code(), 9);
    server.finish();
}

#[tokio::test]
async fn not_ready_is_an_answer() {
    let server = Server::start(vec![Reply::json(503, r#"{"ready":false,"reasons":["no authority is held"]}"#)]);
    let readiness = Client::new(&server.url, None).unwrap().readyz().await.unwrap();
    assert!(!readiness.ready);
    assert_eq!(readiness.reasons, ["no authority is held"]);
    server.finish();
}

#[tokio::test]
async fn an_import_is_sent_to_the_letter() {
    let file = r#"{ "events": [ {"b":1.50, "a":2} ] }"#;
    let server = Server::start(vec![Reply::json(201, r#"{"runId":"inv_1"}"#)]);
    let client = Client::new(&server.url, None).unwrap();
    assert_eq!(client.import_run(file.to_owned()).await.unwrap().run_id, run());
    let requests = server.finish();
    assert!(requests[0].ends_with(&format!("\r\n\r\n{file}")), "{}", requests[0]);
}
