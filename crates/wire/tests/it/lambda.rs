//! The durable execution API: our types read and write the service's documents field by field.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use servo_wire::lambda::{
    CheckpointRequest, CheckpointResponse, DurableExecutionInvocationInput, DurableExecutionInvocationOutput,
    ErrorObject, Millis, Operation, OperationAction, OperationStatus, OperationType, OperationUpdate, Seconds,
};

/// Reads the document and writes it again: nothing may be lost, renamed or added.
fn round_trip<T: Serialize + DeserializeOwned>(document: &Value) {
    let value: T = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&value).unwrap(), *document);
}

/// DX-042: every field of every kind of operation, as the published model names them.
#[test]
fn operations_keep_every_field() {
    let common = |kind: &str, extra: Value| {
        let mut document = json!({
            "Id": "c4ca4238a0b92382", "ParentId": "p-1", "Name": "a name", "Type": kind, "SubType": "Custom_1",
            "StartTimestamp": 1_794_765_823.745, "EndTimestamp": 1_794_765_824.5, "Status": "SUCCEEDED",
        });
        document.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        document
    };
    let error = json!({"ErrorMessage": "m", "ErrorType": "T", "ErrorData": "d", "StackTrace": ["a", "b"]});
    let cases = [
        common("EXECUTION", json!({"ExecutionDetails": {"InputPayload": "{\"n\":4}"}})),
        common("CONTEXT", json!({"ContextDetails": {"ReplayChildren": true, "Result": "1", "Error": error}})),
        common(
            "STEP",
            json!({"StepDetails": {"Attempt": 3, "NextAttemptTimestamp": 1_794_765_830.0, "Result": "1", "Error": error}}),
        ),
        common("WAIT", json!({"WaitDetails": {"ScheduledEndTimestamp": 1_794_765_830.25}})),
        common("CALLBACK", json!({"CallbackDetails": {"CallbackId": "YQ+/==", "Result": "1", "Error": error}})),
        common("CHAINED_INVOKE", json!({"ChainedInvokeDetails": {"Result": "1", "Error": error}})),
    ];
    for case in &cases {
        round_trip::<Operation<Seconds>>(case);
    }
}

/// DX-042: the values of the three enumerations, and nothing beside them.
#[test]
fn enumerations_are_spelled_as_published() {
    let all = |values: &[&str]| values.iter().map(|value| json!(value)).collect::<Vec<_>>();
    for value in all(&["EXECUTION", "CONTEXT", "STEP", "WAIT", "CALLBACK", "CHAINED_INVOKE"]) {
        round_trip::<OperationType>(&value);
    }
    let statuses = ["STARTED", "PENDING", "READY", "SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT", "STOPPED"];
    for value in all(&statuses) {
        round_trip::<OperationStatus>(&value);
    }
    for value in all(&["START", "SUCCEED", "FAIL", "RETRY", "CANCEL"]) {
        round_trip::<OperationAction>(&value);
    }
    assert!(serde_json::from_value::<OperationStatus>(json!("PAUSED")).is_err(), "an unknown status is an error");
}

/// DX-042: updates with every kind of options.
#[test]
fn updates_keep_every_field() {
    let cases = [
        json!({"Id": "a", "ParentId": "p", "Name": "n", "Type": "STEP", "SubType": "Step", "Action": "RETRY",
            "Error": {"ErrorMessage": "m"}, "StepOptions": {"NextAttemptDelaySeconds": 5}}),
        json!({"Id": "a", "Type": "STEP", "Action": "SUCCEED", "Payload": "\"x\""}),
        json!({"Id": "a", "Type": "CONTEXT", "Action": "SUCCEED", "Payload": "", "ContextOptions": {"ReplayChildren": true}}),
        json!({"Id": "a", "Type": "WAIT", "Action": "START", "WaitOptions": {"WaitSeconds": 60}}),
        json!({"Id": "a", "Type": "CALLBACK", "Action": "START",
            "CallbackOptions": {"TimeoutSeconds": 60, "HeartbeatTimeoutSeconds": 5}}),
        json!({"Id": "a", "Type": "CHAINED_INVOKE", "Action": "START", "Payload": "{}",
            "ChainedInvokeOptions": {"FunctionName": "f:1", "TenantId": "t", "XAmznTraceId": "Root=1"}}),
    ];
    for case in &cases {
        round_trip::<OperationUpdate>(case);
    }
    round_trip::<CheckpointRequest>(&json!({"CheckpointToken": "t", "Updates": cases, "ClientToken": "c"}));
    round_trip::<CheckpointRequest>(&json!({"CheckpointToken": "t"}));
}

/// DX-043: all fields of an error, and none.
#[test]
fn error_objects_keep_every_field() {
    round_trip::<ErrorObject>(&json!({
        "ErrorMessage": "m", "ErrorType": "T", "ErrorData": "d", "StackTrace": ["one", "two"],
    }));
    round_trip::<ErrorObject>(&json!({}));
}

/// DX-042: the envelope counts milliseconds, the calls count seconds, and either is read in either place.
#[test]
fn times_are_read_in_both_spellings() {
    let envelope = json!({
        "DurableExecutionArn": "arn", "CheckpointToken": "t", "UpdatedOperationIds": ["a"],
        "InitialExecutionState": {"NextMarker": "m", "Operations": [
            {"Id": "e", "Type": "EXECUTION", "Status": "STARTED", "StartTimestamp": 1_794_765_823_745_i64},
        ]},
    });
    round_trip::<DurableExecutionInvocationInput>(&envelope);
    let answer = json!({"CheckpointToken": "t", "NewExecutionState": {"Operations": [
        {"Id": "e", "Type": "EXECUTION", "Status": "STARTED", "StartTimestamp": 1_794_765_823.745},
    ]}});
    round_trip::<CheckpointResponse>(&answer);
    let read = |time: Value| {
        let document = json!({"Id": "e", "Type": "WAIT", "Status": "STARTED", "StartTimestamp": time});
        let millis: Operation<Millis> = serde_json::from_value(document.clone()).unwrap();
        let seconds: Operation<Seconds> = serde_json::from_value(document).unwrap();
        assert_eq!(millis.with_time::<servo_model::Timestamp>(), seconds.with_time::<servo_model::Timestamp>());
    };
    read(json!(1_794_765_823_745_i64));
    read(json!(1_794_765_823.745));
}

/// DX-041: the three answers of a handler.
#[test]
fn answers_have_a_status_and_only_what_belongs_to_it() {
    let written = |output| serde_json::to_value::<DurableExecutionInvocationOutput>(output).unwrap();
    let succeeded = DurableExecutionInvocationOutput::succeeded(Some("1".into()));
    assert_eq!(written(succeeded), json!({"Status": "SUCCEEDED", "Result": "1"}));
    let failed = DurableExecutionInvocationOutput::failed(Some(ErrorObject::new("T", "m")));
    assert_eq!(written(failed), json!({"Status": "FAILED", "Error": {"ErrorType": "T", "ErrorMessage": "m"}}));
    assert_eq!(written(DurableExecutionInvocationOutput::pending()), json!({"Status": "PENDING"}));
}

/// Fields that a later service adds are no reason to stop.
#[test]
fn unknown_fields_are_ignored() {
    let document = json!({"Id": "e", "Type": "WAIT", "Status": "STARTED", "StartTimestamp": 1.5, "Mood": "good"});
    assert!(serde_json::from_value::<Operation<Seconds>>(document).is_ok());
}
