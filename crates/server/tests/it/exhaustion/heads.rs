//! What stands before a body, byte by byte: clients of a library would add headers of their own.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Options, Server, wait_for};
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
        ("GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-long: ", "\r\n\r\n"),
        ("GET /livez?", " HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
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
        format!("GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{more}\r\n")
    };
    assert_eq!(status_of(&server, &with_headers(HEADERS_MAX)).await, 200);
    assert_eq!(status_of(&server, &with_headers(HEADERS_MAX + 1)).await, 431);
}

const ASK: &[u8] = b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";

/// Asks over a connection that stays open.
async fn ask(stream: &mut TcpStream) -> usize {
    stream.write_all(ASK).await.unwrap();
    let mut answer = [0; 4_096];
    stream.read(&mut answer).await.unwrap()
}

/// S16: so many connections are open; one more waits for its turn, and gets it.
#[tokio::test]
async fn so_many_connections_are_open_and_no_more() {
    let config = ServerConfig { connections_max: 2, ..ServerConfig::default() };
    let server = Server::with(Options { server: config, ..Options::default() }).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    let mut second = TcpStream::connect(server.address).await.unwrap();
    assert!(ask(&mut first).await > 0 && ask(&mut second).await > 0);
    let mut third = TcpStream::connect(server.address).await.unwrap();
    third.write_all(ASK).await.unwrap();
    let mut answer = [0; 4_096];
    // A server that took it would have answered it many times over.
    for _ in 0..200 {
        assert!(ask(&mut first).await > 0 && ask(&mut second).await > 0);
    }
    let early = third.try_read(&mut answer).map_err(|error| error.kind());
    assert_eq!(early, Err(std::io::ErrorKind::WouldBlock), "a third connection is served");
    drop(first);
    let length = wait_for("the third connection's turn", async || third.try_read(&mut answer).ok()).await;
    assert!(String::from_utf8_lossy(&answer[..length]).starts_with("HTTP/1.1 200"));
}
