//! No tenant takes what others need: whatever one of them has under way, the others are answered.

use std::sync::Arc;

use reqwest::{Method, RequestBuilder};
use serde_json::json;
use servo_model::TenantId;
use servo_runtime::{Clock as _, SystemClock};
use servo_server::auth::{AccessKey, Auth};
use servo_server::config::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::gate::Gate;
use crate::harness::{Answer, Options, Server, endless, keys, wait_for};

const FLOODER: &str = "acme-admin";
const NEIGHBOUR: &str = "globex-admin";

async fn server(config: ServerConfig) -> Server {
    Server::with(Options { auth: keys(), server: config, ..Options::default() }).await
}

async fn status(request: RequestBuilder) -> u16 {
    Answer::of(request).await.status.as_u16()
}

/// What a tenant's usual requests are answered with.
async fn usual(server: &Server, key: &str) {
    let whoami = server.send(Method::GET, "/v1/whoami", key, None).await;
    assert_eq!(whoami.status, 200, "{}", whoami.text);
    server.start_as(key, endless()).await;
    let invoked = server.request(Method::POST, "/2015-03-31/functions/f/invocations").bearer_auth(key).body("{}");
    assert_eq!(invoked.send().await.unwrap().status(), 404, "there is no such function, which was looked up");
}

/// A body of this many bytes of which the last is missing.
async fn unfinished(server: &Server, path: &str, key: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {bytes}\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server may refuse it before it has come.
    let _ = stream.write_all(&vec![b' '; bytes - 1]).await;
    stream
}

/// What another tenant is answered while one has as many requests under way as it gets.
async fn beside_a_flood(options: Options) -> u16 {
    let (gate, plan_sources) = Gate::new().await;
    let config = ServerConfig { requests_max: 8, ..ServerConfig::default() };
    let server = Arc::new(Server::with(Options { auth: keys(), server: config, plan_sources, ..options }).await);
    let mut held = Vec::new();
    loop {
        let refused = server.send(Method::GET, "/v1/whoami", FLOODER, None).await;
        if refused.status == 429 {
            refused.is_problem("OVERLOADED");
            break;
        }
        held.push(gate.hold(&server, "acme-operator", 1).await);
    }
    let neighbour = server.send(Method::GET, "/v1/whoami", NEIGHBOUR, None).await.status.as_u16();
    if neighbour == 200 {
        assert_eq!(held.len(), 6, "three quarters");
        usual(&server, NEIGHBOUR).await;
    }
    gate.open();
    for answer in held {
        assert_eq!(answer.await, [201]);
    }
    usual(&server, FLOODER).await;
    neighbour
}

#[tokio::test]
async fn requests_have_a_room_per_tenant() {
    assert_eq!(beside_a_flood(Options::default()).await, 200);
}

/// The control: with one room for all the neighbour is refused.
#[cfg(feature = "sabotage")]
#[tokio::test]
async fn with_one_room_for_all_the_neighbour_is_refused() {
    assert_eq!(beside_a_flood(Options::default().broken("one-room")).await, 429);
}

#[tokio::test]
async fn a_share_can_be_chosen() {
    let (gate, plan_sources) = Gate::new().await;
    let config = ServerConfig { requests_max: 8, requests_per_tenant_max: Some(1), ..ServerConfig::default() };
    let options = Options { auth: keys(), server: config, plan_sources, ..Options::default() };
    let server = Arc::new(Server::with(options).await);
    let held = gate.hold(&server, "acme-operator", 1).await;
    server.send(Method::GET, "/v1/whoami", FLOODER, None).await.is_problem("OVERLOADED");
    usual(&server, NEIGHBOUR).await;
    gate.open();
    assert_eq!(held.await, [201]);
}

/// Bodies that do not end hold no places, neither of others nor of their own tenant.
#[tokio::test]
async fn bodies_that_do_not_end_hold_no_places() {
    let server = server(ServerConfig { requests_max: 4, ..ServerConfig::default() }).await;
    let rest = "/api/serverless-runtime/v1/invocations";
    for path in ["/v1/runs", rest, "/2015-03-31/functions/f/invocations", "/v1/runs/import", "/v1/keys"] {
        let mut slow = Vec::new();
        for _ in 0..16 {
            slow.push(unfinished(&server, path, FLOODER, 100).await);
        }
        usual(&server, NEIGHBOUR).await;
        usual(&server, FLOODER).await;
        drop(slow);
    }
}

/// All bodies together have so much room, whichever way they come, and a tenant has its share of it.
#[tokio::test]
async fn bodies_have_a_room_per_tenant() {
    const BYTES: usize = 1_000_000;
    let rest = "/api/serverless-runtime/v1/invocations";
    for path in ["/v1/runs", rest, "/2015-03-31/functions/f/invocations", "/v1/runs/import"] {
        let config = ServerConfig { bodies_bytes_max: 4 * BYTES, ..ServerConfig::default() };
        let server = server(ServerConfig { imports_max: 100, ..config }).await;
        let fit = if path.ends_with("import") { 1 } else { 3 };
        let held = async || metric(&server, "servo_http_bodies_bytes").await;
        let mut slow = Vec::new();
        for number in 1..=8 {
            slow.push(unfinished(&server, path, FLOODER, BYTES).await);
            if number <= fit {
                wait_for("it to be read", async || (held().await == number * (BYTES - 1)).then_some(())).await;
            }
        }
        let mut refused = 0;
        for (number, stream) in slow.iter_mut().enumerate().skip(fit) {
            let mut answer = vec![0; 4_096];
            // A refusal may be lost with the connection, because the rest of the body is not read.
            let length = stream.read(&mut answer).await.unwrap_or(0);
            let answer = String::from_utf8_lossy(&answer[..length]);
            assert!(length == 0 || answer.starts_with("HTTP/1.1 429"), "{path} {number}: {answer}");
            refused += usize::from(length > 0);
        }
        assert_eq!(held().await, fit * (BYTES - 1), "{path}");
        usual(&server, NEIGHBOUR).await;
        let large = server.request(Method::POST, path).bearer_auth(NEIGHBOUR).body(" ".repeat(BYTES / 2));
        let large = large.send().await.unwrap();
        assert_ne!(large.status(), 429, "{path}: {}", large.text().await.unwrap());
        drop(slow);
        wait_for("the room to be free again", async || (held().await == 0).then_some(())).await;
        assert!(refused > 0 || path.ends_with("import"), "{path}: some refusals are read");
    }
}

async fn metric(server: &Server, name: &str) -> usize {
    let answer = server.request(Method::GET, "/metrics").bearer_auth("acme-viewer").send().await.unwrap();
    let text = answer.text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or("0");
    line.parse::<f64>().unwrap() as usize
}

#[tokio::test]
async fn one_run_file_of_a_tenant_is_imported_at_a_time() {
    let server = server(ServerConfig { imports_max: 2, ..ServerConfig::default() }).await;
    let import = |key: &str| server.request(Method::POST, "/v1/runs/import").bearer_auth(key).body("{}");
    let slow = unfinished(&server, "/v1/runs/import", FLOODER, 100).await;
    wait_for("the only turn to be taken", async || (status(import(FLOODER)).await == 429).then_some(())).await;
    assert_eq!(status(import(NEIGHBOUR)).await, 422, "it is read, and is no run file");
    drop(slow);
    wait_for("the turn to be free again", async || (status(import(FLOODER)).await == 422).then_some(())).await;
}

/// A stream of a tenant, as far as it was opened.
async fn stream(server: &Server, run: &str, key: &str) -> reqwest::Response {
    let request = server.request(Method::GET, &format!("/v1/runs/{run}/events")).bearer_auth(key);
    request.header("accept", "text/event-stream").send().await.unwrap()
}

async fn channel(server: &Server, key: &str) -> reqwest::Response {
    let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let body = reqwest::Body::wrap_stream(never);
    server.request(Method::POST, servo_wire::channel::PATH).bearer_auth(key).body(body).send().await.unwrap()
}

#[tokio::test]
async fn streams_and_channels_have_rooms_of_their_own() {
    let server = server(ServerConfig { streams_max: 4, channels_max: 4, ..ServerConfig::default() }).await;
    let own = server.start_as(FLOODER, endless()).await.to_string();
    let others = server.start_as(NEIGHBOUR, endless()).await.to_string();
    let mut open = Vec::new();
    for expected in [200, 200, 200, 429, 429] {
        let stream = stream(&server, &own, "acme-viewer").await;
        assert_eq!(stream.status(), expected);
        open.push(stream);
    }
    assert_eq!(stream(&server, &others, "globex-viewer").await.status(), 200, "another tenant's stream");
    for expected in [200, 200, 200, 429, 429] {
        let channel = channel(&server, FLOODER).await;
        assert_eq!(channel.status(), expected);
        open.push(channel);
    }
    assert_eq!(channel(&server, NEIGHBOUR).await.status(), 200, "another tenant's channel");
    drop(open);
    wait_for("a stream's place", async || (stream(&server, &own, FLOODER).await.status() == 200).then_some(())).await;
}

/// Frames that are announced and do not come hold no more than the tenant's room, and not for ever.
#[tokio::test]
async fn unfinished_calls_of_channels_are_counted() {
    const BYTES: usize = 1_000_000;
    let config = ServerConfig { bodies_bytes_max: 4 * BYTES, body_timeout_ms: 60_000, ..ServerConfig::default() };
    let server = server(config).await;
    let mut slow = Vec::new();
    let held = async || metric(&server, "servo_http_bodies_bytes").await;
    for number in 1..=8 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {FLOODER}\r\ntransfer-encoding: chunked\r\n\r\n\
             {BYTES:x}\r\n",
            servo_wire::channel::PATH
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut frame = u32::try_from(BYTES).unwrap().to_be_bytes().to_vec();
        frame.resize(BYTES - 10, 0);
        let _ = stream.write_all(&frame).await;
        slow.push(stream);
        if number <= 3 {
            wait_for("it to be read", async || (held().await == number * (BYTES - 10)).then_some(())).await;
        }
    }
    for stream in &mut slow[3..] {
        // Ready when the server closes it.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    assert_eq!(held().await, 3 * (BYTES - 10));
    usual(&server, NEIGHBOUR).await;
    let large = server.request(Method::POST, "/v1/runs").bearer_auth(NEIGHBOUR).body(" ".repeat(BYTES / 2));
    assert_eq!(status(large).await, 400, "it is read");
}

#[tokio::test]
async fn a_call_of_a_channel_comes_in_time_or_not_at_all() {
    let server = server(ServerConfig { body_timeout_ms: 100, ..ServerConfig::default() }).await;
    let frame = [0, 0, 1, 0, 0, 0];
    let (sender, pieces) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
    let body = futures_util::stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.recv().await?;
        Some((Ok::<_, std::io::Error>(bytes::Bytes::from(piece)), pieces))
    });
    sender.send(frame.to_vec()).unwrap();
    let request = server.request(Method::POST, servo_wire::channel::PATH).bearer_auth(FLOODER);
    let answers = request.body(reqwest::Body::wrap_stream(body)).send().await.unwrap();
    assert_eq!(answers.status(), 200);
    assert_eq!(answers.bytes().await.unwrap().len(), 0, "it ends although the client would go on");
    drop(sender);
}

/// Whatever a tenant's requests wait for, they wait on connections, and those are shared as well.
#[tokio::test]
async fn busy_connections_have_a_room_per_tenant() {
    let server = server(ServerConfig { connections_max: 8, ..ServerConfig::default() }).await;
    let mut slow = Vec::new();
    let held = async || metric(&server, "servo_http_bodies_bytes").await;
    for number in 1..=6 {
        slow.push(unfinished(&server, "/v1/runs", FLOODER, 100).await);
        wait_for("it to be read", async || (held().await == number * 99).then_some(())).await;
    }
    let refused = server.send(Method::GET, "/v1/whoami", FLOODER, None).await;
    refused.is_problem("OVERLOADED");
    for _ in 0..20 {
        usual(&server, NEIGHBOUR).await;
    }
    drop(slow);
}

/// Whoever only names somebody's access key fills nobody's room but the one of those who do so.
#[tokio::test]
async fn a_signature_that_is_only_claimed_has_its_own_room() {
    const BYTES: usize = 1_000_000;
    let Auth::Keys { keys, .. } = keys() else { unreachable!() };
    let tenant = TenantId::parse("acme").unwrap();
    let (id, secret) = ("AKIDKNOWNKNOWNKNOWN".to_owned(), "secret".to_owned());
    let access_keys = vec![AccessKey { id, secret, tenant, roles: vec![servo_model::Role::Operator] }];
    let config = ServerConfig { bodies_bytes_max: 16 * BYTES, ..ServerConfig::default() };
    let auth = Auth::Keys { keys, access_keys };
    let server = Server::with(Options { auth, server: config, ..Options::default() }).await;
    // Of this moment: what is out of time is refused before its body is read.
    let now = SystemClock.now().to_string();
    let (day, time) = (now[..10].replace('-', ""), now[11..19].replace(':', ""));
    let mut slow = Vec::new();
    for _ in 0..14 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /2015-03-31/functions/f/invocations HTTP/1.1\r\nhost: localhost\r\ncontent-length: {BYTES}\r\n\
             x-amz-date: {day}T{time}Z\r\nauthorization: AWS4-HMAC-SHA256 Credential=AKIDKNOWNKNOWNKNOWN/{day}/\
             us-east-1/lambda/aws4_request, SignedHeaders=host;x-amz-date, Signature={}\r\n\r\n",
            "0".repeat(64)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&vec![b' '; BYTES - 1]).await;
        slow.push(stream);
    }
    for key in [FLOODER, NEIGHBOUR] {
        usual(&server, key).await;
        let large = server.request(Method::POST, "/2015-03-31/functions/f/invocations").bearer_auth(key);
        let answer = large.body(json!("x".repeat(BYTES / 2)).to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{key}");
    }
    drop(slow);
}
