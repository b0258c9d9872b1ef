//! What stands before a body, byte by byte: clients of a library would add headers of their own.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Options, Server, endless, wait_for};
use servo_server::config::ServerConfig;

const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 64;

/// The status of the answer to these bytes.
async fn status_of(server: &Server, head: &str) -> u16 {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // A server that has seen enough hangs up while the rest is still being sent.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

/// A head of this many bytes with a long header, and one with a long address.
fn heads(size: usize) -> [String; 2] {
    [
        ("GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-long: ", "\r\n\r\n"),
        ("GET /livez?", " HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    ]
    .map(|(first, last)| format!("{first}{}{last}", "x".repeat(size - first.len() - last.len())))
}

/// S16: a head has so many bytes; its address has no limit of its own, but is part of it. A head that has not ended by then is given
/// up. One that has is read even if it is longer, which happens if its last piece came together with what was missing: so it
/// is surely refused from twice the size.
#[tokio::test]
async fn a_head_has_a_largest_size() {
    let server = Server::start().await;
    for whole in heads(HEAD_BYTES_MAX) {
        assert_eq!(status_of(&server, &whole).await, 200);
    }
    for longer in heads(HEAD_BYTES_MAX + 1) {
        assert_eq!(status_of(&server, &longer[..HEAD_BYTES_MAX]).await, 431, "as many bytes, and no end");
    }
    for longest in heads(2 * HEAD_BYTES_MAX + 1) {
        assert_eq!(status_of(&server, &longest).await, 431);
    }
    let with_headers = |count: usize| {
        let more: String = (2..count).map(|index| format!("x-{index}: 1\r\n")).collect();
        format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n")
    };
    assert_eq!(status_of(&server, &with_headers(HEADERS_MAX)).await, 200);
    assert_eq!(status_of(&server, &with_headers(HEADERS_MAX + 1)).await, 431);
}

const ASK: &[u8] = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Asks over a connection that stays open.
async fn ask(stream: &mut TcpStream) -> usize {
    stream.write_all(ASK).await.unwrap();
    let mut answer = [0; 4_096];
    stream.read(&mut answer).await.unwrap()
}

/// The status of what the server has to say next on a connection, and all that it says until it closes or waits.
async fn answer_of(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 4_096];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// S16: so many connections are open. One more closes the one that has been idle for longest.
#[tokio::test]
async fn an_idle_connection_makes_room() {
    let config = ServerConfig { connections_max: 2, ..ServerConfig::default() };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    assert!(ask(&mut first).await > 0);
    let mut second = TcpStream::connect(server.address).await.unwrap();
    assert!(ask(&mut second).await > 0);
    for _ in 0..10 {
        let mut third = TcpStream::connect(server.address).await.unwrap();
        assert!(ask(&mut third).await > 0, "a connection that asks is served, however many are idle");
    }
    let mut rest = Vec::new();
    assert_eq!(first.read_to_end(&mut rest).await.unwrap(), 0, "closed in order, with nothing under way");
}

/// S16: where all connections are busy, probes are answered, and all others told to come back.
#[tokio::test]
async fn busy_connections_leave_room_for_probes() {
    let config = ServerConfig { connections_max: 2, ..ServerConfig::default() };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    let run = server.start_run(endless()).await;
    let follow = format!("GET /v1/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(follow.as_bytes()).await.unwrap();
        let answer = answer_of(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        streams.push(stream);
    }
    for _ in 0..100 {
        for (path, status) in [("/livez", "200"), ("/readyz", "200"), ("/metrics", "200"), ("/v1/runs", "429")] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
            assert!(answer.contains("connection: close"), "{path}: {answer}");
            assert!(status == "200" || answer.contains("retry-after: 1"), "{path}: {answer}");
        }
    }
    drop(streams);
    wait_for("a place to be free", async || (server.get("/v1/runs").await.status == 200).then_some(())).await;
}

/// S16: heads that never end keep nobody out, also those of one address that come in again and again.
#[tokio::test]
async fn unfinished_heads_keep_nobody_out() {
    let config = ServerConfig {
        connections_max: 32,
        // They stay for as long as they may.
        header_timeout_ms: 60_000,
        first_request_timeout_ms: 60_000,
        ..ServerConfig::default()
    };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    let mut slow = Vec::new();
    for round in 0..300 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let _ = stream.write_all([&b""[..], b"G", b"GET /v1/runs HTTP/1.1\r\nhost: local"][round % 3]).await;
        slow.push(stream);
        if round % 10 == 0 {
            let mut honest = TcpStream::connect(server.address).await.unwrap();
            assert!(ask(&mut honest).await > 0, "not served at {round}");
        }
    }
    drop(slow);
}
