//! Documents are read strictly, and what is wrong with one is said in words of JSON.

use serde::de::DeserializeOwned;
use servo_wire::document::{self, Unfit};
use servo_wire::lambda::{CheckpointRequest, DurableExecutionInvocationOutput, ErrorObject};

fn refused<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    match document::read::<T>(text) {
        Err(unfit @ Unfit::Wrong { .. }) => unfit.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

/// DX-042: an array is never taken for an object, at any depth.
#[test]
fn objects_are_objects() {
    for text in ["[]", r#"["boom","Kind",null,null]"#, "7", "null", r#""text""#] {
        assert!(refused::<ErrorObject>(text).ends_with("where an object belongs"), "{text}");
    }
    assert_eq!(
        refused::<CheckpointRequest>(r#"["t",[["s1",null,"nm","STEP",null,"START"]],null]"#),
        "an array where an object belongs"
    );
    for (text, field) in [
        (r#"{"CheckpointToken":"t","Updates":[["s1",null,"nm","STEP",null,"START"]]}"#, "Updates[0]"),
        (
            r#"{"CheckpointToken":"t","Updates":[{"Id":"a","Type":"STEP","Action":"FAIL","Error":["x"]}]}"#,
            "Updates[0].Error",
        ),
        (
            r#"{"CheckpointToken":"t","Updates":[{"Id":"a","Type":"WAIT","Action":"START","WaitOptions":[5]}]}"#,
            "Updates[0].WaitOptions",
        ),
    ] {
        assert_eq!(refused::<CheckpointRequest>(text), format!("{field}: an array where an object belongs"));
    }
    assert_eq!(
        refused::<DurableExecutionInvocationOutput>(r#"["SUCCEEDED","\"x\"",null]"#),
        "an array where an object belongs"
    );
}

#[test]
fn what_is_wrong_is_told_by_its_field() {
    let update = |fields: &str| {
        format!(r#"{{"CheckpointToken":"t","Updates":[{{"Id":"a","Type":"WAIT","Action":"START"{fields}}}]}}"#)
    };
    let cases = [
        ("{}".to_owned(), "CheckpointToken: is missing"),
        (r#"{"CheckpointToken":5}"#.to_owned(), "CheckpointToken: integer `5` where a string belongs"),
        (r#"{"CheckpointToken":"t","Updates":{}}"#.to_owned(), "Updates: an object where an array belongs"),
        (
            r#"{"CheckpointToken":"t","Updates":[{"Type":"STEP","Action":"START"}]}"#.to_owned(),
            "Updates[0].Id: is missing",
        ),
        (
            r#"{"CheckpointToken":"t","Updates":[{"Id":"a","Type":"STEP","Action":"BEGIN"}]}"#.to_owned(),
            "Updates[0].Action: `BEGIN` is not known, expected one of `START`, `SUCCEED`, `FAIL`, `RETRY`, `CANCEL`",
        ),
        (
            r#"{"CheckpointToken":"t","Updates":[{"Id":"a","Type":5,"Action":"START"}]}"#.to_owned(),
            "Updates[0].Type: integer `5` where a string belongs",
        ),
        (
            update(r#","WaitOptions":{"WaitSeconds":-1}"#),
            "Updates[0].WaitOptions.WaitSeconds: integer `-1` where a whole number from 0 belongs",
        ),
        (
            update(r#","WaitOptions":{"WaitSeconds":"5"}"#),
            "Updates[0].WaitOptions.WaitSeconds: string \"5\" where a whole number from 0 belongs",
        ),
        (update(r#","Id":"b""#), "Updates[0].Id: is given twice"),
    ];
    for (text, expected) in cases {
        assert_eq!(refused::<CheckpointRequest>(&text), expected, "{text}");
    }
    let long = format!(r#"{{"Error":"{}"}}"#, "x".repeat(100_000));
    assert!(refused::<DurableExecutionInvocationOutput>(&long).len() < 1_000);
}

#[test]
fn what_is_no_json_is_told_apart() {
    for text in ["", "{", "nonsense", "{} {}", r#"{"ErrorType":}"#] {
        assert!(matches!(document::read::<ErrorObject>(text), Err(Unfit::Malformed(_))), "{text}");
    }
}

/// What fits is read as before, unknown fields, absent and null ones among it.
#[test]
fn what_fits_is_read() {
    let text = r#"{"CheckpointToken":"t","Colour":[{}],"ClientToken":null,"Updates":[
        {"Id":"a","Type":"STEP","Action":"FAIL","Error":{"ErrorMessage":"m","StackTrace":["x"]},"Payload":null},
        {"Id":"b","Type":"CHAINED_INVOKE","Action":"START","ChainedInvokeOptions":{"FunctionName":"f","XAmznTraceId":"t"}}]}"#;
    let read: CheckpointRequest = document::read(text).unwrap();
    assert_eq!(read, serde_json::from_str(text).unwrap());
    assert_eq!(read.updates.unwrap().len(), 2);
}
