//! What is said twice, by operation: a request that says the same both times, and those that do not.

use reqwest::Method;
use serde_json::{Value, json};
use servo_canon::Digest;

use super::super::matrix::{Call, escaped};
use super::super::support::{FUNCTION, PREFIX, WORKFLOW, definition_of};
use super::world::{HISTORY, LIST, STATE, World, invocation, plan_request};
use crate::harness::one_step;

pub(super) struct Row {
    pub(super) operation: &'static str,
    /// The member, parameter or header that says it again.
    pub(super) carrier: &'static str,
    pub(super) base: (&'static str, Call),
    /// What is wrong, who sends it, and what.
    pub(super) mismatches: Vec<(String, &'static str, Call)>,
}

/// Those that are not acme, in the ways in which one might try.
const OTHER_TENANTS: [&str; 5] = ["globex", "nobody", "_system", "ACME", "acme.globex"];
/// Addresses that are not the draft's.
const OTHER_ADDRESSES: [&str; 4] = [
    WORKFLOW,
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.echo.v2~",
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~vendor.app.other.v1~",
    "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~VENDOR.app.echo.v1~",
];

/// Sets a member by its path.
fn set(mut document: Value, path: &str, value: &Value) -> Value {
    let place = path.split('.').fold(&mut document, |place, name| &mut place[name]);
    *place = value.clone();
    document
}

/// One request, and the same with other values at one place of its body.
fn bodies(
    (operation, carrier): (&'static str, &'static str),
    key: &'static str,
    (method, path): (Method, &str),
    body: &Value,
    others: &[&str],
) -> Row {
    let call = |body: Value| Call::new(method.clone(), path, Some(body));
    let mismatch = |other: &&str| {
        let body = set(body.clone(), carrier, &json!(other));
        ((*other).to_owned(), key, call(body))
    };
    Row { operation, carrier, base: (key, call(body.clone())), mismatches: others.iter().map(mismatch).collect() }
}

fn get(path: impl Into<String>) -> Call {
    Call::new(Method::GET, path, None)
}

pub(super) fn rows(world: &World) -> Vec<Row> {
    let mut rows = of_entrypoints(world);
    rows.extend(of_tenants());
    rows.extend(of_cursors(world));
    rows.extend(of_starts());
    rows.push(of_versions());
    rows.extend(of_files(world));
    rows.extend(of_the_runtime());
    rows.extend(of_tokens(world));
    rows.extend(of_arns(world));
    rows.extend(of_functions());
    rows
}

/// The path names a registration, and the credential a tenant; the definition says both again.
fn of_entrypoints(world: &World) -> Vec<Row> {
    let (update, register, validate) = ("updateEntrypoint", "registerEntrypoint", "validateEntrypoint");
    let mut rows = Vec::new();
    for (operation, method, path) in [
        (update, Method::PUT, format!("{PREFIX}/entrypoints/{}", world.draft)),
        (register, Method::POST, format!("{PREFIX}/entrypoints")),
        (validate, Method::POST, format!("{PREFIX}/entrypoints:validate")),
    ] {
        for (carrier, owner_type, others) in [
            ("tenant_id", "tenant", &OTHER_TENANTS[..]),
            ("owner.tenant_id", "tenant", &OTHER_TENANTS[..]),
            ("owner.id", "user", &["globex-developer", "acme-admin", "acme", "ACME-DEVELOPER"][..]),
            ("entrypoint_id", "tenant", &OTHER_ADDRESSES[..]),
        ] {
            if operation != update && carrier == "entrypoint_id" {
                continue;
            }
            // A registration is one more each time.
            let address = if operation == update {
                FUNCTION.to_owned()
            } else {
                FUNCTION.replace("echo", &format!("new{}{}", carrier.replace('.', ""), &operation[..1]))
            };
            let mut body = definition_of("acme", &address);
            body["tenant_id"] = json!("acme");
            if owner_type == "user" {
                body["owner"] = json!({"owner_type": "user", "id": "acme-developer", "tenant_id": "acme"});
            }
            let is_moved = operation == update && owner_type == "user";
            let mut row = bodies((operation, carrier), "acme-developer", (method.clone(), &path), &body, others);
            if is_moved {
                // The draft is its tenant's, and stays so.
                row.base.1.body = Some(set(definition_of("acme", &address), "owner.id", &json!("acme")));
            }
            rows.push(row);
        }
    }
    rows
}

/// The credential says whose it is.
fn of_tenants() -> Vec<Row> {
    let key = json!({"name": "ci", "roles": ["viewer"], "tenantId": "acme"});
    let others = ["globex", "nobody", "ACME"];
    let mut rows =
        vec![bodies(("createKey", "tenantId"), "acme-admin", (Method::POST, "/v1/keys"), &key, &OTHER_TENANTS)];
    for (operation, carrier, path) in [
        ("listKeys", "tenantId", "/v1/keys".to_owned()),
        ("readAudit", "tenantId", "/v1/audit".to_owned()),
        ("listEntrypoints", "tenant_id", format!("{PREFIX}/entrypoints")),
        ("listInvocations", "tenant_id", format!("{PREFIX}/invocations")),
        ("countInvocations", "tenant_id", format!("{PREFIX}/invocations:counts")),
    ] {
        let call = |tenant: &str| get(format!("{path}?{carrier}={tenant}"));
        let mismatches = others.iter().map(|other| ((*other).to_owned(), "acme-admin", call(other))).collect();
        rows.push(Row { operation, carrier, base: ("acme-admin", call("acme")), mismatches });
    }
    rows
}

/// A cursor says which list it goes on with: whose, of what, in which order.
fn of_cursors(world: &World) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let foreign = || {
        let markers = world.markers.iter().map(|(operation, _, mark)| (*operation, mark.clone()));
        markers.chain([("a token", escaped(&world.executions[0].token))])
    };
    for (index, (operation, path, cursor)) in world.cursors.iter().enumerate() {
        let call = |cursor: &str| get(format!("{path}&cursor={cursor}"));
        let others = world.cursors.iter().enumerate().filter(|(other, _)| *other != index);
        let others = others.map(|(_, (other, path, cursor))| (format!("{other} {path}"), cursor.clone()));
        let others = others.chain(foreign().map(|(other, text)| (other.to_owned(), text)));
        let mut mismatches: Vec<_> = others.map(|(what, text)| (what, "acme-admin", call(&text))).collect();
        mismatches.push(("another tenant's".to_owned(), "globex-admin", call(cursor)));
        let narrowed = match *operation {
            "listInvocations" => Some("&mode=async"),
            "listEntrypoints" => Some("&status=active"),
            "listRuns" => Some("&status=succeeded"),
            "readAudit" => Some("&outcome=denied"),
            _ => None,
        };
        mismatches.extend(
            narrowed.map(|more| {
                (format!("another list: {more}"), "acme-admin", get(format!("{path}{more}&cursor={cursor}")))
            }),
        );
        rows.push(Row { operation, carrier: "cursor", base: ("acme-admin", call(cursor)), mismatches });
    }
    // The first of `world.cursors` is of the list without a condition, the second of one with.
    let bulk = |cursor: Option<&str>, filter: &str| {
        let body = json!({"action": "cancel", "filter": filter, "dry_run": true, "cursor": cursor});
        Call::new(Method::POST, format!("{PREFIX}/invocations:bulk"), Some(body))
    };
    let filter = "status eq 'succeeded'";
    let mismatches = world
        .cursors
        .iter()
        .map(|(operation, path, cursor)| (format!("{operation} {path}"), "acme-admin", bulk(Some(cursor), filter)));
    let mismatches = mismatches.collect();
    let (operation, carrier) = ("bulkControlInvocations", "cursor");
    rows.push(Row { operation, carrier, base: ("acme-admin", bulk(None, filter)), mismatches });
    rows
}

/// A key and a request id name a start, and the body says which.
fn of_starts() -> Vec<Row> {
    let start = |params: Value| {
        let call = Call::new(Method::POST, format!("{PREFIX}/invocations"), Some(invocation(&params)));
        call.with("idempotency-key", "key-1")
    };
    let others = [json!({"amount": 2}), json!({}), json!({"amount": 1, "do": "work"})];
    let mismatches = others.iter().map(|params| (params.to_string(), "acme-operator", start(params.clone()))).collect();
    let base = ("acme-operator", start(json!({"amount": 1})));
    let by_key = Row { operation: "startInvocation", carrier: "Idempotency-Key", base, mismatches };

    let call = |body: Value| Call::new(Method::POST, "/v1/runs", Some(body));
    let more = plan_request(json!([{"stepId": "a"}, {"stepId": "b"}]));
    let by_id = Row {
        operation: "startRun",
        carrier: "runRequestId",
        base: ("acme-operator", call(plan_request(one_step()))),
        mismatches: vec![("another plan of the same name".to_owned(), "acme-operator", call(more))],
    };
    let mut rows = vec![by_key, by_id];
    // The reference names a plan, and the plan itself says again which it is.
    let request = crate::harness::start(one_step());
    let nobodys = "0".repeat(64);
    for (carrier, others) in [
        ("planRef.planId", &["other", "Demo", "demo2"][..]),
        ("planRef.planVersion", &["2", "01", "1.0"][..]),
        ("planRef.schemaVersion", &["v2", "V1"][..]),
        ("planRef.sha256", &[nobodys.as_str()][..]),
    ] {
        rows.push(bodies(("startRun", carrier), "acme-operator", (Method::POST, "/v1/runs"), &request, others));
    }
    let mut row = bodies(("startRun", "plan"), "acme-operator", (Method::POST, "/v1/runs"), &request, &[]);
    for (name, value) in [("planId", json!("other")), ("planVersion", json!("2")), ("steps", json!([{"stepId": "b"}]))]
    {
        let body = set(request.clone(), &format!("plan.{name}"), &value);
        row.mismatches.push((name.to_owned(), "acme-operator", call(body)));
    }
    rows.push(row);
    rows
}

/// Version 2 is one of `two`, and `one` has none.
fn of_versions() -> Row {
    let call = |name: &str, version: u64| {
        let path = format!("/v1/functions/{name}/aliases/live");
        Call::new(Method::PUT, path, Some(json!({"version": version})))
    };
    let mismatches = [("one", 2), ("one", 3), ("two", 3), ("plain", 2)];
    let mismatches =
        mismatches.map(|(name, version)| (format!("{version} of {name}"), "acme-developer", call(name, version)));
    Row {
        operation: "putAlias",
        carrier: "version",
        base: ("acme-developer", call("two", 2)),
        mismatches: mismatches.to_vec(),
    }
}

/// A file says of which run it is, each of its events does, and its digest says which events there are.
fn of_files(world: &World) -> Vec<Row> {
    let other = format!("inv_{}", "0".repeat(32));
    let resealed = |file: Value| {
        let events: Vec<String> = file["events"].as_array().unwrap().iter().map(Value::to_string).collect();
        let lines: Vec<&str> = events.iter().map(String::as_str).collect();
        set(file, "sha256", &json!(Digest::of_parts(&lines, '\n').to_string()))
    };
    let [first, second, third] = &world.files[..] else { panic!("three") };
    let [first, second, third] = [first, second, third].map(|file| resealed(file.json.clone()));
    // Globex takes them in: whose a run was, the file does not say.
    let row = |carrier: &'static str, file: &Value, others: Vec<(String, Value)>| {
        let call = |file: Value| Call::new(Method::POST, "/v1/runs/import", Some(file));
        let mismatches = others.into_iter().map(|(what, file)| (what, "globex-admin", call(file))).collect();
        Row { operation: "importRun", carrier, base: ("globex-admin", call(file.clone())), mismatches }
    };
    let runs = [other.as_str(), &first["runId"].as_str().unwrap().to_uppercase(), &world.invocations[0]]
        .map(|other| (other.to_owned(), set(first.clone(), "runId", &json!(other))));
    let mut events = Vec::new();
    let count = second["events"].as_array().unwrap().len();
    for index in 0..count {
        let mut changed = second.clone();
        changed["events"][index]["runId"] = json!(other);
        events.push((format!("event {index} is another run's"), resealed(changed)));
    }
    let mut changed = second.clone();
    changed["events"].as_array_mut().unwrap().iter_mut().for_each(|event| event["runId"] = json!(other));
    events.push(("all events are another run's".to_owned(), resealed(changed)));
    let digests = ["0".repeat(64), Digest::of(b"").to_string()]
        .map(|digest| (digest.clone(), set(third.clone(), "sha256", &json!(digest))));
    vec![
        row("runId", &first, runs.to_vec()),
        row("events[].runId", &second, events),
        row("sha256", &third, digests.to_vec()),
    ]
}

/// The authority is held under a name and a lease, and a renewal says both. The server itself holds it, so that nobody's renewal is
/// taken; what shows that commands are is another one.
fn of_the_runtime() -> Vec<Row> {
    let command = |command: Value| Call::new(Method::POST, "/runtime/commands", Some(command));
    let renew = |owner: &str, lease: &str| {
        let until = "2999-01-01T00:00:00Z";
        command(json!({"command": "RenewAuthority", "owner": owner, "lease_id": lease, "leased_until": until}))
    };
    let row = |carrier, pairs: &[(&str, &str)]| {
        let mismatch =
            |(owner, lease): &(&str, &str)| (format!("{owner} {lease}"), "acme-platform-admin", renew(owner, lease));
        Row {
            operation: "executeRuntimeCommand",
            carrier,
            base: ("acme-platform-admin", command(json!({"command": "CaptureSnapshot"}))),
            mismatches: pairs.iter().map(mismatch).collect(),
        }
    };
    vec![row("owner", &[("other", "lease"), ("acme", "lease")]), row("lease_id", &[("other", "other")])]
}

/// Executions and tokens that do not belong together: what is wrong, who shows them, the ARN and the token.
pub(super) fn pairs(world: &World) -> [(&'static str, &'static str, &str, &str); 9] {
    let [one, two, theirs] = &world.executions[..] else { panic!("three") };
    let run = one.arn.rsplit('/').next().unwrap();
    [
        ("the token of another", "acme-operator", &one.arn, &two.token),
        ("the ARN of another", "acme-operator", &two.arn, &one.token),
        ("a foreign token", "acme-operator", &one.arn, &theirs.token),
        ("a foreign ARN", "acme-operator", &theirs.arn, &one.token),
        ("all of it foreign", "acme-operator", &theirs.arn, &theirs.token),
        ("another tenant", "globex-operator", &one.arn, &one.token),
        ("another tenant with a token of its own", "globex-operator", &one.arn, &theirs.token),
        ("a callback for a token", "acme-operator", &one.arn, &one.callback),
        ("no ARN", "acme-operator", run, &one.token),
    ]
}

/// A token says which execution and whose, and the path says it as well; so do callbacks' ids and marks.
fn of_tokens(world: &World) -> Vec<Row> {
    let [one, two, theirs] = &world.executions[..] else { panic!("three") };
    let path = |arn: &str, what: &str| format!("/2025-12-01/durable-executions/{}/{what}", escaped(arn));
    let checkpoint = |arn: &str, token: &str, updates: Value| {
        Call::new(Method::POST, path(arn, "checkpoint"), Some(json!({"CheckpointToken": token, "Updates": updates})))
    };
    let step = || json!([{"Id": "7", "Type": "STEP", "Action": "START", "Name": "mine"}]);
    let state = |arn: &str, token: &str| get(format!("{}?CheckpointToken={}", path(arn, "state"), escaped(token)));
    let pairs = pairs(world);
    let row = |operation, carrier, base, call: &dyn Fn(&str, &str) -> Call| Row {
        operation,
        carrier,
        base: ("acme-operator", base),
        mismatches: pairs.map(|(what, key, arn, token)| (what.to_owned(), key, call(arn, token))).to_vec(),
    };
    let mut rows = vec![
        row(
            "POST /2025-12-01/durable-executions/{arn}/checkpoint",
            "CheckpointToken",
            checkpoint(&one.arn, &one.token, json!([])),
            &|arn, token| checkpoint(arn, token, step()),
        ),
        row(STATE, "CheckpointToken", state(&one.arn, &one.token), &state),
    ];
    for (index, (operation, path, mark)) in world.markers.iter().enumerate() {
        let call = |mark: &str| get(format!("{path}&Marker={mark}"));
        let others = world.markers.iter().enumerate().filter(|(other, _)| *other != index);
        let others = others.map(|(_, (other, _, mark))| ((*other).to_owned(), mark.clone()));
        let pages = world.cursors.iter().map(|(other, _, cursor)| ((*other).to_owned(), cursor.clone()));
        let others = others.chain(pages).chain([("a token".to_owned(), escaped(&one.token))]);
        let mut mismatches: Vec<_> = others.map(|(what, mark)| (what, "acme-operator", call(&mark))).collect();
        mismatches.push(("another tenant".to_owned(), "globex-operator", call(mark)));
        rows.push(Row { operation, carrier: "Marker", base: ("acme-operator", call(mark)), mismatches });
    }
    for (operation, action) in [
        ("POST /2025-12-01/durable-execution-callbacks/{id}/heartbeat", "heartbeat"),
        ("POST /2025-12-01/durable-execution-callbacks/{id}/succeed", "succeed"),
        ("POST /2025-12-01/durable-execution-callbacks/{id}/fail", "fail"),
    ] {
        let call = |id: &str| {
            Call::new(Method::POST, format!("/2025-12-01/durable-execution-callbacks/{}/{action}", escaped(id)), None)
        };
        // The second execution's fails where the first one's succeeds: each is answered once.
        let own = if action == "fail" { &two.callback } else { &one.callback };
        let mismatches = [
            ("another tenant's", "acme-operator", &theirs.callback),
            ("another tenant", "globex-operator", own),
            ("a token for a callback", "acme-operator", &one.token),
            ("an ARN for a callback", "acme-operator", &one.arn),
        ];
        let mismatches = mismatches.map(|(what, key, id)| (what.to_owned(), key, call(id))).to_vec();
        rows.push(Row { operation, carrier: "{id}", base: ("acme-operator", call(own)), mismatches });
    }
    rows
}

/// An ARN says account, region, function, version, name and run.
fn of_arns(world: &World) -> Vec<Row> {
    // The last call stops it.
    let arn = &world.executions[1].arn;
    let name = arn.rsplit('/').nth(1).unwrap();
    let parts = [
        ("000000000000", "999999999999".to_owned()),
        ("us-east-1", "eu-west-1".to_owned()),
        (":durable:", ":plain:".to_owned()),
        (":1/", ":2/".to_owned()),
        ("arn:aws:", "arn:aws-cn:".to_owned()),
        (name, format!("{name}x")),
    ];
    let mut rows = Vec::new();
    for (operation, method, what) in [
        ("GET /2025-12-01/durable-executions/{arn}", Method::GET, ""),
        (HISTORY, Method::GET, "/history"),
        ("POST /2025-12-01/durable-executions/{arn}/stop", Method::POST, "/stop"),
    ] {
        let call = |arn: &str| {
            Call::new(method.clone(), format!("/2025-12-01/durable-executions/{}{what}", escaped(arn)), None)
        };
        let mismatch = |(part, other): &(&str, String)| {
            assert!(arn.contains(part), "{arn} has no {part}");
            (format!("{other} for {part}"), "acme-operator", call(&arn.replacen(part, other, 1)))
        };
        let mismatches = parts.iter().map(mismatch).collect();
        rows.push(Row { operation, carrier: "{arn}", base: ("acme-operator", call(arn)), mismatches });
    }
    rows
}

/// The version of a function, in its name and beside it.
fn of_functions() -> Vec<Row> {
    let mut rows = Vec::new();
    for (operation, method, version, what) in [
        ("POST /2015-03-31/functions/{name}/invocations", Method::POST, "2015-03-31", "invocations"),
        ("GET /2015-03-31/functions/{name}/configuration", Method::GET, "2015-03-31", "configuration"),
        (LIST, Method::GET, "2025-12-01", "durable-executions"),
    ] {
        let call = |name: &str, qualifier: &str| {
            let path = format!("/{version}/functions/{}/{what}?Qualifier={}", escaped(name), escaped(qualifier));
            Call::new(method.clone(), path, (method == Method::POST).then(|| json!({"do": "work"})))
        };
        let place = "arn:aws:lambda:us-east-1:000000000000:function:two";
        let others =
            [("two:1", "2"), ("two:2", "1"), ("two:1", "$LATEST"), ("two:1", "live"), (&format!("{place}:1"), "2")];
        let mismatches =
            others.map(|(name, qualifier)| (format!("{name} {qualifier}"), "acme-operator", call(name, qualifier)));
        let mismatches = mismatches.to_vec();
        rows.push(Row { operation, carrier: "Qualifier", base: ("acme-operator", call("two:1", "1")), mismatches });
    }
    rows
}
