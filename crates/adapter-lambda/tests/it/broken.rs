//! Workers whose connection breaks, over bare sockets so that it is known which connection carries what.

use std::net::SocketAddr;
use std::time::Duration;

use servo_adapter_lambda::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{fixture_with, kind, message, pull_call, soon, until};

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

fn grace(connection_grace: Duration) -> Settings {
    Settings { connection_grace, ..Settings::default() }
}

/// DX-093: a handler that dies is noticed by its connection, long before its deadline.
#[tokio::test]
async fn a_broken_connection_fails_the_call() {
    let fixture = fixture_with(grace(Duration::from_millis(50)));
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    drop(soon(ask(address, "")).await);
    let answer = soon(started).await.unwrap();
    assert_eq!(kind(&answer), "Runtime.ExitError");
    assert!(message(&answer).contains("closed its connection"), "{answer:?}");
    assert_eq!(fixture.respond(address, "r1", "late").await, 400);
}

#[tokio::test]
async fn an_answer_on_another_connection_is_in_time_within_the_grace() {
    let fixture = fixture_with(grace(Duration::from_secs(600)));
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    drop(soon(ask(address, "")).await);
    assert_eq!(fixture.respond(address, "r1", "done").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
}

/// Who asks with `Connection: close` says that the end of the connection means nothing.
#[tokio::test]
async fn a_connection_that_was_to_close_says_nothing() {
    let fixture = fixture_with(grace(Duration::ZERO));
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    let mut stream = soon(ask(address, "Connection: close\r\n")).await;
    assert_eq!(soon(stream.read_to_end(&mut Vec::new())).await.unwrap(), 0, "the server closes");
    assert_eq!(fixture.respond(address, "unknown", "x").await, 400);
    assert_eq!(fixture.respond(address, "r1", "done").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
}

/// Clients close connections that were idle for long, while the handler still works.
#[tokio::test]
async fn an_old_idle_connection_says_nothing() {
    let settings = Settings { idle_close: Duration::ZERO, ..grace(Duration::ZERO) };
    let fixture = fixture_with(settings);
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    drop(soon(ask(address, "")).await);
    assert_eq!(fixture.respond(address, "unknown", "x").await, 400);
    assert_eq!(fixture.respond(address, "r1", "done").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
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
