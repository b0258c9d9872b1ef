//! Handlers behind a URL.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Response, Uri};
use servo_adapter::{FailureKind, HandlerCall, HandlerFailure, Handlers as _};
use servo_adapter_lambda::Settings;
use servo_egress::Allowed;
use servo_model::function::Reach;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::support::{Answer, call, fixture, fixture_with, kind, message, soon, spawn};
use crate::vectors::{Trap, Vector, vectors};

type Seen = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// A server that answers what the payload asks for: `status function-error body`.
async fn server() -> (SocketAddr, Seen) {
    let seen = Seen::default();
    let record = seen.clone();
    let answer = move |uri: Uri, headers: HeaderMap, body: String| {
        record.lock().unwrap().push((uri.path().to_owned(), headers, body.clone()));
        async move {
            let mut words = body.splitn(3, ' ');
            let (status, error, text) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let mut response = Response::builder().status(status.parse::<u16>().unwrap());
            if error != "-" {
                response = response.header("X-Amz-Function-Error", error);
            }
            match text {
                "hang" => std::future::pending().await,
                "large" => response.body(Body::from("x".repeat(6 * 1024 * 1024 + 64 * 1024 + 1))),
                "bytes" => response.body(Body::from(vec![0xff])),
                text => response.header("Location", "/elsewhere").body(Body::from(text.to_owned())),
            }
            .unwrap()
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
    (address, seen)
}

fn push(address: SocketAddr, payload: &str) -> HandlerCall {
    call(Reach::Push { url: format!("http://{address}") }, "r1", payload)
}

/// DX-093: a function is reached by push, as the Lambda emulator does it.
#[tokio::test]
async fn the_payload_is_posted_and_the_body_is_the_answer() {
    let (address, seen) = server().await;
    let fixture = fixture();
    let tenant_id = Some("acme".to_owned());
    let client_context = Some("e30=".to_owned());
    let trace = Some("Root=1".to_owned());
    let posted = HandlerCall { tenant_id, client_context, trace, ..push(address, "200 - fine") };
    assert_eq!(soon(fixture.handlers.call(Box::new(posted))).await, Ok("fine".to_owned().into()));
    let complete = Reach::Push { url: format!("http://{address}/x/invocations") };
    assert_eq!(
        soon(fixture.handlers.call(Box::new(call(complete, "r2", "200 - fine")))).await,
        Ok("fine".to_owned().into())
    );
    let seen = seen.lock().unwrap();
    let (path, headers, body) = &seen[0];
    assert_eq!((path.as_str(), body.as_str()), ("/2015-03-31/functions/f/invocations", "200 - fine"));
    for (name, value) in [
        ("X-Amz-Invocation-Type", "RequestResponse"),
        ("X-Dex-Handler-Invoke", "true"),
        ("Content-Type", "application/json"),
        ("X-Amz-Tenant-Id", "acme"),
        ("X-Amz-Client-Context", "e30="),
        ("X-Amzn-Trace-Id", "Root=1"),
        ("Lambda-Runtime-Aws-Request-Id", "r1"),
    ] {
        assert_eq!(headers.get(name).and_then(|value| value.to_str().ok()), Some(value), "{name}");
    }
    let (path, headers, _) = &seen[1];
    assert_eq!(path, "/x/invocations");
    assert!(!headers.contains_key("X-Amz-Tenant-Id") && !headers.contains_key("X-Amzn-Trace-Id"));
}

/// DX-093: a handler is never called without the tenant it is to act for, whichever way it is reached.
#[tokio::test]
async fn a_tenant_id_is_never_left_out() {
    let (address, seen) = server().await;
    let fixture = fixture();
    for call in [push(address, "200 - fine"), call(Reach::Pull, "r1", "{}")] {
        let call = HandlerCall { tenant_id: Some("a\nb".to_owned()), ..call };
        let refused = soon(fixture.handlers.call(Box::new(call))).await;
        assert_eq!(kind(&refused), "InvalidParameterValueException");
        assert_eq!(refused.unwrap_err().kind, FailureKind::Unreachable, "it does not get better");
    }
    assert!(seen.lock().unwrap().is_empty());
}

/// DX-093: each way in which a handler can fail is told from the others.
#[tokio::test]
async fn failures_are_told_apart() {
    let (address, _) = server().await;
    let fixture = fixture();
    let answer =
        async |payload: &str| -> Answer { soon(fixture.handlers.call(Box::new(push(address, payload)))).await };
    let failed = answer(r#"200 Unhandled {"errorType":"E","errorMessage":"m","stackTrace":["at x"]}"#).await;
    assert_eq!((kind(&failed), message(&failed)), ("E", "m"));
    let failed = failed.unwrap_err();
    assert_eq!(failed.error.stack_trace, Some(vec!["at x".to_owned()]));
    let sent = r#"{"errorType":"E","errorMessage":"m","stackTrace":["at x"]}"#;
    assert_eq!((failed.kind, failed.error.error_data.as_deref()), (FailureKind::Raised, Some(sent)), "as it was sent");
    assert_eq!(kind(&answer("200 Unhandled boom").await), "Unhandled");
    let unmarked = answer(r#"200 - {"errorType":"E","errorMessage":"m"}"#).await;
    assert_eq!(kind(&unmarked), "E");
    let missing = answer("404 - gone").await;
    assert_eq!(kind(&missing), "ResourceNotFoundException");
    assert_eq!(missing.unwrap_err().kind, FailureKind::Unreachable);
    for status in ["500", "307", "202"] {
        let refused = answer(&format!("{status} - why")).await;
        assert_eq!(kind(&refused), "Runtime.InvalidResponse", "{status}");
        assert!(message(&refused).contains(status) && message(&refused).contains("why"), "{refused:?}");
        assert_eq!(refused.unwrap_err().kind, FailureKind::Crashed);
    }
    let large = answer("200 - large").await;
    assert_eq!(kind(&large), "Function.ResponseSizeTooLarge");
    assert_eq!(large.unwrap_err().kind, FailureKind::Failed, "it would be as large again");
    assert_eq!(kind(&answer("200 - bytes").await), "Runtime.InvalidResponse");
}

#[tokio::test]
async fn nobody_there_and_nobody_answering_are_different() {
    let (address, _) = server().await;
    let fixture = fixture();
    let hanging = HandlerCall { timeout: Duration::from_millis(50), ..push(address, "200 - hang") };
    let hung = soon(fixture.handlers.call(Box::new(hanging))).await;
    assert_eq!(kind(&hung), "Sandbox.Timedout");
    assert_eq!(hung.unwrap_err().kind, FailureKind::Crashed, "it may have run");
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let refused = soon(fixture.handlers.call(Box::new(push(address, "200 - x")))).await;
    assert_eq!(kind(&refused), "Runtime.ConnectionError");
    assert!(message(&refused).ends_with(": connection refused"), "{refused:?}");
    assert_eq!(refused.unwrap_err().kind, FailureKind::Unreached);
    let unknown = call(Reach::Push { url: "http://handler.invalid".to_owned() }, "r1", "200 - x");
    let unknown = soon(fixture.handlers.call(Box::new(unknown))).await;
    assert_eq!(
        (kind(&unknown), unknown.as_ref().unwrap_err().kind),
        ("Runtime.ConnectionError", FailureKind::Unreached)
    );
}

/// S7: whoever registers a function chooses its address and reads the answer, so addresses inside are the operator's to allow.
#[tokio::test]
async fn inner_addresses_are_not_called_unless_the_operator_allows_them() {
    let (address, seen) = server().await;
    let port = address.port();
    let reached = async |fixture: &crate::support::Fixture, url: String| -> Answer {
        soon(fixture.handlers.call(Box::new(call(Reach::Push { url }, "r1", "200 - fine")))).await
    };
    let guarded = fixture_with(Settings::default());
    for host in ["127.0.0.1", "localhost", "0x7f000001", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"] {
        let refused = reached(&guarded, format!("http://{host}:{port}/x/invocations")).await.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Unreachable, "{host}: {refused:?}");
        assert_eq!(refused.error.error_type.as_deref(), Some("Runtime.AddressNotAllowed"));
        let said = refused.error.error_message.unwrap();
        assert!(said.contains("ask the operator"), "{said}");
        assert!(host != "localhost" || said.contains("localhost") && !said.contains("127.0.0.1"), "{said}");
    }
    assert!(seen.lock().unwrap().is_empty());
    let push_allow = Allowed { hosts: vec!["localhost".to_owned()], ..Allowed::default() };
    let by_name = fixture_with(Settings { push_allow, ..Settings::default() });
    assert!(reached(&by_name, format!("http://localhost:{port}")).await.is_ok());
    assert!(reached(&by_name, format!("http://127.0.0.1:{port}")).await.is_err());
    assert_eq!(seen.lock().unwrap().len(), 1);
}

/// S7: the same list that the guard's own tests have, with the whole way of a call.
#[tokio::test]
async fn no_spelling_of_an_address_inside_is_called() {
    let trap = Trap::set().await;
    let guarded = fixture_with(Settings::default());
    for Vector { url, is_here } in vectors(trap.port) {
        // What is added to it would be the name of a host.
        if url == "http://" {
            continue;
        }
        let call = call(Reach::Push { url: url.clone() }, "r1", "{}");
        let refused = soon(guarded.handlers.call(Box::new(call))).await.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Unreachable, "{url:?}: {refused:?}");
        let told = refused.error.error_type.as_deref();
        assert!(!is_here || told == Some("Runtime.AddressNotAllowed"), "{url:?}: {refused:?}");
    }
    assert_eq!(trap.accepted().await, 0);
}

/// S7: a handler that sends its caller elsewhere is not followed, so it leads nobody inside.
#[tokio::test]
async fn a_redirect_of_a_handler_leads_nowhere() {
    let trap = Trap::set().await;
    let fixture = fixture();
    let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else { panic!("a port") };
    let address = listener.local_addr().unwrap();
    let port = trap.port;
    let answer = move |body: String| async move {
        let status: u16 = body.parse().unwrap();
        let to = format!("http://127.0.0.2:{port}/");
        Response::builder().status(status).header("Location", to).body(Body::empty()).unwrap()
    };
    spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
    for status in ["301", "302", "303", "307", "308"] {
        let refused = soon(fixture.handlers.call(Box::new(push(address, status)))).await;
        assert_eq!(kind(&refused), "Runtime.InvalidResponse", "{status}");
    }
    // The address was allowed, so only the redirect kept anybody from it.
    assert_eq!(trap.accepted().await, 0);
}

/// DX-093: what stands before a handler that is down answers in its place; the handler's own errors are its own.
#[tokio::test]
async fn a_gateway_is_not_the_handler() {
    let (address, _) = server().await;
    let fixture = fixture();
    let answer = async |payload: &str, durable: bool| -> HandlerFailure {
        let mut call = push(address, payload);
        call.spec.durable = durable;
        soon(fixture.handlers.call(Box::new(call))).await.unwrap_err()
    };
    for (status, plain) in [
        ("429", FailureKind::Unreached),
        ("502", FailureKind::Crashed),
        ("503", FailureKind::Unreached),
        ("504", FailureKind::Crashed),
    ] {
        let turned_away = answer(&format!("{status} - secret"), true).await;
        assert_eq!(turned_away.kind, FailureKind::Unreached, "{status}");
        let message = turned_away.error.error_message.unwrap();
        assert!(message.contains(status) && !message.contains("secret"), "{message}");
        let said = answer(&format!("{status} Unhandled boom"), true).await;
        assert_eq!(said.kind, FailureKind::Crashed, "{status} from the function itself");
        assert_eq!(answer(&format!("{status} - x"), false).await.kind, plain, "{status} of a plain function");
    }
}

/// DX-093: a handler that dies with its call in hand was reached.
#[tokio::test]
async fn a_connection_that_breaks_later_is_a_crash() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("the payload") {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
        }
    });
    let fixture = fixture();
    let broken = soon(fixture.handlers.call(Box::new(push(address, "the payload")))).await;
    assert_eq!((kind(&broken), broken.as_ref().unwrap_err().kind), ("Runtime.ConnectionError", FailureKind::Crashed));
}
