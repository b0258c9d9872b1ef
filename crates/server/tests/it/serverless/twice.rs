//! S3: requests that say twice what they are about, once in the path, by the credential or by what they were given before, and once more
//! in a body, a parameter or a token. Where the two differ the request is refused, and nothing has changed.
//!
//! What names something comes from the OpenAPI document, and from the table of the Lambda API: whoever adds such a member says here what it
//! is compared with, or why there is nothing to compare.

mod channel;
mod rows;
mod world;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::Answer;
use crate::roles::LAMBDA;
use channel::what_says_two_things_is_refused_in_a_channel;
use rows::{Row, rows};
use world::World;

/// Members that name something of their own: what they say is said once.
const OWN: [(&str, &str, &str); 40] = [
    ("registerEntrypoint", "entrypoint_id", "a new name"),
    ("validateEntrypoint", "entrypoint_id", "a new name"),
    ("registerEntrypoint", "version", "the definition's own"),
    ("updateEntrypoint", "version", "the definition's own"),
    ("validateEntrypoint", "version", "the definition's own"),
    ("registerEntrypoint", "implementation.adapter_ref.definition_id", "what it refers to; matrix.rs has foreign ones"),
    ("updateEntrypoint", "implementation.adapter_ref.definition_id", "what it refers to; matrix.rs has foreign ones"),
    ("validateEntrypoint", "implementation.adapter_ref.definition_id", "what it refers to; matrix.rs has foreign ones"),
    ("startInvocation", "entrypoint_id", "what is started; the key is one of this address"),
    ("controlInvocation", "step_id", "a step of the run in the path"),
    ("signalInvocation", "name", "what is sent to the run in the path"),
    ("signalInvocation", "signal_id", "a new name, of the run in the path"),
    ("signalRun", "signalId", "a new name, of the run in the path"),
    ("signalRun", "stepId", "a step of the run in the path"),
    ("bulkControlInvocations", "filter", "what the cursor is compared with"),
    ("bulkControlInvocations", "step_id", "a step of each run"),
    ("listEntrypoints", "$filter", "what the cursor is compared with"),
    ("listEntrypoints", "entrypoint_id_prefix", "what the cursor is compared with"),
    ("listInvocations", "$filter", "what the cursor is compared with"),
    ("listInvocations", "entrypoint_id", "what the cursor is compared with"),
    ("listInvocations", "correlation_id", "what the cursor is compared with"),
    ("countInvocations", "entrypoint_id", "said once"),
    ("listRuns", "id", "said once"),
    ("listRuns", "planId", "what the cursor is compared with"),
    ("getInvocationTimeline", "Last-Event-ID", "a number in the timeline of the run in the path"),
    ("getRunEvents", "Last-Event-ID", "a number in the log of the run in the path"),
    ("getRunEvents", "after", "a number in the log of the run in the path"),
    ("getRunLogs", "after", "a number in the lines of the run in the path"),
    ("listKeys", "after", "a place in the list, which is the tenant's"),
    ("readAudit", "actor", "what the cursor is compared with"),
    ("readAudit", "object", "what the cursor is compared with"),
    ("createKey", "name", "a new name"),
    ("startRun", "planRef.uri", "where the plan is; which one it is, its digest says"),
    ("startRun", "projectId", "said once"),
    ("startRun", "environmentId", "said once"),
    ("importRun", "requestKey", "said once"),
    ("importRun", "events[].eventId", "the event's own"),
    ("executeRuntimeCommand", "request_id", "a new name, or one of a dispatch; said once"),
    ("executeRuntimeCommand", "target", "said once"),
    ("executeRuntimeCommand", "cursor", "said once"),
];

/// Whether a member says which thing is meant.
fn names_something(member: &str) -> bool {
    let last = member.rsplit('.').next().unwrap_or(member);
    let lower = last.to_lowercase();
    let words = ["name", "alias", "version", "cursor", "after", "plan", "owner", "filter", "$filter", "target"];
    words.contains(&lower.as_str())
        || ["id", "ids", "_id_prefix", "planversion", "schemaversion", "sha256", "key", "uri", "token"]
            .iter()
            .any(|end| lower.ends_with(end))
        || ["actor", "object"].contains(&lower.as_str())
}

/// All members of a schema that have no members themselves, by their paths.
fn members(document: &Value, schema: &Value, path: &str, within: &[&str], found: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        if !within.contains(&name) {
            let target = document.pointer(name.trim_start_matches('#')).unwrap();
            members(document, target, path, &[within, &[name]].concat(), found);
        }
        return;
    }
    for branch in ["allOf", "oneOf", "anyOf"].iter().flat_map(|kind| schema[kind].as_array()).flatten() {
        members(document, branch, path, within, found);
    }
    if schema["items"].is_object() {
        return members(document, &schema["items"], &format!("{path}[]"), within, found);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let before = found.len();
        members(document, member, &path, within, found);
        if found.len() == before {
            found.insert(path);
        }
    }
}

/// Operations and what in them, beside the path, may say again what the request is about. One that names a single thing says it once, unless
/// that is a tenant or its owner: whose the request is, the credential says.
fn carriers() -> BTreeSet<(String, String)> {
    let document = servo_server::openapi::document();
    let mut all = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let (mut in_path, mut found) = (0, BTreeSet::new());
            for parameter in parameters {
                let name = parameter["name"].as_str().unwrap();
                match parameter["in"].as_str().unwrap() {
                    "path" => in_path += 1,
                    // A name for the request itself.
                    _ if name == "X-Correlation-Id" => {}
                    _ => drop(found.insert(name.to_owned())),
                }
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            members(document, schema, "", &[], &mut found);
            found.retain(|name| names_something(name));
            let of_tenant = |name: &String| name.to_lowercase().replace('_', "").ends_with("tenantid");
            if in_path + found.len() > 1 || found.iter().any(of_tenant) {
                let id = operation["operationId"].as_str().unwrap();
                all.extend(found.into_iter().map(|name| (id.to_owned(), name)));
            }
        }
    }
    all
}

/// A member that names something, of which nobody has said what it is compared with, fails here; so does a row of none.
/// Reads of Lambda's that name something once, or as another one does that has a row.
const ONCE: [&str; 6] = [
    "GET /2015-03-31/functions",
    "GET /2015-03-31/functions/",
    "GET /2015-03-31/functions/{name}",
    "GET /2015-03-31/functions/{name}/versions",
    "GET /2015-03-31/functions/{name}/aliases",
    "GET /2015-03-31/functions/{name}/aliases/{alias}",
];

#[tokio::test]
async fn every_name_that_is_said_twice_has_a_row() {
    let world = World::new().await;
    let rows = rows(&world);
    let named: BTreeSet<_> = carriers().into_iter().collect();
    assert!(named.len() > 60, "{named:#?}");
    let of_rows = rows.iter().map(|row| (row.operation.to_owned(), row.carrier.to_owned()));
    let (in_lambda, compared): (BTreeSet<_>, BTreeSet<_>) = of_rows.partition(|(operation, _)| operation.contains(' '));
    let own: BTreeSet<_> =
        OWN.iter().map(|(operation, name, _)| ((*operation).to_owned(), (*name).to_owned())).collect();
    assert_eq!(compared.intersection(&own).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    let known: BTreeSet<_> = compared.union(&own).cloned().collect();
    let missing: Vec<_> = named.difference(&known).collect();
    let gone: Vec<_> = known.difference(&named).collect();
    assert!(missing.is_empty() && gone.is_empty(), "without a row: {missing:#?}, rows of nothing: {gone:#?}");
    for (method, path, ..) in LAMBDA {
        let operation = format!("{method} {path}");
        if ONCE.contains(&operation.as_str()) {
            continue;
        }
        assert!(in_lambda.iter().any(|(row, _)| *row == operation), "{operation} has no row");
    }
}

/// Refused, or answered with nothing: a list of what is not there.
fn is_refused(answer: &Answer) -> bool {
    let items = answer.json["items"].as_array();
    let nothing = answer.status == 200 && items.is_some_and(Vec::is_empty);
    nothing || (answer.status.is_client_error() && !matches!(answer.status.as_u16(), 401 | 408 | 429))
}

/// What was taken although it says two things, and what has changed by it.
async fn accepted(world: &World, row: &Row) -> Vec<String> {
    let before = world.state().await;
    let mut findings = Vec::new();
    for (what, key, call) in &row.mismatches {
        let answer = world.ask(key, call).await;
        if !is_refused(&answer) {
            let Row { operation, carrier, .. } = row;
            findings.push(format!("{operation}, {carrier}: {what}: {} {}", answer.status, answer.text));
        }
    }
    for (now, was) in world.state().await.into_iter().zip(before) {
        if now != was {
            findings.push(format!("{}, {}: changed {was:?} to {now:?}", row.operation, row.carrier));
        }
    }
    findings
}

async fn what_says_two_things_is_refused() {
    let world = World::new().await;
    let (mut tried, mut findings) = (0, Vec::new());
    for row in rows(&world) {
        assert!(!row.mismatches.is_empty(), "{} {}", row.operation, row.carrier);
        tried += row.mismatches.len();
        findings.extend(accepted(&world, &row).await);
    }
    assert!(findings.is_empty(), "{} of {tried}: {findings:#?}", findings.len());
    assert!(tried > 150, "{tried}");
}

/// The control: the same requests that say one thing are taken, so it is the second name that they are refused for; and where one of these
/// stands for a mismatch, the same check says that it was accepted.
async fn what_says_one_thing_twice_is_taken() {
    let world = World::new().await;
    for row in rows(&world) {
        let (key, call) = row.base.clone();
        let honest = Row { mismatches: vec![("nothing".to_owned(), key, call)], ..row };
        let findings = accepted(&world, &honest).await;
        let case = format!("{}, {}: nothing: 20", honest.operation, honest.carrier);
        assert!(findings.iter().any(|finding| finding.starts_with(&case)), "{case}: {:?}", {
            let (key, call) = &honest.base;
            world.ask(key, call).await
        });
    }
}

crate::backend::on_every_store! {
    what_says_two_things_is_refused,
    what_says_one_thing_twice_is_taken,
    what_says_two_things_is_refused_in_a_channel,
}
