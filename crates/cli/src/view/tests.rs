//! What people see, in full: documents in, text out.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use servo_entrypoint::InvocationRecord;
use servo_model::contract::RuntimeSnapshot;
use servo_model::{RunId, RunSnapshot};
use servo_wire::v1::{
    AlertList, AuditList, CreatedKey, DeadLetterList, EventPage, Executed, KeyList, Retired, RunList, RuntimeEventPage,
    SignalAnswer, StartedRun, StoreInfo, VerifyReport,
};

use super::*;

#[track_caller]
fn check<T: View + DeserializeOwned>(document: Value, expected: &str) {
    let value: T = serde_json::from_value(document).unwrap();
    check_view(&value, expected);
}

#[track_caller]
fn check_view(value: &impl View, expected: &str) {
    let text = value.table(&Style::plain("2026-02-11T10:30:00Z"));
    assert_eq!(text, expected, "\n{text}");
}

fn item(run: &str, status: &str, visible: &str) -> Value {
    json!({"runId": run, "tenantId": "default", "projectId": "default", "environmentId": "default", "planId": "etl",
           "planVersion": "1.2", "status": status, "visible": visible, "createdAt": "2026-02-11T10:25:00.000Z"})
}

#[test]
fn a_list_of_runs() {
    let mut failed = item("inv_2", "FAILED", "failed");
    failed["finishedAt"] = json!("2026-02-11T10:26:04.000Z");
    failed["quarantined"] = json!("event 7 cannot be read");
    let document = json!({"items": [item("inv_3", "RUNNING", "suspended"), failed], "nextCursor": "abc"});
    check::<RunList>(
        document.clone(),
        "\
RUN    STATUS           PLAN     CREATED  TOOK   NOTE
inv_3  RUNNING (waits)  etl@1.2  5m ago   -      -
inv_2  FAILED           etl@1.2  5m ago   1m 4s  set aside: event 7 cannot be read
",
    );
    let list: RunList = serde_json::from_value(document).unwrap();
    assert_eq!(list.ids(), ["inv_3", "inv_2"]);
    let mut elsewhere = item("inv_1", "COMPLETED", "succeeded");
    elsewhere["environmentId"] = json!("prod");
    check::<RunList>(
        json!({"items": [elsewhere]}),
        "\
RUN    STATUS     PLAN     WHERE         CREATED
inv_1  COMPLETED  etl@1.2  default/prod  5m ago
",
    );
    check::<RunList>(json!({"items": []}), "RUN  STATUS  PLAN  WHERE  CREATED  TOOK  NOTE\n");
}

fn failed_run() -> Value {
    json!({
        "runId": "inv_2", "status": "FAILED", "lastEventSeq": 12, "failedSteps": 1,
        "engineType": "mock", "engineRunRef": "mock:inv_2",
        "queuedAt": "2026-02-11T10:20:00.000Z", "startedAt": "2026-02-11T10:20:00.500Z",
        "completedAt": "2026-02-11T10:21:00.000Z", "totalDurationMs": 59_500,
        "rootCause": {"stepId": "load", "code": "TIMEOUT", "message": "gave up\nafter 30 s"},
        "artifacts": [{"uri": "s3://bucket/rows.parquet", "kind": "rows", "sizeBytes": 2_048}],
        "steps": [
            {"stepId": "extract", "status": "SUCCESS", "logicalAttemptId": 1, "engineAttemptId": 2,
             "startedAt": "2026-02-11T10:20:01.000Z", "completedAt": "2026-02-11T10:20:02.250Z",
             "artifacts": [{"uri": "s3://bucket/rows.parquet", "kind": "rows"}]},
            {"stepId": "load", "status": "FAILED", "logicalAttemptId": 1, "startedAt": "2026-02-11T10:20:03.000Z",
             "completedAt": "2026-02-11T10:20:33.000Z", "artifacts": [],
             "error": {"code": "TIMEOUT", "message": "gave up", "retryable": true}},
            {"stepId": "load", "status": "FAILED", "logicalAttemptId": 2, "startedAt": "2026-02-11T10:20:34.000Z",
             "completedAt": "2026-02-11T10:20:59.000Z", "artifacts": [],
             "error": {"code": "TIMEOUT", "message": "gave up\nafter 30 s", "retryable": true}},
            {"stepId": "report", "status": "SKIPPED", "logicalAttemptId": 1, "artifacts": [],
             "skipReason": "upstream step load failed"},
        ],
    })
}

/// A run that came out of a file says so.
#[test]
fn a_run_that_was_imported() {
    check::<RunSnapshot>(
        json!({
            "runId": "inv_2", "status": "CANCELLED", "lastEventSeq": 4, "failedSteps": 0, "artifacts": [], "steps": [],
            "importedBy": "key_7", "importedAt": "2026-02-11T10:20:00.000Z",
        }),
        "\
Run         inv_2
Status      CANCELLED
Imported    10m ago, from a file, by key_7
Last event  4
",
    );
}

#[test]
fn a_run_that_failed() {
    check::<RunSnapshot>(
        failed_run(),
        "\
Run         inv_2
Status      FAILED, 1 failed step
Root cause  TIMEOUT in load: gave up after 30 s
Engine      mock, mock:inv_2
Queued      10m ago
Started     10m ago
Ended       9m ago, took 59.5s
Last event  12

STEP     ATTEMPT  STATUS   STARTED  TOOK   DETAIL
extract  1.2      SUCCESS  10m ago  1.3s   1 artifact
load     1        FAILED   10m ago  30.0s  TIMEOUT: gave up
load     2        FAILED   9m ago   25.0s  TIMEOUT: gave up after 30 s
report   1        SKIPPED  -        -      upstream step load failed

ARTIFACT  SIZE     URI
rows      2.0 KiB  s3://bucket/rows.parquet
",
    );
}

#[test]
fn runs_that_wait_say_for_what() {
    let waiting = |cause: &str, extra: Value| {
        let mut run = json!({"runId": "inv_1", "status": "PENDING", "lastEventSeq": 1, "failedSteps": 0, "steps": [],
                             "artifacts": [], "blockedBy": [{"cause": cause}]});
        for (name, value) in extra.as_object().unwrap() {
            run["blockedBy"][0][name] = value.clone();
        }
        let run: RunSnapshot = serde_json::from_value(run).unwrap();
        let text = run.table(&Style::plain("2026-02-11T10:30:00Z"));
        text.lines().find(|line| line.starts_with("Waits for")).unwrap().to_owned()
    };
    assert_eq!(waiting("approval", json!({})), "Waits for   an approval (`servo runs approve`)");
    let soon = json!({"earliestAt": "2026-02-11T10:30:07Z", "stepId": "load"});
    assert_eq!(waiting("retry", soon), "Waits for   a retry of load, until 7s from now");
    assert_eq!(waiting("callback", json!({"name": "approval"})), "Waits for   a callback `approval`");
    let outage = json!({"reason": "it cannot be reached since 10:00: refused", "earliestAt": "2026-02-11T10:30:07Z"});
    let told = "Waits for   its handler (it cannot be reached since 10:00: refused), until 7s from now";
    assert_eq!(waiting("handler", outage), told);
    assert_eq!(waiting("moon phase", json!({})), "Waits for   moon phase");
}

#[test]
fn colour_only_repeats_what_the_words_say() {
    let run: RunSnapshot = serde_json::from_value(failed_run()).unwrap();
    let plain = Style::plain("2026-02-11T10:30:00Z");
    let colored = run.table(&Style { color: true, ..plain.clone() });
    assert!(colored.contains("\x1b[31mFAILED\x1b[0m"));
    let mut stripped = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, run.table(&plain));
}

#[test]
fn what_commands_on_runs_answer() {
    let snapshot = json!({"runId": "inv_1", "status": "PAUSED", "substatus": "DRAINING", "lastEventSeq": 4, "steps": [],
                          "message": "Workflow paused. Waiting for 1 in-flight task to complete.",
                          "artifacts": [], "failedSteps": 0});
    let answer: SignalAnswer = serde_json::from_value(json!({"accepted": true, "snapshot": snapshot})).unwrap();
    check_view(
        &SignalledRuns(vec![answer]),
        "\
RUN    STATUS             NOTE
inv_1  PAUSED (draining)  Workflow paused. Waiting for 1 in-flight task to complete.
",
    );
    let mut started = failed_run();
    started["created"] = json!(false);
    check::<StartedRun>(
        started,
        "\
RUN    STATUS  NOTE
inv_2  FAILED  the same request has started it before
",
    );
    let run = RunId::parse("inv_1").unwrap();
    check_view(&RunRefs { done: "deleted", runs: vec![run.clone()] }, "inv_1  deleted\n");
    assert_eq!(RunRefs::json(&run), r#"{"runId":"inv_1"}"#);
}

#[test]
fn events_are_one_line_each() {
    let event = |seq: u64, kind: &str, body: Value| {
        let mut event = json!({"eventType": kind, "eventId": format!("e{seq}"), "runId": "inv_1", "runSeq": seq,
                               "emittedAt": "2026-02-11T10:30:00.250Z"});
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        event
    };
    let document = json!({"lastEventSeq": 9, "nextAfter": 9, "events": [
        event(1, "RunQueued", json!({"planRef": {"planId": "etl", "planVersion": "1.2"}})),
        event(2, "RunStarted", json!({"engineType": "mock", "planRef": {"planId": "etl", "planVersion": "1.2"}})),
        event(3, "StepFailed", json!({"stepId": "load", "logicalAttemptId": 1, "occurredAt": "2026-02-11T10:29:59.000Z",
                                      "error": {"code": "TIMEOUT", "message": "gave\u{1b}[2J up"}})),
        event(4, "StepRetryScheduled", json!({"stepId": "load", "logicalAttemptId": 2,
                                              "notBefore": "2026-02-11T10:31:00.000Z"})),
        event(5, "StepCompleted", json!({"stepId": "load", "logicalAttemptId": 2, "artifacts": [{}]})),
        event(6, "SignalRejected", json!({"signalType": "RESUME", "code": "ILLEGAL_TRANSITION", "reason": "not paused",
                                          "decidedBy": "dev"})),
        event(7, "RunFailed", json!({"rootCause": {"code": "X", "message": "m", "stepId": "load"}})),
        event(8, "SomethingNewer", json!({})),
    ]});
    check::<EventPage>(
        document.clone(),
        "\
2026-02-11T10:30:00.250Z     1  RunQueued           etl@1.2
2026-02-11T10:30:00.250Z     2  RunStarted          mock
2026-02-11T10:29:59.000Z     3  StepFailed          load  TIMEOUT: gave [2J up
2026-02-11T10:30:00.250Z     4  StepRetryScheduled  load #2  not before 2026-02-11T10:31:00.000Z
2026-02-11T10:30:00.250Z     5  StepCompleted       load #2  1 artifact
2026-02-11T10:30:00.250Z     6  SignalRejected      RESUME, ILLEGAL_TRANSITION, not paused, by dev
2026-02-11T10:30:00.250Z     7  RunFailed           X in load: m
2026-02-11T10:30:00.250Z     8  SomethingNewer
",
    );
    let page: EventPage = serde_json::from_value(document).unwrap();
    assert_eq!(page.ids()[7], "e8");
}

fn snapshot() -> Value {
    json!({"schema_version": 1,
           "authority": {"owner": "server-1", "lease_id": "l-1", "leased_until": "2026-02-11T10:30:12Z", "stale": false,
                         "stale_reason": null},
           "backlog": {"pending": 1, "notified": 2, "delivered": 3, "failed": 0},
           "replay": {"cursor": "cursor-7", "pending_events": 5, "last_replayed_event_id": null,
                      "deferred_leader_notification": true},
           "readiness": {"ready": true, "reasons": []}})
}

#[test]
fn the_runtime_snapshot() {
    let expected = "\
Ready         yes
Authority     server-1
Lease         l-1
Leased until  in 12s
Dispatches    1 pending, 2 notified, 3 delivered, 0 failed
Replay        cursor-7, 5 events pending, waits for an authority
";
    check::<RuntimeSnapshot>(snapshot(), expected);
    check::<Executed>(
        json!({"events": [{"event": "SnapshotCaptured"}], "snapshot": snapshot()}),
        &format!("SnapshotCaptured\n\n{expected}"),
    );
    let mut nobody = snapshot();
    nobody["authority"] =
        json!({"owner": null, "lease_id": null, "leased_until": null, "stale": false, "stale_reason": null});
    nobody["replay"] = json!({"cursor": null, "pending_events": 0, "last_replayed_event_id": null,
                              "deferred_leader_notification": false});
    nobody["readiness"] = json!({"ready": false, "reasons": ["no authority is held", "the store is closed"]});
    check::<RuntimeSnapshot>(
        nobody,
        "\
Ready       no: no authority is held; the store is closed
Authority   nobody
Dispatches  1 pending, 2 notified, 3 delivered, 0 failed
Replay      none
",
    );
}

#[test]
fn runtime_events() {
    let events = json!([{"event": "DispatchQueued", "request_id": "r1", "target": "worker-a"},
                        {"event": "run.blocked_on_system", "owner": "s", "reason": "x"}]);
    check::<RuntimeEventPage>(
        json!({"events": events, "next": "cursor-9"}),
        "\
DispatchQueued        request_id=r1 target=worker-a
run.blocked_on_system owner=s reason=x
next: --after cursor-9
",
    );
}

#[test]
fn the_store() {
    check::<StoreInfo>(
        json!({"kind": "sqlite", "engineVersion": "3.51.3", "schemaVersion": 1, "singleProcess": true,
               "sizeBytes": 1_572_864, "settings": {"journal_mode": "wal", "synchronous": "FULL"}}),
        "\
Kind          sqlite 3.51.3
Schema        1
Size          1.5 MiB
Processes     one at a time
journal_mode  wal
synchronous   FULL
",
    );
    check::<VerifyReport>(
        json!({"runs": 3, "events": 40, "findings": []}),
        "3 runs with 40 events: everything agrees\n",
    );
    check::<VerifyReport>(
        json!({"runs": 3, "events": 40, "findings": [], "withoutChecksum": 7}),
        "3 runs with 40 events (7 without a checksum): everything agrees\n",
    );
    check::<VerifyReport>(
        json!({"runs": 3, "events": 40, "findings": [{"runId": "inv_1", "problem": "the row says RUNNING"}],
               "integrity": ["page 7 is damaged"]}),
        "\
WHERE     PROBLEM
database  page 7 is damaged
inv_1     the row says RUNNING

3 runs with 40 events: 2 problems
",
    );
    check::<Retired>(json!({"runsRemoved": 1}), "1 run removed\n");
    check_view(&BackupDone { file: "servo.backup".into(), size_bytes: 4_096 }, "servo.backup written, 4.0 KiB\n");
    check_view(&RestoreDone { data_dir: "d".into(), runs: 3 }, "3 runs restored to d\n");
}

#[test]
fn alerts_and_dead_letters() {
    check::<AlertList>(
        json!({"items": [{"code": "PROJECTOR_LAG_HIGH", "severity": "P2", "subject": "projector", "tenantId": "default",
                          "message": "6 s behind", "firstAt": "2026-02-11T09:30:00Z", "lastAt": "2026-02-11T10:29:00Z",
                          "count": 4}]}),
        "\
SEVERITY  CODE                ABOUT      TIMES  FIRST   LAST    MESSAGE
P2        PROJECTOR_LAG_HIGH  projector  4      1h ago  1m ago  6 s behind
",
    );
    check::<DeadLetterList>(
        json!({"items": [{"position": "cursor-7", "runId": "inv_1", "runSeq": 3, "tenantId": "default", "attempts": 10,
                          "lastError": "no route", "buriedAt": "2026-02-11T10:29:00Z"}]}),
        "\
POSITION  RUN    SEQ  ATTEMPTS  GIVEN UP  ERROR
cursor-7  inv_1  3    10        1m ago    no route
",
    );
}

#[test]
fn a_diagnosis() {
    let diagnosis = Diagnosis {
        checks: vec![
            Check::ok("server", "http://127.0.0.1:8700 answers, version 0.1.0"),
            Check::warn("alerts", "2 raised", "`servo alerts` shows them"),
            Check::fail("disk", "full", "free some space"),
        ],
    };
    check_view(
        &diagnosis,
        "\
ok    server  http://127.0.0.1:8700 answers, version 0.1.0
warn  alerts  2 raised
              next: `servo alerts` shows them
fail  disk    full
              next: free some space
",
    );
    assert_eq!(diagnosis.exit_code(), 1);
    assert_eq!(Diagnosis::default().exit_code(), 0);
}

#[test]
fn versions() {
    let version = |text: &str| servo_wire::v1::Version { name: "servo".to_owned(), version: text.to_owned() };
    check_view(&VersionReport { client: version("0.1.0"), server: None }, "servo 0.1.0\n");
    let both = VersionReport { client: version("0.1.0"), server: Some(version("0.2.0")) };
    check_view(&both, "servo 0.1.0\nserver: servo 0.2.0\n");
    let json = serde_json::to_value(&both).unwrap();
    assert_eq!(json, json!({"name": "servo", "version": "0.1.0", "server": {"name": "servo", "version": "0.2.0"}}));
}

fn key() -> Value {
    json!({"id": "key_1", "tenantId": "acme", "name": "ci", "roles": ["viewer", "operator"], "kind": "api",
           "status": "active", "prefix": "svo_abcd", "createdAt": "2026-02-11T10:25:00.000Z", "createdBy": "key_0"})
}

#[test]
fn keys_and_the_one_answer_with_a_secret() {
    let mut old = key();
    old["id"] = json!("key_0");
    old["status"] = json!("revoked");
    old["lastUsedAt"] = json!("2026-02-11T10:28:00.000Z");
    let list: KeyList = serde_json::from_value(json!({"items": [key(), old]})).unwrap();
    let text = list.table(&Style::plain("2026-02-11T10:30:00Z"));
    assert!(text.starts_with("KEY    NAME  TENANT  ROLES"), "{text}");
    assert!(text.contains("viewer, operator") && text.contains("revoked") && text.contains("2m ago"), "{text}");
    assert_eq!(list.ids(), ["key_1", "key_0"]);
    let mut made = key();
    made["secret"] = json!("svo_abcdsecret");
    let created: CreatedKey = serde_json::from_value(made.clone()).unwrap();
    let text = created.table(&Style::plain("2026-02-11T10:30:00Z"));
    assert!(text.ends_with("\nSERVO_TOKEN=svo_abcdsecret\n"), "{text}");
    assert_eq!(created.ids(), ["key_1"], "what is piped on is not the secret");
    assert!(!format!("{created:?}").contains("secret"), "nor is what is logged");
    made["kind"] = json!("access");
    let created: CreatedKey = serde_json::from_value(made).unwrap();
    let text = created.table(&Style::plain("2026-02-11T10:30:00Z"));
    assert!(text.ends_with("\nAWS_ACCESS_KEY_ID=svo_abcd\nAWS_SECRET_ACCESS_KEY=svo_abcdsecret\n"), "{text}");
}

#[test]
fn audit_entries() {
    let entry = json!({"id": "0194f3c2-0000-7000-8000-000000000000", "at": "2026-02-11T10:25:00.000Z", "tenantId": "acme",
        "actor": "key_1", "roles": ["admin"], "action": "key.create", "objectKind": "key", "objectId": "key_2",
        "outcome": "denied", "correlationId": "c", "reason": "FORBIDDEN", "source": "10.0.0.1", "count": 3});
    let list: AuditList = serde_json::from_value(json!({"items": [entry]})).unwrap();
    let text = list.table(&Style::plain("2026-02-11T10:30:00Z"));
    for word in ["key_1", "key.create", "key_2", "denied", "FORBIDDEN", "10.0.0.1", "3"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(list.ids(), ["0194f3c2-0000-7000-8000-000000000000"]);
}

fn invocation(id: &str, status: &str) -> Value {
    json!({
        "id": id, "invocation_id": id, "entrypoint_version": "1.0.0", "tenant_id": "t", "status": status, "mode": "async",
        "entrypoint_id": "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.tax.v1~",
        "params": {"amount": 100}, "result": null, "error": null,
        "timestamps": {"created_at": "2026-02-11T10:25:00.000Z", "started_at": null, "suspended_at": null, "finished_at": null},
        "observability": {"correlation_id": "c-1", "trace_id": null, "span_id": null, "metrics": {"memory_limit_mb": 0}},
    })
}

#[test]
fn invocations_and_their_timelines() {
    let mut failed = invocation("inv_2", "failed");
    failed["timestamps"]["finished_at"] = json!("2026-02-11T10:26:04.000Z");
    failed["error"] =
        json!({"error_type_id": "gts.e.v1~", "message": "no\u{1b}[2J", "category": "retryable", "details": {}});
    let info = json!({"next_cursor": null, "prev_cursor": null, "has_more": false});
    check::<servo_entrypoint::Page<InvocationRecord>>(
        json!({"items": [invocation("inv_3", "running"), failed], "page_info": info}),
        "\
INVOCATION  STATUS   ENTRYPOINT         CREATED  TOOK   ERROR
inv_3       running  vendor.app.tax.v1  5m ago   -      -
inv_2       failed   vendor.app.tax.v1  5m ago   1m 4s  no [2J
",
    );
    let result = json!({"record": invocation("dryrun_1", "queued"), "dry_run": true, "cached": false});
    let result: servo_entrypoint::InvocationResult = serde_json::from_value(result).unwrap();
    let text = result.table(&Style::plain("2026-02-11T10:30:00Z"));
    assert!(text.contains("Params       {\"amount\":100}\n") && text.ends_with("nothing was started.\n"), "{text}");
    check::<servo_entrypoint::Page<servo_entrypoint::InvocationTimelineEvent>>(
        json!({"items": [
            {"at": "2026-02-11T10:25:00.000Z", "event_type": "started", "status": "running"},
            {"at": "2026-02-11T10:25:01.000Z", "event_type": "step_failed", "status": "running", "step_name": "charge", "message": "no"},
        ], "page_info": info}),
        "\
2026-02-11T10:25:00.000Z  running  started
2026-02-11T10:25:01.000Z  running  step_failed  charge  no
",
    );
}

#[test]
fn operations_are_listed_with_what_failed_and_what_is_open() {
    let run = json!({
        "runId": "inv_1", "status": "RUNNING", "lastEventSeq": 9, "failedSteps": 0, "steps": [], "artifacts": [],
        "blockedBy": [{"cause": "signal", "name": "approval", "since": "2026-02-11T10:27:00Z", "earliestAt": "2026-02-13T10:29:59Z"}],
        "operationsTotal": 7,
        "operations": [
            {"operationId": "a", "kind": "step", "name": "charge", "status": "SUCCEEDED", "attempts": 2,
             "startedAt": "2026-02-11T10:25:00Z", "endedAt": "2026-02-11T10:25:04Z"},
            {"operationId": "b", "kind": "map", "name": "lines", "status": "STARTED", "startedAt": "2026-02-11T10:26:00Z"},
            {"operationId": "c", "kind": "step", "name": "pick", "status": "FAILED", "attempts": 3, "parentId": "b",
             "startedAt": "2026-02-11T10:26:00Z", "endedAt": "2026-02-11T10:26:01Z",
             "error": {"code": "Empty", "message": "no\nstock"}},
            {"operationId": "d", "kind": "signal", "name": "approval", "status": "STARTED",
             "startedAt": "2026-02-11T10:27:00Z", "dueAt": "2026-02-13T10:29:59Z"},
        ],
    });
    check::<RunSnapshot>(
        run,
        "\
Run         inv_1
Status      RUNNING
Waits for   a signal `approval`, since 3m ago, until 2d from now
Last event  9

OPERATION  KIND    STATUS     ATTEMPTS  STARTED  TOOK  DETAIL
charge     step    succeeded  2         5m ago   4.0s  -
lines      map     started    -         4m ago   -     -
  pick     step    failed     3         4m ago   1.0s  Empty: no stock
approval   signal  started    -         3m ago   -     due in 2d
and 3 more, all of which succeeded or are older; `servo runs events` has every one
",
    );
}

#[test]
fn what_could_not_be_undone_comes_first() {
    let record = json!({
        "invocation_id": "inv_1", "entrypoint_id": "gts.a.b.c.v1~", "entrypoint_version": "1.0.0", "tenant_id": "t",
        "status": "dead_lettered", "mode": "async", "params": {}, "result": null,
        "error": {"error_type_id": "gts.e.e.e.v1~", "message": "fail: warehouse on fire", "category": "non_retryable"},
        "timestamps": {"created_at": "2026-02-11T10:20:00Z", "started_at": "2026-02-11T10:22:39Z", "suspended_at": null,
                       "finished_at": "2026-02-11T10:22:40Z"},
        "observability": {"correlation_id": "c", "trace_id": null, "span_id": null,
                          "metrics": {"memory_limit_mb": 64, "duration_ms": 3}},
        "compensation": {"trigger": "failure", "started_at": "2026-02-11T10:22:40Z", "has_ended": true,
                         "invocation_id": "inv_2",
                         "error": {"error_type_id": "gts.e.e.e.v1~", "message": "ledger is closed", "category": "non_retryable"}},
    });
    let record: InvocationRecord = serde_json::from_value(record).unwrap();
    let why = reason(&record).unwrap();
    assert_eq!(why, "could not be undone: ledger is closed (it had failed: warehouse on fire)");
    let text = record.table(&Style::plain("2026-02-11T10:30:00Z"));
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("could not be undone: ledger is closed (inv_2)") < at("warehouse on fire"), "{text}");
    assert!(text.contains("2m 40s since it was created; its last round 3ms"), "{text}");
}

/// Only the event with which an operation begins says what it is called.
#[test]
fn events_of_operations_have_names() {
    let event = |seq: u64, kind: &str, extra: Value| {
        let mut event = json!({"eventType": kind, "eventId": format!("e{seq}"), "runId": "inv_1", "runSeq": seq,
                               "emittedAt": "2026-02-11T10:25:00.000Z", "operationId": "a"});
        for (name, value) in extra.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    };
    let page = json!({"lastEventSeq": 4, "nextAfter": 4, "events": [
        event(2, "OperationUpdated", json!({"type": "STEP", "action": "START", "name": "charge", "subType": "Step"})),
        event(3, "OperationUpdated", json!({"type": "STEP", "action": "RETRY"})),
        event(4, "OperationResolved", json!({"status": "READY"})),
    ]});
    check::<EventPage>(
        page,
        "\
2026-02-11T10:25:00.000Z     2  OperationUpdated    charge  step start
2026-02-11T10:25:00.000Z     3  OperationUpdated    charge  step retry
2026-02-11T10:25:00.000Z     4  OperationResolved   charge  ready
",
    );
}
