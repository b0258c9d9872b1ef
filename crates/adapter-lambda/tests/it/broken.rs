//! Workers whose connection ends, over bare sockets so that it is known which connection carries what.

use std::net::SocketAddr;
use std::time::Duration;

use servo_adapter::HandlerCall;
use servo_adapter_lambda::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{fixture, fixture_with, kind, pull_call, soon, until};

/// Asks for a call on a connection of its own and reads until the call's payload is there.
pub(crate) async fn ask(address: SocketAddr, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("payload of") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "closed before the call came");
    }
    stream
}

/// AWS's tutorial runtime makes a connection for each request, and so do others: however the one that asked ends, and however long
/// the handler takes after it, its answer is taken.
#[tokio::test]
async fn a_connection_that_ends_under_a_call_says_nothing() {
    for headers in ["", "Connection: close\r\n", "Connection: keep-alive\r\n"] {
        let fixture = fixture();
        let address = fixture.open().await;
        let started = fixture.start(pull_call("r1"));
        drop(ask(address, headers).await);
        until("its end is seen", || fixture.worker().in_flight == 1).await;
        assert_eq!(fixture.respond(address, "r1", "done").await, 202, "{headers:?}");
        assert_eq!(started.await.unwrap(), Ok("done".to_owned().into()));
        assert_eq!(fixture.watch.all(), [], "nobody was silent");
    }
}

/// The same for HTTP/1.0, which has no other way.
#[tokio::test]
async fn a_worker_of_http_1_0_answers_on_its_next_connection() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /2018-06-01/runtime/invocation/next HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    soon(stream.read_to_end(&mut seen)).await.unwrap();
    assert!(String::from_utf8_lossy(&seen).contains("payload of"));
    assert_eq!(fixture.respond(address, "r1", "done").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
}

/// DX-093: a handler that died is given up at its deadline, and what it would have said is too late.
#[tokio::test]
async fn a_worker_that_is_gone_is_given_up_at_its_deadline() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start(HandlerCall { timeout: Duration::from_millis(200), ..pull_call("r1") });
    drop(soon(ask(address, "")).await);
    let answer = soon(started).await.unwrap();
    assert_eq!(kind(&answer), "Sandbox.Timedout");
    assert_eq!(fixture.respond(address, "r1", "late").await, 400);
}

/// A connection that never asks anything holds a slot only for a while.
#[tokio::test]
async fn a_silent_connection_is_closed() {
    let settings = Settings { first_request: Duration::from_millis(20), connections_max: 1, ..Settings::default() };
    let fixture = fixture_with(settings);
    let address = fixture.open().await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(soon(silent.read_to_end(&mut Vec::new())).await.unwrap(), 0);
    // One that asked may be silent for as long as it likes.
    let poll = fixture.next(address);
    let call = async {
        until("it asks", || fixture.worker().pollers == 1).await;
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        ticks.tick().await;
        ticks.tick().await;
        fixture.start(pull_call("r1"));
    };
    let ((id, _), ()) = soon(async { tokio::join!(poll, call) }).await;
    assert_eq!(id, "r1");
}
