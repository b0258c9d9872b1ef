//! What a caller says about its trace reaches the handler, whichever API it calls.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use reqwest::Method;
use serde_json::json;
use servo_adapter::{HandlerCall, HandlerFailure, Handlers, Reply};

use crate::harness::{Answer, Options, Server};
use crate::serverless::support::definition_of;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const ADDRESS: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.told.v1~";

/// Keeps what it is told of the trace.
#[derive(Default)]
struct Told(Mutex<Vec<Option<String>>>);

#[async_trait]
impl Handlers for Told {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        self.0.lock().unwrap().push(call.trace);
        Ok("{}".to_owned().into())
    }
}

/// `tracestate` goes with `traceparent`, and alone it is nothing.
#[tokio::test]
async fn a_tracestate_goes_with_its_traceparent() {
    let told = Arc::new(Told::default());
    let server = Server::with(Options { handlers: told.clone(), ..Options::default() }).await;
    let spec = json!({"reach": {"kind": "inProcess"}, "durable": false});
    assert_eq!(server.send(Method::PUT, "/v1/functions/plain", "", Some(&spec)).await.status, 200);
    let prefix = "/api/serverless-runtime/v1";
    let registered = server.post(&format!("{prefix}/entrypoints"), &definition_of("default", ADDRESS)).await;
    let path = format!("{prefix}/entrypoints/{}:status", registered.json["id"].as_str().unwrap());
    assert_eq!(server.post(&path, &json!({"action": "activate"})).await.status, 200);
    let start = json!({"entrypoint_id": ADDRESS, "mode": "sync"});
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("traceparent", PARENT), ("tracestate", "congo=t61"), ("tracestate", "rojo=1")], "congo=t61,rojo=1"),
        (&[("traceparent", PARENT), ("tracestate", "no state")], ""),
        (&[("traceparent", PARENT)], ""),
    ];
    for (headers, state) in cases {
        let expected = format!("{PARENT} {state}").trim_end().to_owned();
        let with = |mut request: reqwest::RequestBuilder| {
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            request
        };
        let invoke = server.request(Method::POST, "/2015-03-31/functions/plain/invocations").body("{}");
        let invoked = with(invoke).send().await.unwrap();
        assert_eq!(invoked.status(), 200);
        let started = server.request(Method::POST, &format!("{prefix}/invocations")).json(&start);
        assert_eq!(Answer::of(with(started)).await.status, 201);
        let seen = std::mem::take(&mut *told.0.lock().unwrap());
        assert_eq!(seen, [Some(expected.clone()), Some(expected)], "{headers:?}");
    }
    // What is behind a space would be taken for a state that nobody has checked.
    let behind = server.request(Method::POST, "/2015-03-31/functions/plain/invocations").body("{}");
    let invoked = behind.header("traceparent", format!("{PARENT} a=1")).send().await.unwrap();
    assert_eq!(invoked.status(), 200);
    assert_eq!(std::mem::take(&mut *told.0.lock().unwrap()), [None]);
    // Whose state it is would not be known.
    let alone = server.request(Method::POST, "/2015-03-31/functions/plain/invocations").body("{}");
    let invoked = alone.header("tracestate", "congo=t61").send().await.unwrap();
    assert_eq!(invoked.status(), 200);
    assert_eq!(told.0.lock().unwrap().as_slice(), [None]);
}
