//! The runtime contract: JSON to the letter, errors that name the field, and the states of a dispatch.

use proptest::prelude::*;
use serde_json::{Value, json};
use servo_model::contract::{
    COMMANDS, DispatchState, EVENTS, RuntimeCommand, RuntimeEvent, RuntimeSnapshot, json_schema,
};

use crate::schemas::validator;

const COMMAND_EXAMPLES: &str = r#"{"command":"AcquireAuthority","owner":"w1","lease_id":"l1","leased_until":"2026-03-19T02:00:00Z"}
{"command":"RenewAuthority","owner":"w1","lease_id":"l2","leased_until":"2026-03-19T03:00:00Z"}
{"command":"QueueDispatch","request_id":"req-1","target":"worker-2"}
{"command":"MarkNotified","request_id":"req-1","channel":"tmux"}
{"command":"MarkDelivered","request_id":"req-1"}
{"command":"MarkFailed","request_id":"req-1","reason":"timeout"}
{"command":"RequestReplay","cursor":"cursor-1"}
{"command":"CaptureSnapshot"}"#;

const EVENT_EXAMPLES: &str = r#"{"event":"AuthorityAcquired","owner":"w1","lease_id":"l1","leased_until":"2026-03-19T02:00:00Z"}
{"event":"AuthorityRenewed","owner":"w1","lease_id":"l2","leased_until":"2026-03-19T03:00:00Z"}
{"event":"DispatchQueued","request_id":"req-1","target":"worker-2"}
{"event":"DispatchNotified","request_id":"req-1","channel":"tmux"}
{"event":"DispatchDelivered","request_id":"req-1"}
{"event":"DispatchFailed","request_id":"req-1","reason":"timeout"}
{"event":"ReplayRequested","cursor":"cursor-1"}
{"event":"SnapshotCaptured"}
{"event":"run.heartbeat","owner":"leader","phase":"execute"}
{"event":"run.blocked_on_user","owner":"leader","reason":"needs-user-clarification"}
{"event":"run.blocked_on_system","owner":"leader","reason":"sandbox-denied"}
{"event":"worker.assigned","worker":"worker-2","task_id":"17"}
{"event":"worker.stalled","worker":"worker-2","reason":"stdout-stale"}
{"event":"worker.recovered","worker":"worker-2","recovery":"relaunch"}"#;

const SNAPSHOT_EXAMPLE: &str = include_str!("../../../../spec/vectors/runtime_snapshot.json");

/// RT-001: the eight examples, as values and as text.
#[test]
fn the_command_examples_round_trip() {
    let names: Vec<_> = COMMAND_EXAMPLES.lines().map(|line| RuntimeCommand::parse(line).unwrap()).collect();
    assert_eq!(names.len(), 8);
    for (line, (name, fields)) in COMMAND_EXAMPLES.lines().zip(COMMANDS) {
        let command = RuntimeCommand::parse(line).unwrap();
        assert_eq!(serde_json::to_string(&command).unwrap(), line);
        assert_eq!(serde_json::from_str::<RuntimeCommand>(line).unwrap(), command);
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&command).unwrap(), value);
        assert_eq!(value["command"], name);
        assert_eq!(value.as_object().unwrap().len(), fields.len() + 1);
    }
}

/// RT-009: the fourteen examples, as values and as text.
#[test]
fn the_event_examples_round_trip() {
    assert_eq!(EVENT_EXAMPLES.lines().count(), 14);
    for (line, (name, fields)) in EVENT_EXAMPLES.lines().zip(EVENTS) {
        let event: RuntimeEvent = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), value);
        assert_eq!(event.name(), name);
        assert!(RuntimeEvent::is_name(name));
        assert_eq!(value.as_object().unwrap().len(), fields.len() + 1);
    }
    assert!(!RuntimeEvent::is_name("run.paused"));
}

/// RT-010: names, order and nulls as in the example.
#[test]
fn the_snapshot_example_is_equal() {
    let snapshot: RuntimeSnapshot = serde_json::from_str(SNAPSHOT_EXAMPLE).unwrap();
    assert_eq!(serde_json::to_string_pretty(&snapshot).unwrap(), SNAPSHOT_EXAMPLE);
    assert_eq!((snapshot.schema_version, snapshot.backlog.pending, snapshot.readiness.ready), (1, 1, true));
}

/// RT-018: every kind of mistake, in every command and field, is answered with the field.
#[test]
fn mistakes_in_commands_name_the_field() {
    let parse = |value: &Value| RuntimeCommand::parse(&value.to_string());
    for (line, (name, fields)) in COMMAND_EXAMPLES.lines().zip(COMMANDS) {
        let good: Value = serde_json::from_str(line).unwrap();
        for field in fields {
            for wrong in [
                json!(5),
                json!(null),
                json!([]),
                json!({}),
                json!(true),
                json!(""),
                json!("a\nb"),
                json!("x".repeat(8_193)),
            ] {
                let mut command = good.clone();
                command[*field] = wrong.clone();
                assert_eq!(parse(&command).unwrap_err().field, *field, "{name} {field} = {wrong}");
            }
            let mut command = good.clone();
            command.as_object_mut().unwrap().remove(*field);
            let error = parse(&command).unwrap_err();
            assert_eq!((error.field.as_str(), error.reason.as_str()), (*field, "is missing"));
        }
        let mut command = good.clone();
        command["epoch"] = json!(3);
        assert_eq!(parse(&command).unwrap_err().field, "epoch");
    }
    for (wrong, field, reason) in [
        (r#"{"command":"Explode"}"#, "command", "AcquireAuthority, RenewAuthority"),
        (r#"{"command":"captureSnapshot"}"#, "command", "no such command"),
        (r#"{"command":7}"#, "command", "is a string"),
        (r#"{"owner":"w1"}"#, "command", "is missing"),
        (
            r#"{"command":"AcquireAuthority","owner":"w","lease_id":"l","leased_until":"tomorrow"}"#,
            "leased_until",
            "RFC 3339",
        ),
        ("[]", "", "not a JSON object"),
        ("", "", "not a JSON object"),
        (r#"{"command":"CaptureSnapshot""#, "", "line 1 column"),
        (r#"{"command":"CaptureSnapshot"} x"#, "", "trailing characters"),
    ] {
        let error = RuntimeCommand::parse(wrong).unwrap_err();
        assert_eq!(error.field, field, "{wrong}");
        assert!(error.reason.contains(reason), "{wrong}: {error}");
    }
}

/// RT-018, RT-019: the printed schema and the parser agree on commands; RT-009, RT-010: the other examples validate too.
#[test]
fn the_schema_says_what_the_parser_does() {
    let schema = json_schema();
    assert!(jsonschema::meta::is_valid(&schema));
    let whole = validator(&schema);
    let part = |name: &str| {
        validator(&json!({"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": format!("#/$defs/{name}")}))
    };
    let (commands, events, snapshots) = (part("command"), part("event"), part("snapshot"));
    for line in COMMAND_EXAMPLES.lines().chain(EVENT_EXAMPLES.lines()).chain([SNAPSHOT_EXAMPLE]) {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(whole.is_valid(&value), "{line}");
        assert_eq!(commands.is_valid(&value), value.get("command").is_some(), "{line}");
        assert_eq!(events.is_valid(&value), value.get("event").is_some(), "{line}");
        assert_eq!(snapshots.is_valid(&value), value.get("backlog").is_some(), "{line}");
    }
    let long = |length: usize| [json!("x".repeat(length)), json!("ä".repeat(length))];
    let mut values = vec![
        json!(null),
        json!(5),
        json!([]),
        json!({}),
        json!(""),
        json!(" "),
        json!("a\u{0}"),
        json!("a\u{85}"),
        json!("a\u{7f}b"),
        json!("ä"),
        json!("2026-03-19T02:00:00Z"),
        json!("2026-03-19T02:00:00+02:00"),
        json!("2026-03-19"),
        json!("2026-02-30T00:00:00Z"),
        json!("1969-12-31T23:59:59Z"),
        json!("CaptureSnapshot"),
        json!("MarkDelivered"),
    ];
    values.extend([512, 513, 8_192, 8_193].into_iter().flat_map(long));
    for line in COMMAND_EXAMPLES.lines() {
        let good: Value = serde_json::from_str(line).unwrap();
        let names: Vec<String> = good.as_object().unwrap().keys().cloned().chain(["extra".to_owned()]).collect();
        for name in &names {
            let mut without = good.clone();
            without.as_object_mut().unwrap().remove(name);
            let changed = values.iter().map(|value| {
                let mut command = good.clone();
                command[name] = value.clone();
                command
            });
            for command in changed.chain([without]) {
                let code = RuntimeCommand::parse(&command.to_string());
                assert_eq!(commands.is_valid(&command), code.is_ok(), "{command}: {code:?}");
            }
        }
    }
    // An event with a field that a later version adds is still that event.
    let event = json!({"event": "run.heartbeat", "owner": "n1", "phase": "schedule", "epoch": 3});
    assert!(events.is_valid(&event) && serde_json::from_value::<RuntimeEvent>(event).is_ok());
    let mut snapshot: Value = serde_json::from_str(SNAPSHOT_EXAMPLE).unwrap();
    snapshot["authority"]["epoch"] = json!(3);
    assert!(!snapshots.is_valid(&snapshot), "exactly the fields of the contract");
}

/// RT-006: pending, then notified, then delivered or failed: the whole table.
#[test]
fn a_dispatch_moves_one_way() {
    let moves: Vec<_> = DispatchState::ALL
        .into_iter()
        .flat_map(|from| {
            DispatchState::ALL
                .into_iter()
                .filter(move |to| from.can_become(*to))
                .map(move |to| (from.as_str(), to.as_str()))
        })
        .collect();
    assert_eq!(moves, [("pending", "notified"), ("notified", "delivered"), ("notified", "failed")]);
    for state in DispatchState::ALL {
        assert_eq!(DispatchState::parse(state.as_str()), Some(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    assert_eq!(DispatchState::parse("lost"), None);
}

proptest! {
    /// RT-006: after any wishes, the moves that were allowed form one of the four legal lives, and an end stays an end.
    #[test]
    fn a_dispatch_lives_one_of_four_lives(wishes in prop::collection::vec(prop::sample::select(DispatchState::ALL.to_vec()), 0..20)) {
        let mut life = vec![DispatchState::Pending];
        for wish in wishes {
            let now = life[life.len() - 1];
            if now.can_become(wish) {
                life.push(wish);
            }
        }
        let life: Vec<_> = life.into_iter().map(DispatchState::as_str).collect();
        let legal: [&[&str]; 4] =
            [&["pending"], &["pending", "notified"], &["pending", "notified", "delivered"], &["pending", "notified", "failed"]];
        prop_assert!(legal.contains(&life.as_slice()), "{life:?}");
    }

    /// Any text is answered, never with a panic, and what is accepted is written as it was read.
    #[test]
    fn commands_from_anywhere(text in "\\PC{0,40}", owner in "\\PC{1,20}", name in 0_usize..8) {
        let _ = RuntimeCommand::parse(&text);
        let (name, fields) = COMMANDS[name];
        let mut command = json!({"command": name});
        for field in fields {
            command[*field] = json!(if *field == "leased_until" { "2026-03-19T02:00:00Z" } else { owner.as_str() });
        }
        let parsed = RuntimeCommand::parse(&command.to_string()).unwrap();
        prop_assert_eq!(serde_json::to_value(&parsed).unwrap(), command);
    }
}
