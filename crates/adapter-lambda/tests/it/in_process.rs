//! Closures as handlers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use servo_adapter::{FailureKind, HandlerCall, Handlers as _};
use servo_model::function::Reach;

use crate::support::{call, fixture, kind};

/// DX-093: a function is reached in process, by its name.
#[tokio::test]
async fn a_closure_answers() {
    let fixture = fixture();
    let missing = fixture.handlers.call(Box::new(call(Reach::InProcess, "r1", "x"))).await;
    assert!(missing.as_ref().is_err_and(|failure| failure.kind == FailureKind::Unreachable));
    assert_eq!(kind(&missing), "ResourceNotFoundException");
    let handler = |call: HandlerCall| async move { Ok(format!("{}!", call.payload)) }.boxed();
    fixture.handlers.register_in_process("f", Arc::new(handler));
    assert_eq!(fixture.handlers.call(Box::new(call(Reach::InProcess, "r2", "x"))).await, Ok("x!".to_owned().into()));
}

/// DX-093: a handler in process may die or hang, and neither harms the caller.
#[tokio::test]
async fn a_closure_that_panics_or_hangs_has_crashed() {
    let fixture = fixture();
    let handler = |call: HandlerCall| {
        assert!(call.payload != "at once", "boom");
        async move { if call.payload == "later" { panic!("boom") } else { std::future::pending().await } }.boxed()
    };
    fixture.handlers.register_in_process("f", Arc::new(handler));
    for payload in ["at once", "later"] {
        let answer = fixture.handlers.call(Box::new(call(Reach::InProcess, "r", payload))).await;
        assert_eq!(kind(&answer), "Runtime.ExitError");
    }
    let hanging = HandlerCall { timeout: Duration::from_millis(20), ..call(Reach::InProcess, "r", "never") };
    let answer = fixture.handlers.call(Box::new(hanging)).await;
    assert_eq!(kind(&answer), "Sandbox.Timedout");
    assert_eq!(answer.unwrap_err().kind, FailureKind::Crashed);
}
