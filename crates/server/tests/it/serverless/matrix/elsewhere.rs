//! What requests name elsewhere than in their path: in bodies, filters and parameters.

use reqwest::Method;
use serde_json::json;

use super::super::support::{FUNCTION, PREFIX, WORKFLOW, definition_of};
use super::world::{Call, Findings, Two};

/// What requests name elsewhere: in bodies, filters and parameters.
pub(super) async fn crossings(two: &Two) -> Vec<String> {
    let (before, mut findings) = (two.of_acme().await, Findings::default());
    let nobodys = |address: &str| address.replace("vendor.app", "nobody.app");
    let start = |address: &str| {
        let body = json!({"entrypoint_id": address, "mode": "sync"});
        Call::new(Method::POST, format!("{PREFIX}/invocations"), Some(body))
    };
    let dry = |address: &str| {
        let body = json!({"entrypoint_id": address, "dry_run": true});
        Call::new(Method::POST, format!("{PREFIX}/invocations"), Some(body))
    };
    let under_a_key = |address: &str| start(address).with("idempotency-key", "k");
    let get = |path: String| Call::new(Method::GET, path, None);
    let bulk = |filter: String, dry_run: bool| {
        let body = json!({"action": "cancel", "filter": filter, "dry_run": dry_run});
        Call::new(Method::POST, format!("{PREFIX}/invocations:bulk"), Some(body))
    };
    let refers = |path: &str, function: &str| {
        let mut document = definition_of("globex", WORKFLOW);
        document["implementation"]["adapter_ref"]["definition_id"] = function.into();
        Call::new(Method::POST, format!("{PREFIX}/{path}"), Some(document))
    };
    let undone_by = |path: &str, hook: &str, address: &str| {
        let mut document = definition_of("globex", &WORKFLOW.replace("flow", "other"));
        document["traits"]["workflow"]["compensation"][hook] = address.into();
        Call::new(Method::POST, format!("{PREFIX}/{path}"), Some(document))
    };
    let (running, theirs, none) = (&two.runs[1], &two.function[0], &two.function[1]);
    let (function, unknown) = (FUNCTION, nobodys(FUNCTION));
    // (foreign, unknown, what the two differ in, status)
    let mut rows: Vec<(Call, Call, [String; 2], u16)> = Vec::new();
    let addresses = || [function.to_owned(), unknown.clone()];
    for make in [&start as &dyn Fn(&str) -> Call, &dry, &under_a_key] {
        rows.push((make(function), make(&unknown), addresses(), 404));
    }
    for path in ["entrypoints", "entrypoints:validate"] {
        for (more, status) in [("", 422), (":live", 422), (":1", 422)] {
            let (foreign, unknown) = (format!("{theirs}{more}"), format!("{none}{more}"));
            rows.push((refers(path, &foreign), refers(path, &unknown), two.function.clone(), status));
        }
        for hook in ["on_failure", "on_cancel"] {
            rows.push((undone_by(path, hook, function), undone_by(path, hook, &unknown), addresses(), 422));
        }
    }
    for list in ["invocations", "invocations:counts", "entrypoints"] {
        let tenants = ["acme", "nobo"].map(str::to_owned);
        let of = |tenant: &str| get(format!("{PREFIX}/{list}?tenant_id={tenant}"));
        rows.push((of(&tenants[0]), of(&tenants[1]), tenants.clone(), 200));
    }
    for list in ["invocations?entrypoint_id=", "invocations:counts?entrypoint_id=", "entrypoints?entrypoint_id_prefix="]
    {
        let of = |address: &str| get(format!("{PREFIX}/{list}{address}"));
        rows.push((of(function), of(&unknown), addresses(), 200));
    }
    for field in ["id", "invocation_id"] {
        let of = |id: &str| get(format!("{PREFIX}/invocations?%24filter={field}%20eq%20%27{id}%27"));
        rows.push((of(&running[0]), of(&running[1]), running.clone(), 200));
        for dry_run in [true, false] {
            let of = |id: &str| bulk(format!("{field} eq '{id}'"), dry_run);
            rows.push((of(&running[0]), of(&running[1]), running.clone(), 200));
        }
    }
    let of = |tenant: &str| bulk(format!("tenant_id eq '{tenant}' or status eq 'running'"), false);
    rows.push((of("acme"), of("nobo"), ["acme", "nobo"].map(str::to_owned), 200));
    for path in ["/v1/keys", "/v1/audit"] {
        let of = |tenant: &str| get(format!("{path}?tenantId={tenant}"));
        rows.push((of("acme"), of("nobo"), ["acme", "nobo"].map(str::to_owned), 403));
    }
    for (theirs, nobodys, names, status) in rows {
        let (foreign, unknown) = (two.ask("globex-admin", &theirs).await, two.ask("globex-admin", &nobodys).await);
        let case = format!("{theirs:?}");
        let got = foreign.status.as_u16();
        findings.expect(got == status, || format!("{case}: {got} {}", foreign.text));
        findings.same(&case, (&foreign, &names[0]), (&unknown, &names[1]));
        if got == 200 {
            let items = foreign.json["items"].as_array().unwrap_or_else(|| panic!("no list: {}", foreign.text));
            let all: u64 = items.iter().map(|item| item["count"].as_u64().unwrap_or(1)).sum();
            findings.expect(all == 0, || format!("{case}: {}", foreign.text));
        }
    }
    findings.unchanged(two, &before).await;
    findings.0
}
