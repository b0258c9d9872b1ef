//! The runtime contract through the command line, straight on a data folder.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::process::binary;

fn servo(folder: &Path, arguments: &[&str]) -> Output {
    binary().args(arguments).arg("--data-dir").arg(folder).output().expect("servo runs")
}

fn exec(folder: &Path, at: &str, command: &str) -> Output {
    servo(folder, &["runtime", "exec", command, "--at", at, "--json"])
}

fn snapshot(folder: &Path, at: &str) -> Value {
    let output = servo(folder, &["runtime", "snapshot", "-o", "json", "--at", at]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// RT-010, RT-014: with the clock at the example's time its snapshot comes out exactly; an hour later it is stale.
#[test]
fn the_published_example_comes_out_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = "2026-03-19T01:00:00Z";
    for command in [
        r#"{"command":"AcquireAuthority","owner":"w1","lease_id":"l1","leased_until":"2026-03-19T02:00:00Z"}"#,
        r#"{"command":"QueueDispatch","request_id":"req-1","target":"worker-2"}"#,
        r#"{"command":"QueueDispatch","request_id":"req-1","target":"worker-2"}"#,
    ] {
        let output = exec(folder.path(), at, command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let example = include_str!("../../../../spec/vectors/runtime_snapshot.json");
    let expected: Value = serde_json::from_str(example).expect("JSON");
    assert_eq!(snapshot(folder.path(), at), expected);
    let later = snapshot(folder.path(), "2026-03-19T02:00:00Z");
    assert_eq!(later["authority"]["stale"], true);
    assert_eq!(later["readiness"]["ready"], false);
}

/// RT-002, RT-006, RT-017: refusals name the reason and change nothing, and every process sees what the one before left.
#[test]
fn refused_commands_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = "2026-03-19T01:00:00Z";
    let good = [
        r#"{"command":"AcquireAuthority","owner":"w1","lease_id":"l1","leased_until":"2026-03-19T02:00:00Z"}"#,
        r#"{"command":"QueueDispatch","request_id":"req-1","target":"worker-2"}"#,
    ];
    for command in good {
        assert!(exec(folder.path(), at, command).status.success());
    }
    let before = snapshot(folder.path(), at);
    for (command, reason) in [
        (
            r#"{"command":"AcquireAuthority","owner":"w2","lease_id":"l2","leased_until":"2026-03-19T03:00:00Z"}"#,
            "w1 holds",
        ),
        (
            r#"{"command":"RenewAuthority","owner":"w2","lease_id":"l2","leased_until":"2026-03-19T03:00:00Z"}"#,
            "w2 does not hold",
        ),
        (r#"{"command":"MarkDelivered","request_id":"req-1"}"#, "pending"),
        (r#"{"command":"MarkNotified","request_id":"req-9","channel":"c"}"#, "req-9"),
    ] {
        let output = exec(folder.path(), at, command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(reason), "{command}: {said}");
    }
    for (command, field) in [
        (r#"{"command":"Explode"}"#, "command"),
        (r#"{"command":"MarkDelivered","request_id":7}"#, "request_id"),
        (r#"{"command":"RequestReplay","cursor":"yesterday"}"#, "cursor"),
        ("not json", "JSON"),
    ] {
        let output = exec(folder.path(), at, command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains(field), "{command}: {said}");
    }
    assert_eq!(snapshot(folder.path(), at), before);
}

/// RT-019
#[test]
fn the_schema_needs_no_server() {
    let output = binary().args(["runtime", "schema"]).output().expect("servo runs");
    assert!(output.status.success());
    let schema: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(schema["$defs"]["command"].is_object());
}
