//! S16: many who send slowly do not keep out one who sends as usual, and are gone after a while.
//!
//! `SERVO_TEST_SLOW=1000` opens as many connections; without it a few hundred. Each takes two files of this process, so not more are
//! opened than it may have.

use std::time::Duration;

use reqwest::Method;
use servo_server::config::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Answer, Options, Server, wait_for};

const FEW: usize = 300;
/// Files that a test has besides.
const FILES_BESIDES: usize = 200;
/// Within which a normal request is answered meanwhile: far below what the slow ones are given, far above what it takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many are opened.
fn wanted() -> usize {
    #[expect(clippy::disallowed_methods, reason = "the campaign's command sets it")]
    let asked = std::env::var("SERVO_TEST_SLOW").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    let files = files.and_then(|text| text.parse::<usize>().ok()).unwrap_or(1_024);
    let count = asked.min(files.saturating_sub(FILES_BESIDES) / 2);
    assert!(count >= FEW.min(asked), "{files} files are too few for {asked} connections");
    count
}

/// The connections that the server's process has open.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The beginnings of requests that never end.
const HEADS: [&str; 4] = [
    "",
    "G",
    "GET /v1/runs HTTP/1.1\r\nhost: local",
    "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
];

async fn open(server: &Server, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for index in 0..count {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(HEADS[index % HEADS.len()].as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// One more byte from each of those that are in a head.
async fn trickle(streams: &mut [TcpStream]) {
    for (index, stream) in streams.iter_mut().enumerate() {
        if index % HEADS.len() == 2 {
            // The server may have cut it off.
            let _ = stream.write_all(b"x").await;
        }
    }
}

async fn normal(server: &Server) {
    let asking = Answer::of(server.request(Method::GET, "/v1/runs"));
    let answer = tokio::time::timeout(PATIENCE, asking).await.expect("a normal request waits for slow ones");
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn slow_senders_keep_nobody_out() {
    let count = wanted();
    let config = ServerConfig {
        // Long enough that they are all there together, whatever the machine is doing besides.
        header_timeout_ms: 20_000,
        first_request_timeout_ms: 20_000,
        body_timeout_ms: 20_000,
        connections_max: 2 * count + 50,
        ..ServerConfig::default()
    };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    normal(&server).await;
    let before = open_files();
    let mut streams = open(&server, count).await;
    wait_for("the server to have taken them all", async || (open_files() >= before + 2 * count).then_some(())).await;
    for _ in 0..20 {
        trickle(&mut streams).await;
        normal(&server).await;
    }
    drop(streams);
    wait_for("their connections to be gone", async || (open_files() <= before + 2).then_some(())).await;
    normal(&server).await;
}

/// The same for those who stay: bytes that come one by one do not prolong their time.
#[tokio::test]
async fn slow_senders_are_gone_after_their_time() {
    let count = wanted();
    let config = ServerConfig {
        header_timeout_ms: 200,
        body_timeout_ms: 200,
        // None makes room for another: each must be gone by itself.
        connections_max: 2 * count + 1,
        ..ServerConfig::default()
    };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    let before = open_files();
    let mut streams = open(&server, count).await;
    let half = before + count;
    wait_for("the server to have hung up on all of them", async || {
        trickle(&mut streams).await;
        // What is left are the ends of this test.
        (open_files() <= half + 2).then_some(())
    })
    .await;
    for (index, stream) in streams.iter_mut().enumerate() {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("200 OK"), "{index}: {answer}");
    }
    normal(&server).await;
}
