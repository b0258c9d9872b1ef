//! Metrics of tenants: each caller's own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde_json::json;
use servo_entrypoint::OwnerRef;
use servo_entrypoint::access::{Access, AccessControl};
use servo_model::{SecurityContext, Timestamp};
use servo_runtime::serverless::Platform;
use servo_runtime::{Clock, SystemClock};
use servo_server::config::ServerConfig;
use servo_store::testkit::faulty::Plan;
use tokio::sync::{Notify, Semaphore};

use super::support::{Api, FUNCTION, WORKFLOW, definition_of};
use crate::harness::{Options, keys, wait_for};

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

/// SR-536, SR-012: invocations have both labels, and nobody is told of another tenant or of what is another user's.
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

/// The number of labels has a bound: the newest have one of their own, the others one together, and are not read one by one.
async fn labels_are_bounded() {
    let plan = Plan::new();
    // A look at the tenant for charts would be counted, too.
    let server = ServerConfig { series_every_ms: 3_600_000, ..ServerConfig::default() };
    let options = Options { auth: keys(), server, store_plan: Some(plan.clone()), ..Options::default() };
    let api = Api::with(options, &["acme-developer"]).await;
    for number in 0..52 {
        active(&api, "acme", &FUNCTION.replace(".echo.", &format!(".echo{number}.")), None).await;
    }
    let before = plan.calls_of("count_by_visible");
    let all = scraped(&api, "acme-viewer").await;
    assert_eq!(plan.calls_of("count_by_visible") - before, 51, "the tenant's, and those with a label");
    assert_eq!(all.len(), 51);
    assert!(all.contains(&sample("acme", "others", 2)), "{all:?}");
}

/// Never answers.
struct Stuck;

#[async_trait]
impl AccessControl for Stuck {
    async fn grants(&self, _: &SecurityContext, _: Access, _: &str, _: &OwnerRef) -> bool {
        std::future::pending().await
    }
}

/// A clock on which a scrape has waited long enough at once, or never.
struct Patience(bool);

impl Clock for Patience {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Only a scrape waits so long.
        match (duration == Duration::from_secs(4), self.0) {
            (true, true) => Box::pin(std::future::pending()),
            (true, false) => Box::pin(async {}),
            (false, _) => SystemClock.sleep(duration),
        }
    }
}

/// Who counts slowly does not cost a scrape the other metrics, and it says what is missing.
#[tokio::test]
async fn a_scrape_does_not_wait_for_the_counts_of_tenants() {
    let platform = |platform: &mut Platform| platform.access = Arc::new(Stuck);
    let options = Options { auth: keys(), clock: Arc::new(Patience(false)), platform, ..Options::default() };
    let api = Api::with(options, &["acme-developer"]).await;
    active(&api, "acme", WORKFLOW, Some("acme-developer")).await;
    // Whether the viewer sees what is another's has to be asked.
    let text = api.server.send(Method::GET, "/metrics", "acme-viewer", None).await.text;
    assert!(text.contains("\nservo_ready "), "{text}");
    assert!(!text.contains("servo_invocations{"), "{text}");
    assert!(text.ends_with("\nservo_invocations_left_out 1\n"), "{text}");
    // The platform sees everything, so nobody is asked.
    let text = api.server.send(Method::GET, "/metrics", "acme-platform-admin", None).await.text;
    assert!(text.contains(&sample("acme", WORKFLOW, 1)), "{text}");
    assert!(text.ends_with("\nservo_invocations_left_out 0\n"), "{text}");
}

/// Shares nothing, but says so only when it is let.
struct Gated;

static ASKED: Notify = Notify::const_new();
static GATE: Semaphore = Semaphore::const_new(0);

#[async_trait]
impl AccessControl for Gated {
    async fn grants(&self, _: &SecurityContext, _: Access, _: &str, _: &OwnerRef) -> bool {
        ASKED.notify_one();
        // It stays open: the permit is given back.
        drop(GATE.acquire().await);
        false
    }
}

/// SR-012: a private run that moves on while a scrape counts is told neither where it was nor where it is.
#[tokio::test]
async fn a_private_run_that_moves_on_is_not_counted() {
    let platform = |platform: &mut Platform| platform.access = Arc::new(Gated);
    let options = Options { auth: keys(), clock: Arc::new(Patience(true)), platform, ..Options::default() };
    let owner = "acme-developer";
    let api = Api::with(options, &[owner]).await;
    active(&api, "acme", FUNCTION, None).await;
    active(&api, "acme", WORKFLOW, Some(owner)).await;
    let request = json!({"entrypoint_id": WORKFLOW, "mode": "async", "params": {"do": "hang"}});
    let started = api.send(Method::POST, "/invocations", owner, Some(&request)).await;
    let path = format!("/invocations/{}", started.json["record"]["id"].as_str().unwrap());
    let until = async |status: &str| {
        wait_for(status, async || {
            let record = api.send(Method::GET, &path, owner, None).await.json;
            (record["status"] == status).then_some(())
        })
        .await;
    };
    until("running").await;
    let moved = async {
        ASKED.notified().await;
        let cancel = json!({"action": "cancel"});
        let answer = api.send(Method::POST, &format!("{path}:control"), owner, Some(&cancel)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        until("canceled").await;
        GATE.add_permits(1);
    };
    let (told, ()) = tokio::join!(scraped(&api, "acme-viewer"), moved);
    assert_eq!(told, [sample("acme", FUNCTION, 1)]);
}

crate::backend::on_every_store! {
    invocations_are_counted_by_tenant_and_entrypoint,
    labels_are_bounded,
}
