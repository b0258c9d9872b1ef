//! The documents of `servo_wire::v1` and of the runtime contract.

use serde_json::{Map, Value, json};
use servo_model::alert::AlertCode;
use servo_model::contract::json_schema;
use servo_model::function::{EXECUTION_SECONDS_MAX, INVOCATION_SECONDS_MAX};
use servo_model::invocation::InvocationStatus;
use servo_model::{AuditOutcome, Permission, Role, RunStatus, StepStatus, codes};

use crate::openapi::schemas::reference;
use crate::routes::keys::LIFE_SECONDS_MAX;

type Members<'a> = &'a [(&'a str, Value)];

fn text() -> Value {
    json!({"type": "string"})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn digest() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

fn word(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

fn told(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// A member of a request that may also be there without a value.
fn or_null(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"], "null"]);
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    schema
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// Of members that are always there, and of some that need not be.
fn object(required: Members<'_>, optional: Members<'_>) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "required": names, "properties": properties})
}

/// The same for what callers send: a member that is not known is refused.
fn request(required: Members<'_>, optional: Members<'_>) -> Value {
    let mut schema = object(required, optional);
    schema["additionalProperties"] = false.into();
    schema
}

pub(in crate::openapi) fn all() -> Vec<(&'static str, Value)> {
    let mut all = runs();
    all.extend(functions());
    all.extend(identity());
    all.extend(platform());
    all.push(("CodedProblem", problem()));
    all
}

fn runs() -> Vec<(&'static str, Value)> {
    let statuses = word(&RunStatus::ALL.map(RunStatus::as_str));
    let visible = word(&InvocationStatus::ALL.map(InvocationStatus::as_str));
    let steps = word(&StepStatus::ALL.map(StepStatus::as_str));
    let signals = ["PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "SKIP_STEP", "APPROVE", "RETRY_RUN"];
    let artifact = object(
        &[("uri", text()), ("kind", text())],
        &[("sha256", digest()), ("sizeBytes", count()), ("expiresAt", time())],
    );
    let step_error = object(&[("code", text()), ("message", text()), ("retryable", flag())], &[("category", text())]);
    let step = object(
        &[("stepId", text()), ("status", steps), ("logicalAttemptId", count()), ("artifacts", list(artifact.clone()))],
        &[
            ("engineAttemptId", count()),
            ("startedAt", time()),
            ("completedAt", time()),
            ("error", step_error),
            ("skipReason", text()),
        ],
    );
    let blocked = object(
        &[("cause", text())],
        &[
            ("stepId", text()),
            ("name", text()),
            ("reason", told(text(), "What the cause alone does not say.")),
            ("since", time()),
            ("earliestAt", time()),
        ],
    );
    let failed = object(&[("code", text()), ("message", text())], &[]);
    let operation = object(
        &[("operationId", text()), ("kind", text()), ("status", text()), ("startedAt", time())],
        &[
            ("name", text()),
            ("parentId", text()),
            ("attempts", count()),
            ("endedAt", time()),
            ("dueAt", told(time(), "When time alone will change it.")),
            ("error", failed),
            ("runId", told(text(), "The run that it has started.")),
        ],
    );
    let cause = object(&[("code", text()), ("message", text())], &[("stepId", text())]);
    let snapshot_required: Vec<(&str, Value)> = vec![
        ("runId", text()),
        ("status", statuses.clone()),
        ("lastEventSeq", count()),
        ("steps", told(list(step), "One per attempt, so that failed ones stay visible.")),
        ("artifacts", list(artifact)),
        ("failedSteps", count()),
    ];
    let snapshot_optional: Vec<(&str, Value)> = vec![
        ("substatus", told(word(&["DRAINING"]), "While a paused run waits for steps in flight.")),
        ("message", text()),
        ("rootCause", cause),
        ("engineRunRef", text()),
        ("engineType", text()),
        ("queuedAt", time()),
        ("startedAt", time()),
        ("completedAt", time()),
        ("totalDurationMs", count()),
        (
            "importedBy",
            told(
                text(),
                "Who put the run into this store, if it came out of a file: its events say what the file said.",
            ),
        ),
        ("importedAt", time()),
        ("blockedBy", told(list(blocked), "Why a run that does not go on waits.")),
        ("operations", told(list(operation), "What a workflow or a durable function has recorded.")),
        ("operationsTotal", told(count(), "How many there are, where not all are listed.")),
    ];
    let created = told(flag(), "Whether this request started it.");
    let started: Vec<_> = [("created", created)].into_iter().chain(snapshot_required.clone()).collect();
    let plan_ref = request(
        &[("sha256", digest()), ("schemaVersion", text()), ("planId", text()), ("planVersion", text())],
        &[("uri", told(or_null(text()), "Where the plan is, if it is not in the request."))],
    );
    let item = object(
        &[
            ("runId", text()),
            ("tenantId", text()),
            ("projectId", text()),
            ("environmentId", text()),
            ("planId", text()),
            ("planVersion", text()),
            ("status", statuses),
            ("visible", told(visible, "The status that lists are filtered by.")),
            ("createdAt", time()),
        ],
        &[("finishedAt", time()), ("quarantined", told(text(), "Why the run is set aside."))],
    );
    let event = told(
        json!({"type": "object", "required": ["eventType", "eventId", "runId", "runSeq", "emittedAt"],
               "properties": {"eventType": text(), "eventId": text(), "runId": text(), "runSeq": count(), "emittedAt": time()},
               "additionalProperties": true}),
        "As docs/events.md and spec/events have it, by its eventType.",
    );
    let file = request(
        &[
            ("format", text()),
            ("runId", text()),
            ("createdAt", time()),
            ("events", list(reference("RunEvent"))),
            ("sha256", told(digest(), "Over the events as they stand in the file.")),
        ],
        &[("requestKey", or_null(digest()))],
    );
    let line = object(
        &[("number", count()), ("at", time()), ("requestId", text()), ("source", text()), ("text", text())],
        &[],
    );
    let page = [("events", list(reference("RunEvent"))), ("lastEventSeq", count()), ("nextAfter", count())];
    let name = || json!({"type": "string", "default": "default"});
    vec![
        ("RunSnapshot", object(&snapshot_required, &snapshot_optional)),
        ("StartedRun", object(&started, &snapshot_optional)),
        (
            "StartRunRequest",
            request(
                &[("planRef", plan_ref)],
                &[
                    (
                        "plan",
                        told(or_null(json!({"type": "object"})), "Absent when it is to be read from planRef.uri."),
                    ),
                    ("projectId", name()),
                    ("environmentId", name()),
                    ("runRequestId", told(or_null(text()), "The same id again gets the same run.")),
                    ("approvalRequired", flag()),
                    ("notBefore", or_null(time())),
                    ("triggerSource", or_null(word(&["manual", "schedule", "webhook", "api"]))),
                ],
            ),
        ),
        ("RunList", object(&[("items", list(item))], &[("nextCursor", text())])),
        ("RunEvent", event),
        ("EventPage", object(&page, &[])),
        (
            "SignalRequest",
            request(
                &[("signalId", told(text(), "The same id again changes nothing.")), ("type", word(&signals))],
                &[("stepId", told(or_null(text()), "For RETRY_STEP and SKIP_STEP.")), ("reason", or_null(text()))],
            ),
        ),
        ("SignalAnswer", object(&[("accepted", flag()), ("snapshot", reference("RunSnapshot"))], &[])),
        ("TerminateRequest", request(&[("reason", text())], &[])),
        ("RunRef", object(&[("runId", text())], &[])),
        ("RunFile", file),
        ("LineList", object(&[("items", list(line))], &[])),
    ]
}

fn functions() -> Vec<(&'static str, Value)> {
    let kind = |name: &str| json!({"const": name});
    let reach = json!({"oneOf": [
        request(&[("kind", kind("push")), ("url", told(text(), "Speaks Lambda's Invoke."))], &[]),
        request(&[("kind", kind("pull"))], &[]),
        request(&[("kind", kind("inProcess"))], &[]),
    ]});
    let seconds = |most: u64| json!({"type": "integer", "minimum": 1, "maximum": most});
    let spec = request(
        &[("reach", reach)],
        &[
            ("durable", json!({"type": "boolean", "default": true})),
            ("executionTimeoutSeconds", seconds(EXECUTION_SECONDS_MAX)),
            ("invocationTimeoutSeconds", seconds(INVOCATION_SECONDS_MAX)),
            ("maxConcurrent", or_null(seconds(100_000))),
        ],
    );
    let item = object(
        &[
            ("name", text()),
            ("version", count()),
            ("spec", reference("FunctionSpec")),
            ("digest", text()),
            ("createdAt", time()),
        ],
        &[
            ("workerAddress", told(text(), "The value of AWS_LAMBDA_RUNTIME_API for workers.")),
            ("workers", told(count(), "That ask the answering node for work, or have some.")),
        ],
    );
    let version = object(&[("version", count()), ("createdAt", time()), ("openRuns", count())], &[]);
    let view =
        [("latest", reference("FunctionItem")), ("versions", list(version)), ("aliases", list(reference("AliasItem")))];
    vec![
        ("FunctionSpec", spec),
        ("FunctionItem", item),
        ("FunctionList", object(&[("items", list(reference("FunctionItem")))], &[("after", text())])),
        ("FunctionView", object(&view, &[])),
        ("AliasItem", object(&[("alias", text()), ("version", count())], &[])),
        ("AliasRequest", request(&[("version", json!({"type": "integer", "minimum": 1}))], &[])),
    ]
}

fn identity() -> Vec<(&'static str, Value)> {
    let roles = list(word(&Role::ALL.map(Role::as_str)));
    let kind = word(&["api", "access"]);
    let key_required: Vec<(&str, Value)> = vec![
        ("id", text()),
        ("tenantId", text()),
        ("name", text()),
        ("roles", roles.clone()),
        ("kind", kind.clone()),
        ("status", word(&["active", "expired", "revoked"])),
        ("prefix", told(text(), "The beginning of an API key, or an access key's id.")),
        ("createdAt", time()),
        ("createdBy", text()),
    ];
    let key_optional = [("expiresAt", time()), ("revokedAt", time()), ("lastUsedAt", time())];
    let secret = told(text(), "Shown here and never again.");
    let created: Vec<_> = key_required.iter().cloned().chain([("secret", secret)]).collect();
    let entry = object(
        &[
            ("id", text()),
            ("at", time()),
            ("tenantId", text()),
            ("actor", text()),
            ("roles", roles.clone()),
            ("action", text()),
            ("objectKind", text()),
            ("objectId", text()),
            ("outcome", word(&AuditOutcome::ALL.map(AuditOutcome::as_str))),
            ("correlationId", text()),
            ("count", count()),
        ],
        &[("reason", text()), ("source", text())],
    );
    let life = json!({"type": "integer", "minimum": 1, "maximum": LIFE_SECONDS_MAX});
    let permissions = list(word(&Permission::ALL.map(Permission::as_str)));
    vec![
        ("KeyItem", object(&key_required, &key_optional)),
        ("CreatedKey", object(&created, &key_optional)),
        ("KeyList", object(&[("items", list(reference("KeyItem")))], &[("after", text())])),
        (
            "CreateKeyRequest",
            request(
                &[("name", text()), ("roles", roles.clone())],
                &[
                    ("kind", kind),
                    ("tenantId", told(or_null(text()), "Another tenant's, for those who run the platform.")),
                    ("expiresInSeconds", told(or_null(life), "Without it the key lasts until it is revoked.")),
                ],
            ),
        ),
        ("AuditList", object(&[("items", list(entry))], &[("nextCursor", text())])),
        (
            "WhoAmI",
            object(&[("subject", text()), ("tenantId", text()), ("roles", roles), ("permissions", permissions)], &[]),
        ),
    ]
}

fn platform() -> Vec<(&'static str, Value)> {
    let codes: Vec<&str> = AlertCode::ALL.iter().map(|code| code.as_str()).collect();
    let alert = object(
        &[
            ("code", word(&codes)),
            ("severity", word(&["P1", "P2", "P3"])),
            ("subject", text()),
            ("tenantId", text()),
            ("message", text()),
            ("firstAt", time()),
            ("lastAt", time()),
            ("count", count()),
        ],
        &[("runId", text())],
    );
    let counts = json!({"type": "object", "additionalProperties": count()});
    let point = object(&[("at", time()), ("counts", counts), ("queueAgeMs", count())], &[]);
    let letter = object(
        &[
            ("position", text()),
            ("runId", text()),
            ("runSeq", count()),
            ("tenantId", text()),
            ("attempts", count()),
            ("lastError", text()),
            ("buriedAt", time()),
        ],
        &[],
    );
    let finding = object(&[("runId", text()), ("problem", text())], &[]);
    let info = object(
        &[
            ("kind", word(&["memory", "sqlite", "postgres"])),
            ("engineVersion", text()),
            ("schemaVersion", count()),
            ("singleProcess", flag()),
            ("sizeBytes", count()),
            ("settings", json!({"type": "object", "additionalProperties": text()})),
        ],
        &[],
    );
    let report = [("runs", count()), ("events", count()), ("findings", list(finding)), ("integrity", list(text()))];
    let contract = json_schema();
    let of_contract = |name: &str| contract["$defs"][name].clone();
    vec![
        ("AlertList", object(&[("items", list(alert))], &[])),
        ("Series", object(&[("everyMs", count()), ("now", time()), ("points", list(point))], &[])),
        ("DeadLetterList", object(&[("items", list(letter))], &[("nextAfter", text())])),
        ("RedriveRequest", request(&[], &[("position", told(or_null(text()), "Without it, all of them."))])),
        ("Redriven", object(&[("redriven", count())], &[])),
        ("StoreInfo", info),
        (
            "VerifyReport",
            object(
                &report,
                &[(
                    "withoutChecksum",
                    told(count(), "Events that an earlier version wrote, with no checksum to compare."),
                )],
            ),
        ),
        ("Retired", object(&[("runsRemoved", count())], &[])),
        ("RuntimeCommand", of_contract("command")),
        ("RuntimeEvent", of_contract("event")),
        ("RuntimeSnapshot", of_contract("snapshot")),
        (
            "Executed",
            object(&[("events", list(reference("RuntimeEvent")))], &[("snapshot", reference("RuntimeSnapshot"))]),
        ),
        ("RuntimeEventPage", object(&[("events", list(reference("RuntimeEvent"))), ("next", text())], &[])),
        ("Readiness", object(&[("ready", flag()), ("reasons", list(text()))], &[])),
        ("Version", object(&[("name", text()), ("version", text())], &[])),
        ("Document", json!({"type": "object", "additionalProperties": true})),
    ]
}

/// How these operations refuse.
fn problem() -> Value {
    let codes: Vec<&str> = codes::ALL.iter().map(|code| code.code).collect();
    let field = object(
        &[("pointer", told(text(), "A JSON Pointer into the body, or the name of a parameter.")), ("detail", text())],
        &[],
    );
    object(
        &[
            ("type", text()),
            ("title", text()),
            ("status", json!({"type": "integer"})),
            ("code", told(word(&codes), "docs/errors has a page for each.")),
        ],
        &[
            ("detail", told(text(), "Never there when the fault is the server's.")),
            ("instance", text()),
            ("requestId", text()),
            ("errors", list(field)),
            ("retryAfter", told(count(), "Seconds, as in the Retry-After header.")),
        ],
    )
}
