//! Limits hold at the limit and not before it.

use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use servo_model::{Role, TenantId};
use servo_runtime::{Clock as _, SystemClock};
use servo_server::auth::{AccessKey, Auth};
use servo_server::config::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::gate::Gate;
use crate::harness::{Answer, Options, Server, keys, one_step, start, wait_for};

#[tokio::test]
async fn a_body_has_a_largest_size() {
    let mut options = Options::default();
    options.runtime.limits.request_body_bytes_max = 2_000;
    let server = Server::with(options).await;
    let body = start(one_step()).to_string();
    let padded = |size: usize| format!("{body}{}", " ".repeat(size - body.len()));
    assert_eq!(server.post_text("/v1/runs", &padded(2_000)).await.status, 201);
    let larger = server.post_text("/v1/runs", &padded(2_001)).await;
    assert_eq!(larger.status, 413);
    larger.is_problem("LIMIT_EXCEEDED");
    server.post_text("/runtime/commands", &padded(2_001)).await.is_problem("LIMIT_EXCEEDED");
}

#[tokio::test]
async fn a_run_file_has_its_own_largest_size() {
    let config = ServerConfig { import_bytes_max: 5_000, ..ServerConfig::default() };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    server.post_text("/v1/runs/import", &" ".repeat(5_001)).await.is_problem("LIMIT_EXCEEDED");
    server.post_text("/v1/runs/import", &" ".repeat(5_000)).await.is_problem("MALFORMED_JSON");
}

/// A connection that sends this much of a request and then waits.
async fn half_a_request(server: &Server, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

const HALF_A_BODY: &str =
    "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";

#[tokio::test]
async fn so_many_requests_are_under_way_and_no_more() {
    let (gate, plan_sources) = Gate::new().await;
    let config = ServerConfig { requests_max: 1, ..ServerConfig::default() };
    let server = Arc::new(Server::with(Options { server: config, plan_sources, ..Options::default() }).await);
    let held = gate.hold(&server, "", 1).await;
    server.get("/v1/runs").await.is_problem("OVERLOADED");
    assert_eq!(server.get("/livez").await.status, 200, "a busy server is alive");
    assert_eq!(server.get("/readyz").await.status, 200);
    gate.open();
    assert_eq!(held.await, [201]);
    wait_for("the place to be free again", async || (server.get("/v1/runs").await.status == 200).then_some(())).await;
}

/// What the server says to a request of which only the head is sent.
async fn answer_to_head(server: &Server, credentials: &str) -> String {
    let head = format!(
        "POST /2015-03-31/functions/f/invocations HTTP/1.1\r\nhost: {}\r\ncontent-length: 6000000\r\n\
         x-amz-date: {}\r\n{credentials}\r\n",
        server.address,
        signing_time()
    );
    let mut stream = half_a_request(server, &head).await;
    let mut answer = vec![0; 4_096];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// Now, as signatures have it.
fn signing_time() -> String {
    format!("{}Z", SystemClock.now().to_string()[..19].replace(['-', ':'], ""))
}

fn signed_by(access_key: &str) -> String {
    format!(
        "authorization: AWS4-HMAC-SHA256 Credential={access_key}/{}/us-east-1/lambda/aws4_request, \
         SignedHeaders=host;x-amz-date, Signature={}\r\n",
        &signing_time()[..8],
        "0".repeat(64)
    )
}

/// S16: a large body is not read for somebody whom nobody knows, or who may not send it.
#[tokio::test]
async fn nobodys_body_is_read() {
    let auth = match keys() {
        Auth::Keys { keys, .. } => {
            let tenant = TenantId::parse("acme").unwrap();
            let (id, secret) = ("AKIDKNOWN".to_owned(), "secret".to_owned());
            Auth::Keys { keys, access_keys: vec![AccessKey { id, secret, tenant, roles: vec![Role::Operator] }] }
        }
        Auth::Development => unreachable!(),
    };
    let server = Server::with(Options { auth, ..Options::default() }).await;
    for (credentials, name) in [
        (String::new(), "MissingAuthenticationTokenException"),
        ("authorization: Bearer svo_guess\r\n".to_owned(), "UnrecognizedClientException"),
        ("authorization: Bearer acme-viewer\r\n".to_owned(), "AccessDeniedException"),
        (signed_by("AKIDUNKNOWN"), "UnrecognizedClientException"),
        // What can be said without the body and the secret is said without the body.
        (signed_by("AKIDKNOWN").replace("host;", ""), "InvalidSignatureException"),
        (signed_by("AKIDKNOWN").replace("/lambda/", "/s3/"), "InvalidSignatureException"),
        (signed_by("AKIDKNOWN").replace("SignedHeaders", "Headers"), "IncompleteSignatureException"),
    ] {
        let answer = answer_to_head(&server, &credentials).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(name), "{credentials}: {answer}");
    }
}

/// The control of the one above: a signature covers the body, so whoever names a key that is there is read first.
#[tokio::test]
async fn a_signed_body_is_read_before_it_is_judged() {
    let auth = Auth::Keys {
        keys: Vec::new(),
        access_keys: vec![AccessKey {
            id: "AKIDKNOWN".to_owned(),
            secret: "secret".to_owned(),
            tenant: TenantId::parse("acme").unwrap(),
            roles: vec![Role::Operator],
        }],
    };
    let config = ServerConfig { body_timeout_ms: 50, ..ServerConfig::default() };
    let server = Server::with(Options { auth, server: config, ..Options::default() }).await;
    let answer = answer_to_head(&server, &signed_by("AKIDKNOWN")).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("in time"), "{answer}");
}

#[tokio::test]
async fn slow_senders_are_cut_off() {
    let config = ServerConfig { header_timeout_ms: 50, body_timeout_ms: 50, ..ServerConfig::default() };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    for head in ["", "GET /v1/runs HTTP/1.1\r\nhost: local"] {
        let mut stream = half_a_request(&server, head).await;
        let mut rest = Vec::new();
        // Ends when the server closes the connection.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
    let mut stream = half_a_request(&server, HALF_A_BODY).await;
    let mut answer = vec![0; 4_096];
    let length = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("in time"), "{answer}");
}

#[tokio::test]
async fn heads_have_a_largest_size() {
    let server = Server::start().await;
    let request = server.request(Method::GET, "/v1/runs").header("x-long", "x".repeat(100_000));
    let status = request.send().await.unwrap().status();
    assert!(status.is_client_error(), "{status}");
    let mut many = server.request(Method::GET, "/livez");
    for index in 0..200 {
        many = many.header(format!("x-{index}"), "1");
    }
    let status = many.send().await.unwrap().status();
    assert!(status.is_client_error(), "{status}");
}

/// What was accepted is answered, and then nobody is let in.
#[tokio::test]
async fn a_stopping_server_answers_what_it_has_begun() {
    let server = Server::start().await;
    let mut stream = half_a_request(&server, HALF_A_BODY).await;
    wait_for("the request to be under way", async || {
        let text = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
        text.contains("servo_http_bodies_bytes 1").then_some(())
    })
    .await;
    server.shutdown.trigger();
    stream.write_all("}".repeat(99).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    server.runtime.engine().shutdown().trigger();
    server.tasks.idle().await;
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn answers_are_not_cached() {
    let server = Server::start().await;
    let answer = Answer::of(server.request(Method::GET, "/v1/runs")).await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.json["items"], json!([]));
}
