//! Metrics of tenants: each caller's own.

use reqwest::Method;
use serde_json::json;

use super::support::{Api, FUNCTION, WORKFLOW, definition_of};
use crate::harness::{Options, keys};

async fn active(api: &Api, tenant: &str, address: &str, owner: Option<&str>) {
    let key = format!("{tenant}-developer");
    let mut document = definition_of(tenant, address);
    if let Some(owner) = owner {
        document["owner"] = json!({"owner_type": "user", "id": owner, "tenant_id": tenant});
    }
    let registered = api.send(Method::POST, "/entrypoints", &key, Some(&document)).await;
    assert_eq!(registered.status, 201, "{}", registered.text);
    let path = format!("/entrypoints/{}:status", registered.json["id"].as_str().unwrap());
    assert_eq!(api.send(Method::POST, &path, &key, Some(&json!({"action": "activate"}))).await.status, 200);
    let request = json!({"entrypoint_id": address, "mode": "sync"});
    assert_eq!(api.send(Method::POST, "/invocations", &key, Some(&request)).await.status, 201);
}

/// The samples of invocations that a caller is told.
async fn scraped(api: &Api, key: &str) -> Vec<String> {
    let answer = api.server.send(Method::GET, "/metrics", key, None).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let lines = answer.text.lines().filter(|line| line.starts_with("servo_invocations{"));
    lines.map(str::to_owned).collect()
}

fn sample(tenant: &str, address: &str, count: u64) -> String {
    format!("servo_invocations{{tenant=\"{tenant}\",entrypoint=\"{address}\",status=\"succeeded\"}} {count}")
}

/// SR-534, SR-536, SR-012: invocations have both labels, and nobody is told of another tenant or of what is another user's.
async fn invocations_are_counted_by_tenant_and_entrypoint() {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer", "globex-developer"]).await;
    active(&api, "acme", FUNCTION, None).await;
    active(&api, "acme", WORKFLOW, Some("acme-developer")).await;
    active(&api, "globex", FUNCTION, None).await;
    let mut own = scraped(&api, "acme-developer").await;
    own.sort();
    let mut expected = [sample("acme", FUNCTION, 1), sample("acme", WORKFLOW, 1)];
    expected.sort();
    assert_eq!(own, expected);
    assert_eq!(scraped(&api, "acme-viewer").await, [sample("acme", FUNCTION, 1)]);
    assert_eq!(scraped(&api, "globex-admin").await, [sample("globex", FUNCTION, 1)]);
    // The server listens on this machine alone, so metrics are open; but whose they are is not known.
    assert_eq!(scraped(&api, "").await, [""; 0]);
    // Asking makes a tenant one that is followed, so that the platform need not wait until the next look.
    api.server.send(Method::GET, "/v1/series", "globex-viewer", None).await;
    let all = scraped(&api, "acme-platform-admin").await;
    assert!(all.contains(&sample("acme", WORKFLOW, 1)) && all.contains(&sample("globex", FUNCTION, 1)), "{all:?}");
}

/// The number of labels has a bound: the newest have one of their own, the others one together.
async fn labels_are_bounded() {
    let api = Api::with(Options { auth: keys(), ..Options::default() }, &["acme-developer"]).await;
    for number in 0..52 {
        active(&api, "acme", &FUNCTION.replace(".echo.", &format!(".echo{number}.")), None).await;
    }
    let all = scraped(&api, "acme-viewer").await;
    assert_eq!(all.len(), 51);
    assert!(all.contains(&sample("acme", "others", 2)), "{all:?}");
}

crate::backend::on_every_store! {
    invocations_are_counted_by_tenant_and_entrypoint,
    labels_are_bounded,
}
