//! The Lambda API over HTTP: addresses, headers, error shapes, and who may call.

mod functions;

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use servo_adapter::{FailureKind, HandlerCall, HandlerFailure, Handlers, Reply};
use servo_model::operation::ErrorObject;
use servo_server::auth::{AccessKey, Auth};

use crate::harness::{Answer, Options, Server, keys};

/// Answers with its input, fails or waits, as the input says; keeps the envelope of an execution that waits.
struct Echo;

#[async_trait]
impl Handlers for Echo {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        let envelope: Value = serde_json::from_str(&call.payload).unwrap();
        if !call.spec.durable {
            return plain(&envelope);
        }
        if call.function == "large" {
            let error = ErrorObject::new("Function.ResponseSizeTooLarge", "let it answer less");
            return Err(HandlerFailure::new(FailureKind::Failed, error));
        }
        let input = &envelope["InitialExecutionState"]["Operations"][0]["ExecutionDetails"]["InputPayload"];
        let input = input.as_str().unwrap_or("null");
        match serde_json::from_str::<Value>(input).unwrap()["do"].as_str() {
            Some("fail") => {
                let error = json!({"ErrorType": "Boom", "ErrorMessage": "no"});
                Ok(json!({"Status": "FAILED", "Error": error}).to_string().into())
            }
            Some("context") => {
                let context = serde_json::to_string(&call.client_context).unwrap();
                Ok(json!({"Status": "SUCCEEDED", "Result": context}).to_string().into())
            }
            Some("envelope") => Ok(json!({"Status": "SUCCEEDED", "Result": call.payload}).to_string().into()),
            Some("hang") => std::future::pending().await,
            Some("list") => Ok(json!(["SUCCEEDED", "1", null]).to_string().into()),
            _ => Ok(json!({"Status": "SUCCEEDED", "Result": input}).to_string().into()),
        }
    }
}

/// A plain function fails in the words of its runtime, or in ours where those have none.
fn plain(input: &Value) -> Result<Reply, HandlerFailure> {
    let error = ErrorObject::new("TypeError", "boom");
    Err(match input["raises"].as_str() {
        Some(document) => {
            let error = ErrorObject { error_data: Some(document.to_owned()), ..error };
            HandlerFailure::new(FailureKind::Raised, error)
        }
        None => HandlerFailure::new(FailureKind::Crashed, error),
    })
}

async fn server() -> Server {
    let server = Server::with(Options { handlers: Arc::new(Echo), ..Options::default() }).await;
    register(&server, "").await;
    server
}

async fn register(server: &Server, key: &str) {
    let spec = json!({"reach": {"kind": "inProcess"}});
    let answer = server.send(Method::PUT, "/v1/functions/echo", key, Some(&spec)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

const INVOKE: &str = "/2015-03-31/functions/echo/invocations?Qualifier=%24LATEST";

async fn invoke(server: &Server, headers: &[(&str, &str)], body: &str) -> Response {
    let mut request = server.request(Method::POST, INVOKE).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// The error's name and message, by header and body, of an answer that has passed the linter.
async fn refused(response: Response) -> (u16, String, String) {
    let (status, headers, path) = (response.status(), response.headers().clone(), response.url().path().to_owned());
    let name = header(&response, "x-amzn-errortype").to_owned();
    let text = response.text().await.unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let message = json["message"].as_str().unwrap().to_owned();
    crate::lint::check(&Answer { status, headers, text, json }, &path);
    (status.as_u16(), name, message)
}

fn escaped(arn: &str) -> String {
    arn.replace(':', "%3A").replace('/', "%2F").replace('$', "%24")
}

/// A caller says where in a trace it is, in W3C's words or in AWS's; what is no trace of W3C's counts for nothing.
#[tokio::test]
async fn a_trace_is_taken_over_in_either_form() {
    let server = server().await;
    let w3c = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let amazon = "Root=1-aaaaaaaa-bbbbbbbbbbbbbbbbbbbbbbbb;Parent=00f067aa0ba902b7;Sampled=1";
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("traceparent", w3c), ("x-amzn-trace-id", amazon)], w3c),
        (&[("traceparent", "nonsense"), ("x-amzn-trace-id", amazon)], amazon),
        (&[("x-amzn-trace-id", amazon)], amazon),
    ];
    for (headers, expected) in cases {
        let answer = invoke(&server, headers, "{}").await;
        assert_eq!(answer.status(), 200);
        let arn = escaped(header(&answer, "x-amz-durable-execution-arn"));
        let path = format!("/2025-12-01/durable-executions/{arn}");
        let execution = server.send(Method::GET, &path, "", None).await;
        let execution: Value = serde_json::from_str(&execution.text).unwrap();
        assert_eq!(execution["TraceHeader"]["XAmznTraceId"], expected, "{execution}");
    }
}

/// DX-090
#[tokio::test]
async fn a_call_that_waits_gets_the_result() {
    let server = server().await;
    let answer = invoke(&server, &[("x-amz-durable-execution-name", "n1")], r#"{"a":1}"#).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "x-amz-executed-version"), "1");
    let arn = header(&answer, "x-amz-durable-execution-arn").to_owned();
    assert!(
        arn.starts_with("arn:aws:lambda:us-east-1:000000000000:function:echo:1/durable-execution/n1/inv_"),
        "{arn}"
    );
    assert_eq!(answer.text().await.unwrap(), r#"{"a":1}"#);
    let shown = server.get(&format!("/2025-12-01/durable-executions/{}", escaped(&arn))).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    let shown: Value = serde_json::from_str(&shown.text).unwrap();
    assert_eq!((&shown["Status"], &shown["Result"]), (&json!("SUCCEEDED"), &json!(r#"{"a":1}"#)));
    assert!(shown["StartTimestamp"].is_f64(), "epoch seconds: {shown}");
    let history = server.get(&format!("/2025-12-01/durable-executions/{}/history", escaped(&arn))).await;
    let history: Value = serde_json::from_str(&history.text).unwrap();
    let kinds: Vec<_> = history["Events"].as_array().unwrap().iter().map(|event| event["EventType"].clone()).collect();
    assert_eq!(kinds, ["ExecutionStarted", "InvocationCompleted", "ExecutionSucceeded"]);
}

/// DX-090: a qualifier that leads nowhere is an error of the published API that names it, and says what is missing.
#[tokio::test]
async fn a_qualifier_that_leads_nowhere_is_named() {
    let server = server().await;
    let table = [
        ("nobody", "live", 404, "Function not found: nobody:live"),
        ("echo", "9", 404, "Function not found: echo:9; its newest version is 1"),
        ("echo", "01", 404, "Function not found: echo:01; its newest version is 1"),
        ("echo", "99999999999999999999", 404, "Function not found: echo:99999999999999999999; its newest version is 1"),
        ("echo", "live", 404, "Function not found: echo:live; the function has no alias live"),
        (
            "echo",
            "a%20b",
            400,
            "Invalid Qualifier 'a b': it is the number of a version, the name of an alias, or $LATEST",
        ),
    ];
    for (function, qualifier, status, message) in table {
        let path = format!("/2015-03-31/functions/{function}/invocations?Qualifier={qualifier}");
        let answer = server.request(Method::POST, &path).body("{}").send().await.unwrap();
        let name = if status == 404 { "ResourceNotFoundException" } else { "InvalidParameterValueException" };
        assert_eq!(refused(answer).await, (status, name.to_owned(), message.to_owned()));
    }
    let alias = server.send(Method::PUT, "/v1/functions/echo/aliases/live", "", Some(&json!({"version": 1}))).await;
    assert_eq!(alias.status, 200, "{}", alias.text);
    for named in ["echo:live/invocations", "echo/invocations?Qualifier=live", "echo:1/invocations"] {
        let path = format!("/2015-03-31/functions/{named}");
        let answer = server.request(Method::POST, &path).body("{}").send().await.unwrap();
        assert_eq!((answer.status().as_u16(), header(&answer, "x-amz-executed-version")), (200, "1"), "{named}");
    }
}

/// DX-090: what a caller says about itself goes on to the handler; what is no JSON object in base64 is refused in the published words.
#[tokio::test]
async fn a_client_context_is_passed_on() {
    let server = server().await;
    let context = "eyJjdXN0b20iOnsiYSI6IjEifX0=";
    let answer = invoke(&server, &[("x-amz-client-context", context)], r#"{"do":"context"}"#).await;
    assert_eq!(answer.text().await.unwrap(), format!("\"{context}\""));
    assert_eq!(invoke(&server, &[], r#"{"do":"context"}"#).await.text().await.unwrap(), "null");
    let long = "A".repeat(3_584);
    for (wrong, message) in [
        ("%%%", "Client context must be a valid Base64-encoded JSON object."),
        ("bm8ganNvbg==", "Client context must be a valid Base64-encoded JSON object."),
        ("WzFd", "Client context must be a valid Base64-encoded JSON object."),
        (long.as_str(), "Client context must be at most 3583 bytes of Base64."),
    ] {
        let answer = invoke(&server, &[("x-amz-client-context", wrong)], "{}").await;
        let expected = (400, "InvalidRequestContentException".to_owned(), message.to_owned());
        assert_eq!(refused(answer).await, expected, "{wrong}");
    }
}

#[tokio::test]
async fn a_failure_is_a_function_error() {
    let server = server().await;
    let answer = invoke(&server, &[], r#"{"do":"fail"}"#).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "x-amz-function-error")), (200, "Unhandled"));
    let body: Value = answer.json().await.unwrap();
    assert_eq!((&body["errorType"], &body["errorMessage"]), (&json!("Boom"), &json!("no")));
}

/// DX-090: what the runtime of a plain function wrote about its failure is what its caller reads, byte for byte, also from the log. Our
/// own words have no members that say nothing.
#[tokio::test]
async fn an_error_document_passes_unchanged() {
    let server = server().await;
    let spec = json!({"reach": {"kind": "inProcess"}, "durable": false});
    assert_eq!(server.send(Method::PUT, "/v1/functions/plain", "", Some(&spec)).await.status, 200);
    let path = "/2015-03-31/functions/plain/invocations?Qualifier=%24LATEST";
    let call = async |input: &Value, name: &str| {
        let request = server.request(Method::POST, path).header("x-amz-durable-execution-name", name);
        let answer = request.body(input.to_string()).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), header(&answer, "x-amz-function-error")), (200, "Unhandled"));
        (header(&answer, "x-amz-durable-execution-arn").to_owned(), answer.text().await.unwrap())
    };
    let sent = "{ \"errorType\":\"TypeError\", \"errorMessage\":\"boom\", \"trace\":[\"at f\"], \"own\":1.50 }\n";
    for again in ["a", "a", "b"] {
        let (arn, body) = call(&json!({"raises": sent}), again).await;
        assert_eq!(body, sent);
        let shown: Value =
            serde_json::from_str(&server.get(&format!("/2025-12-01/durable-executions/{}", escaped(&arn))).await.text)
                .unwrap();
        assert_eq!(shown["Error"], json!({"ErrorType": "TypeError", "ErrorMessage": "boom"}), "{shown}");
        assert_eq!(shown.get("Result"), None);
    }
    let (_, body) = call(&json!({}), "c").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body, json!({"errorType": "TypeError", "errorMessage": "boom"}));
}

/// DX-091: an answer that is too large is so the next time, too: the execution has failed, and who waits is told.
#[tokio::test]
async fn an_answer_that_is_too_large_ends_the_execution() {
    let server = server().await;
    let spec = json!({"reach": {"kind": "inProcess"}});
    assert_eq!(server.send(Method::PUT, "/v1/functions/large", "", Some(&spec)).await.status, 200);
    let path = "/2015-03-31/functions/large/invocations?Qualifier=%24LATEST";
    let answer = server.request(Method::POST, path).body("{}").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "x-amz-function-error")), (200, "Unhandled"));
    let arn = escaped(header(&answer, "x-amz-durable-execution-arn"));
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["errorType"], "Function.ResponseSizeTooLarge", "{body}");
    let history = server.get(&format!("/2025-12-01/durable-executions/{arn}/history")).await;
    let history: Value = serde_json::from_str(&history.text).unwrap();
    let kinds: Vec<_> = history["Events"].as_array().unwrap().iter().map(|event| event["EventType"].clone()).collect();
    assert_eq!(kinds, ["ExecutionStarted", "InvocationCompleted", "ExecutionFailed"]);
}

#[tokio::test]
async fn a_call_may_not_wait_or_not_run_at_all() {
    let server = server().await;
    let event = invoke(&server, &[("x-amz-invocation-type", "Event")], "{}").await;
    assert_eq!(event.status(), 202);
    assert!(!header(&event, "x-amz-durable-execution-arn").is_empty());
    assert_eq!(invoke(&server, &[("x-amz-invocation-type", "DryRun")], "{}").await.status(), 204);
    let (status, name, _) = refused(invoke(&server, &[("x-amz-invocation-type", "Later")], "{}").await).await;
    assert_eq!((status, name.as_str()), (400, "InvalidParameterValueException"));
}

/// DX-090: what could not be run is refused, whether it is to be run, to be queued or only to be checked.
#[tokio::test]
async fn what_cannot_run_is_refused_in_every_way_of_calling() {
    let server = server().await;
    let long = "x".repeat(257);
    for kind in ["RequestResponse", "Event", "DryRun"] {
        for (name, value) in [
            ("x-amz-durable-execution-name", "bad name!"),
            ("x-amz-tenant-id", "a!b#"),
            ("x-amz-tenant-id", ""),
            ("x-amz-tenant-id", long.as_str()),
        ] {
            let answer = invoke(&server, &[("x-amz-invocation-type", kind), (name, value)], "{}").await;
            let (status, error, _) = refused(answer).await;
            assert_eq!((status, error.as_str()), (400, "InvalidParameterValueException"), "{kind} {name} {value}");
        }
        let large = format!("\"{}\"", "x".repeat(6 * 1024 * 1024));
        let (status, error, _) = refused(invoke(&server, &[("x-amz-invocation-type", kind)], &large).await).await;
        assert_eq!((status, error.as_str()), (413, "RequestTooLargeException"), "{kind}");
        let good = [("x-amz-invocation-type", kind), ("x-amz-tenant-id", "a.b_c:d/e=f+g-h@i j")];
        assert!(invoke(&server, &good, "{}").await.status().is_success(), "{kind}");
    }
}

#[tokio::test]
async fn every_wrong_call_has_the_apis_own_error() {
    let server = server().await;
    let named = [("x-amz-durable-execution-name", "once")];
    assert_eq!(invoke(&server, &named, "1").await.status(), 200);
    let (status, name, _) = refused(invoke(&server, &named, "2").await).await;
    assert_eq!((status, name.as_str()), (409, "DurableExecutionAlreadyStartedException"));
    let (status, name, _) = refused(invoke(&server, &[], "{").await).await;
    assert_eq!((status, name.as_str()), (400, "InvalidRequestContentException"));
    let (status, name, _) =
        refused(invoke(&server, &[("x-amz-durable-execution-name", "no spaces")], "{}").await).await;
    assert_eq!((status, name.as_str()), (400, "InvalidParameterValueException"));

    let arn = escaped("arn:aws:lambda:us-east-1:000000000000:function:echo:1/durable-execution/n/inv_unknown");
    let unknown = "/2025-12-01/durable-execution-callbacks/QUFBQQ%3D%3D/succeed".to_owned();
    for (method, path, body, expected) in [
        (
            Method::POST,
            "/2015-03-31/functions/nothing/invocations".to_owned(),
            "{}",
            (404, "ResourceNotFoundException"),
        ),
        (Method::GET, format!("/2025-12-01/durable-executions/{arn}"), "", (404, "ResourceNotFoundException")),
        (Method::GET, format!("/2025-12-01/durable-executions/{arn}/history"), "", (404, "ResourceNotFoundException")),
        (Method::POST, format!("/2025-12-01/durable-executions/{arn}/stop"), "", (404, "ResourceNotFoundException")),
        (
            Method::GET,
            "/2025-12-01/durable-executions/nonsense".to_owned(),
            "",
            (400, "InvalidParameterValueException"),
        ),
        (Method::POST, unknown, "", (404, "ResourceNotFoundException")),
        (
            Method::POST,
            format!("/2025-12-01/durable-executions/{arn}%2Fmore/checkpoint"),
            r#"{"CheckpointToken":"AAAA"}"#,
            (400, "InvalidParameterValueException"),
        ),
        (
            Method::GET,
            format!("/2025-12-01/durable-executions/{arn}%2Fmore/state?CheckpointToken=AAAA"),
            "",
            (400, "InvalidParameterValueException"),
        ),
        (
            Method::POST,
            format!("/2025-12-01/durable-executions/{arn}/checkpoint"),
            r#"{"CheckpointToken":"AAAA"}"#,
            (400, "InvalidParameterValueException"),
        ),
        (
            Method::POST,
            format!("/2025-12-01/durable-executions/{arn}/checkpoint"),
            "{}",
            (400, "InvalidParameterValueException"),
        ),
        (
            Method::POST,
            format!("/2025-12-01/durable-executions/{arn}/checkpoint"),
            "{",
            (400, "InvalidRequestContentException"),
        ),
        (
            Method::GET,
            "/2025-12-01/functions/echo/durable-executions?Statuses=SLEEPING".to_owned(),
            "",
            (400, "InvalidParameterValueException"),
        ),
        (
            Method::GET,
            "/2025-12-01/functions/echo/durable-executions?MaxItems=1001".to_owned(),
            "",
            (400, "InvalidParameterValueException"),
        ),
    ] {
        let answer = server.request(method, &path).body(body).send().await.unwrap();
        let (status, name, message) = refused(answer).await;
        assert_eq!((status, name.as_str()), expected, "{path}: {message}");
    }
}

/// DX-091: an address that is none, and a method that is another, are refused in this API's own form.
#[tokio::test]
async fn unknown_addresses_have_the_apis_own_error() {
    let server = server().await;
    for (method, path, expected) in [
        (Method::GET, "/2025-12-01", (404, "UnknownOperationException")),
        (Method::GET, "/2025-12-01/durable-executions/a/b/c/d", (404, "UnknownOperationException")),
        (Method::PUT, "/2015-03-31/functions/echo/code", (404, "UnknownOperationException")),
        (Method::GET, "/2015-03-31/event-source-mappings/", (404, "UnknownOperationException")),
        (Method::GET, "/2018-10-31/layers", (404, "UnknownOperationException")),
        (Method::GET, "/2017-03-31/tags/arn", (404, "UnknownOperationException")),
        (Method::POST, "/2014-11-13/functions/echo/invoke-async", (404, "UnknownOperationException")),
        (Method::POST, "/2021-11-15/functions/echo/response-streaming-invocations", (404, "UnknownOperationException")),
        (Method::DELETE, "/2015-03-31/functions/echo", (405, "MethodNotAllowedException")),
        (Method::POST, "/2015-03-31/functions", (405, "MethodNotAllowedException")),
        (Method::GET, "/2015-03-31/functions/echo/invocations", (405, "MethodNotAllowedException")),
        (Method::DELETE, "/2025-12-01/durable-executions/x/history", (405, "MethodNotAllowedException")),
    ] {
        let answer = server.request(method, path).send().await.unwrap();
        assert_eq!(header(&answer, "x-amzn-requestid"), header(&answer, "x-request-id"));
        let (status, name, message) = refused(answer).await;
        assert_eq!((status, name.as_str()), expected, "{path}");
        assert!(message.contains("servo functions"), "{message}");
    }
    server.get("/2025-12-011").await.is_problem("NOT_FOUND");
}

/// DX-090: an execution has one ARN. What says anything else of its run names nothing; the run's id alone is enough for our own tools.
#[tokio::test]
async fn an_arn_is_taken_as_a_whole() {
    let server = server().await;
    let begun = invoke(&server, &[("x-amz-durable-execution-name", "n")], "{}").await;
    let arn = header(&begun, "x-amz-durable-execution-arn");
    let run = arn.rsplit('/').next().unwrap();
    let paths = |arn: &str| {
        let path = format!("/2025-12-01/durable-executions/{}", escaped(arn));
        [(Method::GET, path.clone()), (Method::GET, format!("{path}/history")), (Method::POST, format!("{path}/stop"))]
    };
    for arn in [arn, run] {
        for (method, path) in paths(arn) {
            assert_eq!(server.request(method, &path).send().await.unwrap().status(), 200, "{path}");
        }
    }
    for (part, other) in [
        ("000000000000", "999999999999"),
        ("us-east-1", "eu-west-1"),
        (":echo:", ":other:"),
        (":1/", ":2/"),
        ("/n/", "/m/"),
        ("arn:aws:", "arn:aws-cn:"),
    ] {
        assert!(arn.contains(part), "{arn}");
        for (method, path) in paths(&arn.replacen(part, other, 1)) {
            let (status, name, _) = refused(server.request(method, &path).send().await.unwrap()).await;
            assert_eq!((status, name.as_str()), (404, "ResourceNotFoundException"), "{path}");
        }
    }
}

/// DX-090: what its handler calls takes the ARN as a whole, too, and says so as these operations say it: they know no execution that is
/// not found.
#[tokio::test]
async fn an_arn_is_a_handlers_as_a_whole() {
    let server = server().await;
    let begun = invoke(&server, &[("x-amz-durable-execution-name", "n")], r#"{"do":"envelope"}"#).await;
    let arn = header(&begun, "x-amz-durable-execution-arn").to_owned();
    let envelope: Value = begun.json().await.unwrap();
    assert_eq!(envelope["DurableExecutionArn"], json!(arn));
    let token = envelope["CheckpointToken"].as_str().unwrap();
    let called = async |arn: &str| {
        let path = format!("/2025-12-01/durable-executions/{}", escaped(arn));
        let body = json!({"CheckpointToken": token}).to_string();
        let token = token.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let state = server.request(Method::GET, &format!("{path}/state?CheckpointToken={token}"));
        let checkpoint = server.request(Method::POST, &format!("{path}/checkpoint")).body(body);
        [refused(state.send().await.unwrap()).await, refused(checkpoint.send().await.unwrap()).await]
    };
    // The execution is over, so that its own ARN leads to its token, which is stale.
    for (status, name, message) in called(&arn).await {
        let expected = (400, "InvalidParameterValueException", "Invalid checkpoint token");
        assert_eq!((status, name.as_str(), message.as_str()), expected);
    }
    for (part, other) in [
        ("000000000000", "999999999999"),
        ("us-east-1", "eu-west-1"),
        (":echo:", ":other:"),
        (":1/", ":2/"),
        ("/n/", "/m/"),
        ("arn:aws:", "arn:aws-cn:"),
        ("/n/", "/n/more/"),
    ] {
        assert!(arn.contains(part), "{arn}");
        for (status, name, message) in called(&arn.replacen(part, other, 1)).await {
            assert_eq!((status, name.as_str()), (400, "InvalidParameterValueException"), "{part} {other}");
            assert!(message.starts_with("DurableExecutionArn"), "{part} {other}: {message}");
        }
    }
}

/// DX-090: ids and names that the published API rules out are refused, not looked for.
#[tokio::test]
async fn what_can_be_no_id_or_name_is_refused() {
    let server = server().await;
    let long = "A".repeat(1_025);
    for id in ["***", "%20", "A%20A", "A%3D%3D%3D", "%3D", "A%3DA", "%C3%A4", long.as_str()] {
        for (what, body) in [("succeed", ""), ("fail", "{}"), ("heartbeat", "")] {
            let path = format!("/2025-12-01/durable-execution-callbacks/{id}/{what}");
            let answer = server.request(Method::POST, &path).body(body).send().await.unwrap();
            let (status, name, _) = refused(answer).await;
            assert_eq!((status, name.as_str()), (400, "InvalidParameterValueException"), "{id} {what}");
        }
    }
    let named = |name: &str| format!("/2025-12-01/functions/echo/durable-executions?DurableExecutionName={name}");
    let long = "a".repeat(65);
    for wrong in ["a%20b", "a.b", "", "%C3%A4", "a%2Fb", long.as_str()] {
        let answer = server.request(Method::GET, &named(wrong)).send().await.unwrap();
        let (status, name, _) = refused(answer).await;
        assert_eq!((status, name.as_str()), (400, "InvalidParameterValueException"), "{wrong}");
    }
    for good in ["a-b_C9", &long[1..]] {
        assert_eq!(server.get(&named(good)).await.status, 200, "{good}");
    }
}

/// DX-042: a list of an object's fields in order is no object, and what is wrong is named without a word of our source.
#[tokio::test]
async fn lists_are_no_objects() {
    let server = server().await;
    let begun = invoke(&server, &[("x-amz-invocation-type", "Event")], r#"{"do":"hang"}"#).await;
    let arn = escaped(header(&begun, "x-amz-durable-execution-arn"));
    let execution = format!("/2025-12-01/durable-executions/{arn}");
    let callback = "/2025-12-01/durable-execution-callbacks/QUFBQQ%3D%3D/fail".to_owned();
    for (path, body, expected) in [
        (format!("{execution}/stop"), r#"["boom","Kind",null,null]"#, "an array where an object belongs"),
        (format!("{execution}/stop"), "[]", "an array where an object belongs"),
        (format!("{execution}/stop"), r#"{"ErrorType":7}"#, "ErrorType: integer `7` where a string belongs"),
        (callback, "[]", "an array where an object belongs"),
        (format!("{execution}/checkpoint"), r#"["t",[],null]"#, "an array where an object belongs"),
    ] {
        let answer = server.request(Method::POST, &path).body(body).send().await.unwrap();
        let (status, name, message) = refused(answer).await;
        assert_eq!(
            (status, name.as_str(), message.as_str()),
            (400, "InvalidParameterValueException", expected),
            "{body}"
        );
    }
    let shown: Value = serde_json::from_str(&server.get(&execution).await.text).unwrap();
    assert_eq!(shown["Status"], "RUNNING", "none of them counted: {shown}");
    let answer = invoke(&server, &[], r#"{"do":"list"}"#).await;
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["errorMessage"], "Invalid invocation output: an array where an object belongs", "{body}");
}

/// DX-091: what a stale token is answered with, word by word, because SDKs compare it.
#[tokio::test]
async fn a_stale_token_is_refused_in_the_published_words() {
    let server = server().await;
    let begun = invoke(&server, &[], "{}").await;
    let arn = escaped(header(&begun, "x-amz-durable-execution-arn"));
    let path = format!("/2025-12-01/durable-executions/{arn}/checkpoint");
    let answer = server.request(Method::POST, &path).body(r#"{"CheckpointToken":"QUFBQQ=="}"#).send().await.unwrap();
    assert_eq!(refused(answer).await.2, "Invalid checkpoint token");
}

#[tokio::test]
async fn executions_are_stopped_and_listed() {
    let server = server().await;
    let begun = invoke(&server, &[("x-amz-invocation-type", "Event")], r#"{"do":"hang"}"#).await;
    let arn = escaped(header(&begun, "x-amz-durable-execution-arn"));
    let list = |status: &'static str| {
        let server = &server;
        async move {
            let path = format!("/2025-12-01/functions/echo/durable-executions?Statuses={status}");
            let answer: Value = serde_json::from_str(&server.get(&path).await.text).unwrap();
            answer["DurableExecutions"].as_array().unwrap().len()
        }
    };
    assert_eq!((list("RUNNING").await, list("STOPPED").await), (1, 0));
    let stop = format!("/2025-12-01/durable-executions/{arn}/stop");
    let answer = server.post(&stop, &json!({"ErrorType": "Why", "ErrorMessage": "because"})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!((list("RUNNING").await, list("STOPPED").await), (0, 1));
    assert_eq!(server.post(&stop, &json!({})).await.status, 200, "again: nothing");
    let stopped: Value =
        serde_json::from_str(&server.get(&format!("/2025-12-01/durable-executions/{arn}")).await.text).unwrap();
    assert_eq!(stopped["Error"], json!({"ErrorType": "Why", "ErrorMessage": "because"}));
}

/// DX-090: whoever stops need not say why; whoever looks is told all the same.
#[tokio::test]
async fn a_stop_without_a_reason_still_says_what_happened() {
    let server = server().await;
    let begun = invoke(&server, &[("x-amz-invocation-type", "Event")], r#"{"do":"hang"}"#).await;
    let path = format!("/2025-12-01/durable-executions/{}", escaped(header(&begun, "x-amz-durable-execution-arn")));
    let answer = server.request(Method::POST, &format!("{path}/stop")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let stopped: Value = serde_json::from_str(&server.get(&path).await.text).unwrap();
    let error = json!({"ErrorType": "Execution.Stopped", "ErrorMessage": "the execution was stopped on request"});
    assert_eq!((&stopped["Status"], &stopped["Error"]), (&json!("STOPPED"), &error));
}

#[tokio::test]
async fn a_callbacks_result_is_text() {
    let server = server().await;
    let path = "/2025-12-01/durable-execution-callbacks/QUFBQQ%3D%3D/succeed";
    let answer = server.request(Method::POST, path).body(vec![0xff_u8]).send().await.unwrap();
    let (status, name, _) = refused(answer).await;
    assert_eq!((status, name.as_str()), (400, "InvalidParameterValueException"));
}

/// S4: a foreign tenant's execution does not exist, and nobody calls without credentials.
#[tokio::test]
async fn only_a_tenants_own_executions_exist() {
    let auth = match keys() {
        Auth::Keys { keys, .. } => Auth::Keys {
            keys,
            access_keys: vec![AccessKey {
                id: "AKIDEXAMPLE".to_owned(),
                secret: "secret".to_owned(),
                tenant: servo_model::TenantId::parse("acme").unwrap(),
                roles: vec![servo_model::Role::Operator],
            }],
        },
        Auth::Development => unreachable!(),
    };
    let server = Server::with(Options { auth, handlers: Arc::new(Echo), ..Options::default() }).await;
    register(&server, "acme-admin").await;
    let begin = |key: &'static str| server.request(Method::POST, INVOKE).bearer_auth(key).body("{}").send();
    let begun = begin("acme-operator").await.unwrap();
    assert_eq!(begun.status(), 200);
    let arn = escaped(header(&begun, "x-amz-durable-execution-arn"));
    let path = format!("/2025-12-01/durable-executions/{arn}");
    for (key, status) in [("acme-viewer", 200), ("globex-viewer", 404)] {
        let answer = server.request(Method::GET, &path).bearer_auth(key).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{key}");
    }
    // What went in is for those who may read payloads, whatever is asked for.
    for (key, shown) in [("acme-operator", true), ("acme-viewer", false)] {
        let request = server.request(Method::GET, &format!("{path}?IncludeExecutionData=true")).bearer_auth(key);
        let text = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(text.contains("\"InputPayload\":"), shown, "{key}: {text}");
    }
    assert_eq!(refused(begin("globex-operator").await.unwrap()).await.0, 404, "nor its functions");
    let viewer = refused(begin("acme-viewer").await.unwrap()).await;
    assert_eq!((viewer.0, viewer.1.as_str()), (403, "AccessDeniedException"));
    let nobody = refused(server.request(Method::POST, INVOKE).body("{}").send().await.unwrap()).await;
    assert_eq!((nobody.0, nobody.1.as_str()), (403, "MissingAuthenticationTokenException"));
    let forged = server
        .request(Method::POST, INVOKE)
        .header(
            "authorization",
            format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260131/us-east-1/lambda/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date, Signature={}",
                "0".repeat(64)
            ),
        )
        .header("x-amz-date", "20260131T120000Z");
    let forged = refused(forged.body("{}").send().await.unwrap()).await;
    assert_eq!((forged.0, forged.1.as_str()), (403, "InvalidSignatureException"));
    assert!(forged.2.starts_with("Signature expired: 20260131T120000Z is now earlier than "), "{}", forged.2);
}
