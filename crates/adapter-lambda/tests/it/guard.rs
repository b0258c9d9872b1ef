//! Who may ask at a worker's address: nobody shows credentials there, so what cannot be a worker is turned away, and connections that
//! ask nothing keep no worker out.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use reqwest::header::HeaderMap;
use servo_adapter_lambda::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::broken::ask;
use crate::support::{fixture, fixture_with, message, pull_call, soon, url};

const OPERATIONS: [(&str, &str); 4] = [
    ("GET", "invocation/next"),
    ("POST", "invocation/r1/response"),
    ("POST", "invocation/r1/error"),
    ("POST", "init/error"),
];

/// The status of the answer to a request with these lines in its head.
async fn asked(address: SocketAddr, (method, path): (&str, &str), lines: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (path, length) = (url(address, path).replace(&format!("http://{address}"), ""), body.len());
    let head =
        format!("{method} {path} HTTP/1.1\r\n{lines}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// Neither a page whose name leads here nor one that asks without being asked back gets a call, or answers one.
#[tokio::test]
async fn pages_get_no_calls_and_answer_none() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start_waiting("r1").await;
    let host = format!("host: {address}");
    for lines in [
        "host: evil.example".to_owned(),
        format!("host: evil.example:{}", address.port()),
        "host: evil.example\r\norigin: http://evil.example\r\nsec-fetch-site: same-origin".to_owned(),
        "host: 10.0.0.1".to_owned(),
        "x-no: host".to_owned(),
        format!("{host}\r\nhost: {address}"),
        format!("{host}\r\norigin: http://{address}"),
        format!("{host}\r\norigin: null"),
        format!("{host}\r\nsec-fetch-site: none"),
        format!("{host}\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors"),
        format!("{host}\r\nreferer: http://evil.example/"),
        format!("{host}\r\nuser-agent: Mozilla/5.0"),
        format!("{host}\r\naccess-control-request-method: POST"),
    ] {
        for operation in OPERATIONS {
            assert_eq!(asked(address, operation, &lines, "x").await, 403, "{operation:?} {lines}");
        }
        assert_eq!(asked(address, ("OPTIONS", "invocation/next"), &lines, "").await, 403, "{lines}");
    }
    let absolute = ("GET http://evil.example/2018-06-01/runtime/invocation/next HTTP/1.1\r\nx-rest:", "");
    assert_eq!(asked(address, absolute, &host, "").await, 403);
    assert_eq!(fixture.worker().waiting, 1, "the call is still there");
    let (id, _) = fixture.next(address).await;
    assert_eq!(asked(address, OPERATIONS[1], "host: evil.example", "taken").await, 403);
    assert_eq!(fixture.respond(address, &id, "done").await, 202);
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
}

/// AWS's runtimes send forms, name the address in any way, and say who they are.
#[tokio::test]
async fn workers_are_as_they_are() {
    let fixture = fixture();
    let address = fixture.open().await;
    let port = address.port();
    for (number, lines) in [
        format!("host: {address}\r\ncontent-type: application/x-www-form-urlencoded\r\nuser-agent: AWS_Lambda_Cpp/0.2"),
        format!("host: LOCALHOST.:{port}\r\ncontent-type: text/plain"),
        "host: 127.0.0.1\r\nuser-agent: node\r\nsec-fetch-mode: cors\r\naccept-language: *".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("r{number}");
        let started = fixture.start(pull_call(&id));
        assert_eq!(asked(address, OPERATIONS[0], lines, "").await, 200, "{lines}");
        let operation = format!("invocation/{id}/response");
        assert_eq!(asked(address, ("POST", &operation), lines, "\"done\"").await, 202, "{lines}");
        assert!(soon(started).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_name_can_be_given() {
    let hosts = vec!["host.docker.internal".parse().unwrap()];
    let fixture = fixture_with(Settings { hosts, ..Settings::default() });
    let address = fixture.open().await;
    for (host, status) in [("host.docker.internal:9001", 400), ("localhost", 400), ("evil.example", 403)] {
        assert_eq!(asked(address, OPERATIONS[1], &format!("host: {host}"), "x").await, status, "{host}");
    }
}

/// A function of another tenant whose address is this one calls it by push.
#[tokio::test]
async fn calls_of_functions_are_no_workers() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start_waiting("r1").await;
    for name in ["x-dex-handler-invoke", "x-amz-invocation-type", "lambda-runtime-aws-request-id"] {
        let headers: HeaderMap = [(name.parse().unwrap(), "true".parse().unwrap())].into_iter().collect();
        for (method, path) in OPERATIONS {
            let request = fixture.client.request(method.parse().unwrap(), url(address, path)).headers(headers.clone());
            assert_eq!(request.body("x").send().await.unwrap().status(), 403, "{name} {path}");
        }
    }
    assert_eq!(fixture.worker().waiting, 1, "nobody has failed it");
    started.abort();
}

/// What a worker says that could not begin is told to the calls that wait for it, and is as short as a message is.
#[tokio::test]
async fn an_error_before_the_first_call_is_short() {
    let fixture = fixture();
    let address = fixture.open().await;
    let started = fixture.start_waiting("r1").await;
    let error = format!(r#"{{"errorType":"{0}","errorMessage":"{0}","stackTrace":["{0}"]}}"#, "x".repeat(100_000));
    assert_eq!(fixture.post(address, "init/error", error).await, 202);
    let answer = soon(started).await.unwrap();
    assert_eq!(message(&answer).len(), 1_024);
    let error = &answer.as_ref().unwrap_err().error;
    assert_eq!(error.error_type.as_deref().map(str::len), Some(128));
    assert_eq!(error.stack_trace.as_ref().map(|frames| frames[0].len()), Some(128));
}

/// However many connections have unfinished heads, from one address and again and again.
#[tokio::test]
async fn unfinished_heads_keep_no_worker_out() {
    let fixture =
        fixture_with(Settings { connections_max: 32, first_request: Duration::from_secs(600), ..Settings::default() });
    let address = fixture.open().await;
    let mut slow = Vec::new();
    for round in 0..300_usize {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream
            .write_all([&b""[..], b"G", b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nho"][round % 3])
            .await;
        slow.push(stream);
        if round % 20 == 0 {
            let started = fixture.start(pull_call(&format!("r{round}")));
            let mut worker = soon(ask(address, "")).await;
            let answer = format!(
                "POST /2018-06-01/runtime/invocation/r{round}/response HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1\r\n\r\n1"
            );
            worker.write_all(answer.as_bytes()).await.unwrap();
            assert!(soon(started).await.unwrap().is_ok(), "{round}");
        }
    }
    drop(slow);
}

/// A worker that has a call says nothing for long, and is not idle.
#[tokio::test]
async fn idle_connections_do_not_push_out_a_worker_with_a_call() {
    let fixture = fixture_with(Settings { connections_max: 4, ..Settings::default() });
    let address = fixture.open().await;
    let started = fixture.start(pull_call("r1"));
    let mut worker = soon(ask(address, "")).await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET /nothing HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await.unwrap();
        assert!(soon(stream.read(&mut [0; 1_024])).await.unwrap() > 0);
        idle.push(stream);
    }
    let answer =
        "POST /2018-06-01/runtime/invocation/r1/response HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\ndone";
    worker.write_all(answer.as_bytes()).await.unwrap();
    assert_eq!(soon(started).await.unwrap(), Ok("done".to_owned().into()));
    drop(idle);
}

/// Answers that do not end have so much room together; small ones find room beside them.
#[tokio::test]
async fn answers_that_do_not_end_have_a_bounded_room() {
    const BYTES: usize = 1_000_000;
    let fixture = fixture_with(Settings { bodies_bytes_max: 4 * BYTES, ..Settings::default() });
    let address = fixture.open().await;
    let mut slow = Vec::new();
    for number in 0..6 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /2018-06-01/runtime/invocation/x{number}/response HTTP/1.1\r\nhost: localhost\r\ncontent-length: {BYTES}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&vec![b'x'; BYTES - 1]).await;
        slow.push(stream);
    }
    // Which of them find room is a matter of chance.
    let mut ended: FuturesUnordered<_> = slow
        .iter_mut()
        .map(|stream| async move {
            let mut answer = vec![0; 1_024];
            // The answer may be lost with the connection, because the rest of the body is not read.
            let length = stream.read(&mut answer).await.unwrap_or(0);
            assert!(length == 0 || answer.starts_with(b"HTTP/1.1 429"), "{}", String::from_utf8_lossy(&answer));
        })
        .collect();
    for _ in 0..3 {
        soon(ended.next()).await.unwrap();
    }
    drop(ended);
    drop(slow);
    let started = fixture.start(pull_call("r1"));
    let (id, _) = fixture.next(address).await;
    assert_eq!(fixture.respond(address, &id, "done").await, 202);
    assert!(soon(started).await.unwrap().is_ok());
}
