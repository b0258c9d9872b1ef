//! That a call says the same by both clients, and that what comes back means the same.

use serde_json::{Value, json};
use servo_sdk::{CheckpointRequest, CheckpointResponse, GetStateResponse, ServiceError, Verdict};

use super::ARN;
use super::exchange::{Kind, exchange};

fn answer(status: &str, kind: Option<&str>, body: &str) -> String {
    let kind = kind.map(|kind| format!("x-amzn-errortype: {kind}\r\n")).unwrap_or_default();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{kind}content-length: {}\r\n\r\n{body}", body.len())
}

fn empty() -> CheckpointRequest {
    CheckpointRequest { checkpoint_token: "t".into(), updates: None, client_token: Some("c".into()) }
}

/// The failure of a checkpoint by each client. Reading the state must fail in the same way.
async fn failures(answer: &str) -> [ServiceError; 2] {
    let fail = async |kind| {
        let (_, checkpoint) = exchange(kind, answer, async |client| client.checkpoint(ARN, empty()).await).await;
        let (_, state) = exchange(kind, answer, async |client| client.get_state(ARN, "t", "m").await).await;
        let (checkpoint, state) = (checkpoint.unwrap_err(), state.unwrap_err());
        assert_eq!(checkpoint.verdict(), state.verdict(), "{kind:?}: {checkpoint} / {state}");
        checkpoint
    };
    [fail(Kind::Own).await, fail(Kind::Aws).await]
}

/// DX-044: a refusal has the same status, code and message by both clients, and leads to the same.
#[tokio::test]
async fn a_refusal_means_the_same() {
    let said = |message: &str| json!({"Type": "User", "Message": message}).to_string();
    let spelled = |message: &str| json!({"message": message}).to_string();
    for (status, kind, body, verdict) in [
        ("400 Bad Request", "InvalidParameterValueException", said("Invalid checkpoint token: old"), Verdict::Reinvoke),
        ("400 Bad Request", "InvalidParameterValueException", spelled("Invalid Checkpoint Token"), Verdict::Reinvoke),
        ("400 Bad Request", "InvalidParameterValueException", said("an update is wrong"), Verdict::Fail),
        ("404 Not Found", "ResourceNotFoundException", said("no such durable execution"), Verdict::Fail),
        ("403 Forbidden", "AccessDeniedException:http://internal/", said("no"), Verdict::Fail),
        ("413 Payload Too Large", "RequestTooLargeException", said("too long"), Verdict::Fail),
        ("429 Too Many Requests", "TooManyRequestsException", said("later"), Verdict::Retry),
        ("500 Internal Server Error", "ServiceException", said("broken"), Verdict::Retry),
        ("502 Bad Gateway", "KMSDisabledException", said("the key is off"), Verdict::Fail),
    ] {
        let [own, aws] = failures(&answer(status, Some(kind), &body)).await;
        assert_eq!(own, aws);
        assert_eq!(aws.verdict(), verdict, "{aws}");
        assert!(matches!(&aws, ServiceError::Refused { code, .. } if kind.starts_with(code)), "{aws}");
    }
    // Somebody in between has answered.
    for (status, verdict) in [("503 Service Unavailable", Verdict::Retry), ("404 Not Found", Verdict::Fail)] {
        let [own, aws] = failures(&answer(status, None, "<html>no</html>")).await;
        assert_eq!(own, aws);
        assert_eq!(aws.verdict(), verdict, "{aws}");
    }
}

/// DX-044: also where the answer cannot be read, or none comes.
#[tokio::test]
async fn what_is_no_answer_means_the_same() {
    for (answer, verdict) in [
        (answer("200 OK", None, "<html>hello</html>"), Verdict::Fail),
        // A status that this version does not know is not taken for a live one.
        (answer("200 OK", None, &known("PAUSED").to_string()), Verdict::Fail),
        // It breaks off.
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned(), Verdict::Retry),
        (String::new(), Verdict::Retry),
    ] {
        let [own, aws] = failures(&answer).await;
        assert_eq!([own.verdict(), aws.verdict()], [verdict; 2], "{answer}: {own} / {aws}");
        assert_eq!(std::mem::discriminant(&own), std::mem::discriminant(&aws), "{own} / {aws}");
    }
}

/// DX-044: nothing of an update is lost on its way through AWS's types.
#[tokio::test]
async fn a_checkpoint_says_the_same() {
    let error = json!({"ErrorMessage": "m", "ErrorType": "T", "ErrorData": "d", "StackTrace": ["a", "b"]});
    let whole = json!({
        "CheckpointToken": "t+/=", "ClientToken": "c",
        "Updates": [
            {
                "Id": "1", "ParentId": "0", "Name": "n", "Type": "STEP", "SubType": "Step", "Action": "RETRY",
                "Payload": "\"ü\\n\"", "Error": error,
                "ContextOptions": {"ReplayChildren": true},
                "StepOptions": {"NextAttemptDelaySeconds": 5},
                "WaitOptions": {"WaitSeconds": 31_622_400},
                "CallbackOptions": {"TimeoutSeconds": 7, "HeartbeatTimeoutSeconds": 3},
                "ChainedInvokeOptions": {"FunctionName": "f", "TenantId": "x", "XAmznTraceId": "Root=1"},
            },
            {"Id": "2", "Type": "CHAINED_INVOKE", "Action": "START"},
            {"Id": "3", "Type": "EXECUTION", "Action": "SUCCEED"},
            {"Id": "4", "Type": "CONTEXT", "Action": "FAIL"},
            {"Id": "5", "Type": "CALLBACK", "Action": "CANCEL"},
            {"Id": "6", "Type": "WAIT", "Action": "START"},
        ],
    });
    let request: CheckpointRequest = serde_json::from_value(whole.clone()).unwrap();
    let answer = answer("200 OK", None, &known("STARTED").to_string());
    let mut lines = Vec::new();
    for kind in [Kind::Own, Kind::Aws] {
        let (asked, _) = exchange(kind, &answer, async |client| client.checkpoint(ARN, request.clone()).await).await;
        let (head, body) = asked.split_once("\r\n\r\n").unwrap();
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), whole, "{kind:?}");
        lines.push(head.lines().next().unwrap().to_owned());
        let (asked, _) = exchange(kind, &answer, async |client| client.get_state(ARN, "t+/=", "m &ü").await).await;
        lines.push(asked.lines().next().unwrap().to_owned());
    }
    assert_eq!(lines[..2], lines[2..]);
}

/// Operations with everything that one can have.
fn known(status: &str) -> Value {
    let error = json!({"ErrorMessage": "m", "ErrorType": "T", "ErrorData": "d", "StackTrace": ["a", "b"]});
    let operations = json!([
        {
            "Id": "1", "ParentId": "0", "Name": "n", "Type": "STEP", "SubType": "Step", "Status": status,
            // Fractions that a double does not have.
            "StartTimestamp": 1_790_000_000.123, "EndTimestamp": 1_790_000_001.001,
            "ExecutionDetails": {"InputPayload": "{}"},
            "ContextDetails": {"ReplayChildren": true, "Result": "1", "Error": error},
            "StepDetails": {"Attempt": 2, "NextAttemptTimestamp": 1_790_000_002.999, "Result": "2", "Error": error},
            "WaitDetails": {"ScheduledEndTimestamp": 1_790_000_003.0},
            "CallbackDetails": {"CallbackId": "cb", "Result": "3", "Error": error},
            "ChainedInvokeDetails": {"Result": "4", "Error": error},
        },
        {"Id": "2", "Type": "CHAINED_INVOKE", "Status": "TIMED_OUT", "StartTimestamp": 0.5},
        {"Id": "3", "Type": "EXECUTION", "Status": "PENDING", "StartTimestamp": 1_790_000_000},
    ]);
    let state = json!({"Operations": operations, "NextMarker": "next"});
    json!({"CheckpointToken": "next", "NewExecutionState": state, "Operations": operations, "NextMarker": "next"})
}

/// DX-044: nor of what is recorded.
#[tokio::test]
async fn an_answer_is_read_whole() {
    let text = known("STARTED").to_string();
    let answer = answer("200 OK", None, &text);
    let (_, read) = exchange(Kind::Aws, &answer, async |client| client.checkpoint(ARN, empty()).await).await;
    assert_eq!(read.unwrap(), serde_json::from_str::<CheckpointResponse>(&text).unwrap());
    let (_, read) = exchange(Kind::Aws, &answer, async |client| client.get_state(ARN, "t", "m").await).await;
    assert_eq!(read.unwrap(), serde_json::from_str::<GetStateResponse>(&text).unwrap());
}
