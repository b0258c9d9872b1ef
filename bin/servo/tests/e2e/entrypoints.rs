//! Entrypoints over HTTP, with their code in real children of the real server.

use serde_json::{Value, json};

use crate::support::process::Servo;
use crate::support::until;

const FUNCTION: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.function.v1~";
const WORKFLOW: &str = "gts.x.core.serverless.entrypoint.v1~x.core.serverless.workflow.v1~";

/// A client of one server's API.
struct Platform {
    client: reqwest::Client,
    base: String,
}

impl Platform {
    fn of(servo: &Servo) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().expect("a client without certificates of its own");
        Self { client, base: format!("{}/api/serverless-runtime/v1", servo.url) }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.client.post(format!("{}{path}", self.base)).json(body).send().await.expect("an answer");
        (response.status().as_u16(), response.json().await.expect("JSON"))
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.client.get(format!("{}{path}", self.base)).send().await.expect("an answer");
        (response.status().as_u16(), response.json().await.expect("JSON"))
    }

    /// Registers a definition and activates it.
    async fn deploy(&self, definition: &Value) -> String {
        let (status, registered) = self.post("/entrypoints", definition).await;
        assert_eq!(status, 201, "{registered}");
        let id = registered["id"].as_str().expect("an id");
        let (status, active) = self.post(&format!("/entrypoints/{id}:status"), &json!({"action": "activate"})).await;
        assert_eq!((status, &active["status"]), (200, &json!("active")), "{active}");
        registered["entrypoint_id"].as_str().expect("an address").to_owned()
    }

    async fn start(&self, address: &str, mode: &str, params: Value) -> Value {
        let body = json!({"entrypoint_id": address, "mode": mode, "params": params});
        let (status, answer) = self.post("/invocations", &body).await;
        assert_eq!(status, 201, "{answer}");
        answer["record"].clone()
    }

    async fn until(&self, id: &str, status: &str) -> Value {
        until(&format!("{id} is {status}"), async || {
            let (_, record) = self.get(&format!("/invocations/{id}")).await;
            (record["status"] == status).then_some(record)
        })
        .await
    }

    async fn timeline(&self, id: &str) -> Vec<String> {
        let (status, page) = self.get(&format!("/invocations/{id}/timeline?limit=200")).await;
        assert_eq!(status, 200, "{page}");
        let items = page["items"].as_array().expect("a list").iter();
        items.map(|event| event["event_type"].as_str().expect("a word").to_owned()).collect()
    }
}

fn definition(kind: &str, name: &str, source: &str) -> Value {
    let mut document = json!({
        "entrypoint_id": format!("{kind}vendor.app.{name}.v1~"),
        "version": "1.0.0",
        "owner": {"owner_type": "tenant", "id": "default", "tenant_id": "default"},
        "title": name,
        "schema": {"params": {"type": "object"}, "returns": {"type": "object"}},
        "traits": {
            "invocation": {"supported": ["sync", "async"], "default": "async"},
            "limits": {"timeout_seconds": 20, "memory_mb": 64, "cpu": 1.0},
            "retry": {"max_attempts": 3, "initial_delay_ms": 10},
        },
        "implementation": {
            "adapter": "gts.x.core.serverless.adapter.starlark.v1~", "kind": "code",
            "code": {"language": "starlark", "source": source},
        },
    });
    if kind == WORKFLOW {
        document["traits"]["workflow"] = json!({
            "compensation": {}, "checkpointing": {"strategy": "automatic"}, "max_suspension_days": 1
        });
    }
    document
}

fn id(record: &Value) -> &str {
    record["invocation_id"].as_str().expect("an id")
}

/// SR-223, SR-234: the seed's two definitions as they are written, but for their tenant and owner, which are this server's, and their
/// addresses: posted as they stand they are another tenant's, and refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_definitions_run_as_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let example = |text: &str, address: &str| {
        let mut document: Value = serde_json::from_str(text).expect("JSON");
        document["tenant_id"] = "default".into();
        document["owner"] = json!({"owner_type": "tenant", "id": "default", "tenant_id": "default"});
        document["entrypoint_id"] = address.into();
        document
    };
    let tax = example(
        include_str!("../../../../spec/gts/examples/function.json"),
        &format!("{FUNCTION}vendor.app.billing.calculate_tax.v1~"),
    );
    let address = platform.deploy(&tax).await;
    let record = platform.start(&address, "sync", json!({"invoice_id": "i1", "amount": 100.0})).await;
    assert_eq!(record["status"], "succeeded", "{record}");
    let near = |value: &Value, wanted: f64| value.as_f64().is_some_and(|value| (value - wanted).abs() < 1e-6);
    assert!(near(&record["result"]["tax"], 10.0) && near(&record["result"]["total"], 110.0), "{record}");
    assert!(record["observability"]["metrics"]["cpu_time_ms"].is_u64(), "{record}");

    let order = example(
        include_str!("../../../../spec/gts/examples/workflow.json"),
        &format!("{WORKFLOW}vendor.app.orders.process_order.v1~"),
    );
    let (status, refused) = platform.post("/entrypoints:validate", &order).await;
    assert_eq!(status, 422, "its handler is not there: {refused}");
    let mut rollback = definition(FUNCTION, "orders.rollback_order", "def main(ctx, input):\n  return {}\n");
    rollback["schema"]["params"] = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
    platform.deploy(&rollback).await;
    let address = platform.deploy(&order).await;
    let record = platform.start(&address, "async", json!({"order_id": "o1", "customer_id": "c1"})).await;
    let record = platform.until(id(&record), "succeeded").await;
    assert_eq!(record["result"], json!({"status": "completed"}));
}

const APPROVAL: &str = r#"
def reserve(order):
    return {"reservation": "r-" + order}

def main(ctx, input):
    held = ctx.step("reserve", reserve, args = [input.order_id])
    ctx.sleep(1)
    approved = ctx.wait_signal("approval")
    if not approved.yes:
        ctx.fail("not approved", type = "gts.x.core.serverless.err.v1~vendor.app.orders.refused.v1~")
    return {"reservation": held.reservation, "by": approved.by}
"#;

/// SR-226, SR-232: a workflow goes on after kill -9 of its server, and does nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_survives_the_death_of_its_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let address = platform.deploy(&definition(WORKFLOW, "orders.approve", APPROVAL)).await;
    let run = platform.start(&address, "async", json!({"order_id": "7"})).await;
    platform.until(id(&run), "suspended").await;
    servo.kill();

    let servo = Servo::dev(folder.path(), &[]).expect("it starts again");
    let platform = Platform::of(&servo);
    let signal = json!({"signal_id": "s1", "name": "approval", "payload": {"yes": true, "by": "ada"}});
    for _ in 0..2 {
        let (status, answer) = platform.post(&format!("/invocations/{}:signal", id(&run)), &signal).await;
        assert_eq!(status, 200, "{answer}");
    }
    let record = platform.until(id(&run), "succeeded").await;
    assert_eq!(record["result"], json!({"reservation": "r-7", "by": "ada"}));
    let told = platform.timeline(id(&run)).await;
    for once in ["started", "step_started", "step_completed", "signal_received", "succeeded"] {
        assert_eq!(told.iter().filter(|event| *event == once).count(), 1, "{once} in {told:?}");
    }
}

/// SR-103, SR-108, SR-231: what a failed saga has done is taken back by the entrypoint it names, with what it needs for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_saga_is_taken_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let undo = "def main(ctx, input):\n  return {\"released\": input.workflow_state_snapshot.reserve.reservation}\n";
    let mut rollback = definition(FUNCTION, "orders.undo", undo);
    rollback["schema"]["params"] = json!({"$ref": "gts://gts.x.core.serverless.compensation_context.v1~"});
    let rollback = platform.deploy(&rollback).await;
    let mut order = definition(WORKFLOW, "orders.approve", APPROVAL);
    order["traits"]["workflow"]["compensation"]["on_failure"] = rollback.clone().into();
    let address = platform.deploy(&order).await;
    let run = platform.start(&address, "async", json!({"order_id": "8"})).await;
    platform.until(id(&run), "suspended").await;
    let refusal = json!({"signal_id": "s1", "name": "approval", "payload": {"yes": false, "by": "bob"}});
    platform.post(&format!("/invocations/{}:signal", id(&run)), &refusal).await;
    let record = platform.until(id(&run), "compensated").await;
    assert_eq!(record["error"]["message"], "not approved", "{record}");
    assert_eq!(record["error"]["error_type_id"], "gts.x.core.serverless.err.v1~vendor.app.orders.refused.v1~");
    let (_, page) = platform.get("/invocations?%24filter=status%20eq%20%27succeeded%27").await;
    let undone =
        page["items"].as_array().expect("a list").iter().find(|item| item["entrypoint_id"] == rollback.as_str());
    let undone = undone.unwrap_or_else(|| panic!("the handler's own run: {page}"));
    assert_eq!(undone["result"], json!({"released": "r-8"}));
    assert_eq!(undone["params"]["trigger"], "failure");
}

/// SR-248: also a run that was killed has used something.
fn measured(record: &Value) {
    let metrics = &record["observability"]["metrics"];
    for name in ["cpu_time_ms", "max_memory_used_mb"] {
        assert!(metrics[name].as_u64().is_some_and(|used| used > 0), "{name}: {record}");
    }
}

/// SR-029, SR-091: hostile code ends its own run with the limit named, and wrong code is not registered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_code_ends_only_its_own_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let bomb =
        "def main(ctx, input):\n  text = \"x\" * 1024\n  for _ in range(40):\n    text = text + text\n  return {}\n";
    let bomb = platform.deploy(&definition(FUNCTION, "hostile.bomb", bomb)).await;
    let good = platform.deploy(&definition(FUNCTION, "good", "def main(ctx, input):\n  return {\"n\": 1}\n")).await;
    let record = platform.start(&bomb, "sync", json!({})).await;
    assert_eq!(record["status"], "failed", "{record}");
    assert_eq!(record["error"]["category"], "resource_limit", "{record}");
    assert_eq!(record["error"]["details"]["limit"], "memory_mb", "{record}");
    measured(&record);
    // By CPU time or by the clock, whichever is first.
    let endless = "def main(ctx, input):\n  for a in range(1000000000):\n    for b in range(1000000000):\n      pass\n";
    let mut spin = definition(FUNCTION, "hostile.spin", endless);
    spin["traits"]["limits"]["timeout_seconds"] = 1.into();
    let spin = platform.deploy(&spin).await;
    let record = platform.start(&spin, "sync", json!({})).await;
    let category = record["error"]["category"].as_str();
    assert!(matches!(category, Some("timeout" | "resource_limit")), "{record}");
    measured(&record);
    let record = platform.start(&good, "sync", json!({})).await;
    assert_eq!(record["result"], json!({"n": 1}));

    let (status, refused) =
        platform.post("/entrypoints", &definition(FUNCTION, "wrong", "def main(ctx, input)\n  return 1\n")).await;
    assert_eq!(status, 422, "{refused}");
    let location = &refused["issues"][0]["location"];
    assert_eq!(location["path"], "$.implementation.code.source", "{refused}");
    assert!(location["line"].is_u64() && location["column"].is_u64(), "{refused}");
}

/// SR-032: `memory_mb` bounds what a program of the real server may hold, whatever the server's allocator keeps in store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_is_bounded_in_children_of_the_real_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let texts = "def main(ctx, input):\n  return {\"n\": len([\"x\" * 500000 for i in range(input.n)])}\n";
    let lists = "def main(ctx, input):\n  return {\"n\": len([[i] for i in range(input.n)])}\n";
    // A text has half a megabyte, a list about a hundred bytes.
    for (name, source, memory_mb, within, beyond) in [
        ("tiny.texts", texts, 1, 1, 200),
        ("tiny.lists", lists, 1, 5_000, 1_000_000),
        ("small.texts", texts, 16, 20, 200),
        ("small.lists", lists, 16, 80_000, 1_000_000),
        ("large.texts", texts, 128, 200, 800),
    ] {
        let mut document = definition(FUNCTION, name, source);
        document["traits"]["limits"]["memory_mb"] = memory_mb.into();
        let address = platform.deploy(&document).await;
        // Once more in the same child: what a call has used is there for the next one.
        for _ in 0..2 {
            let record = platform.start(&address, "sync", json!({"n": within})).await;
            assert_eq!(record["result"], json!({"n": within}), "{name}: {record}");
        }
        let record = platform.start(&address, "sync", json!({"n": beyond})).await;
        assert_eq!(record["error"]["category"], "resource_limit", "{name}: {record}");
        assert_eq!(record["error"]["details"], json!({"limit": "memory_mb", "value": memory_mb}), "{name}: {record}");
    }
}

/// SR-101: as many checkpoints as the strategy says, and the same result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_are_made_by_strategy() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    for (strategy, says, made) in [("automatic", "", 3), ("manual", "ctx.checkpoint()", 1), ("disabled", "", 0)] {
        let source = format!(
            "def main(ctx, input):\n    for name in [\"a\", \"b\"]:\n        ctx.step(name, lambda: 1)\n    {says}\n    \
             return {{\"sum\": ctx.step(\"c\", lambda: 3)}}\n"
        );
        let mut document = definition(WORKFLOW, strategy, &source);
        document["traits"]["workflow"]["checkpointing"]["strategy"] = strategy.into();
        let address = platform.deploy(&document).await;
        let record = platform.start(&address, "sync", json!({})).await;
        assert_eq!((&record["status"], &record["result"]), (&json!("succeeded"), &json!({"sum": 3})), "{record}");
        let told = platform.timeline(id(&record)).await;
        let count = told.iter().filter(|event| *event == "checkpoint_created").count();
        assert_eq!(count, made, "{strategy}: {told:?}");
    }
}

/// SR-181: a run that hangs says in which step, long before its time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_step_that_a_run_hangs_in_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let source = "def spin():\n    for a in range(1000000000):\n        for b in range(1000000000):\n            pass\n\n\
                  def main(ctx, input):\n    ctx.step(\"begin\", lambda: 1)\n    ctx.step(\"spin\", spin)\n    return {}\n";
    let address = platform.deploy(&definition(WORKFLOW, "hangs", source)).await;
    let run = platform.start(&address, "async", json!({})).await;
    let named = until("the step is in the timeline", async || {
        let (_, page) = platform.get(&format!("/invocations/{}/timeline?limit=200", id(&run))).await;
        let events = page["items"].as_array().expect("a list").clone();
        events.into_iter().find(|event| event["step_name"] == "spin")
    })
    .await;
    assert_eq!((&named["event_type"], &named["status"]), (&json!("step_started"), &json!("running")), "{named}");
    let told = platform.timeline(id(&run)).await;
    assert_eq!(told.iter().filter(|event| *event == "step_completed").count(), 1, "{told:?}");
    let (status, answer) =
        platform.post(&format!("/invocations/{}:control", id(&run)), &json!({"action": "cancel"})).await;
    assert_eq!((status, &answer["status"]), (200, &json!("canceled")), "{answer}");
}

/// The threads of a process that have a name: how nice each is, and how often it has gone to sleep.
fn threads(pid: u32, name: &str) -> Vec<(i64, u64)> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process has threads");
    let one = |path: std::path::PathBuf| {
        let read = |what: &str| std::fs::read_to_string(path.join(what)).ok();
        if read("comm")?.trim() != name {
            return None;
        }
        let (stat, status) = (read("stat")?, read("status")?);
        // The 19th field; the name before the others may hold anything.
        let nice = stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()?;
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((nice, slept.trim().parse().ok()?))
    };
    folder.flatten().filter_map(|entry| one(entry.path())).collect()
}

/// A run that nobody waits for is done by threads that yield to the others, one that somebody waits for is not.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_waits_for_is_done_by_threads_that_yield() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(folder.path(), &[]).expect("it starts");
    let platform = Platform::of(&servo);
    let address = platform.deploy(&definition(FUNCTION, "quick", "def main(ctx, input):\n  return {}\n")).await;
    let slept = || threads(servo.pid(), "servo-behind").iter().map(|(_, slept)| slept).sum::<u64>();
    let front = threads(servo.pid(), "tokio-rt-worker").iter().map(|(nice, _)| *nice).min().expect("threads");
    for (nice, _) in threads(servo.pid(), "servo-behind") {
        assert_eq!(nice, (front + 10).min(19));
    }
    let before = slept();
    for _ in 0..5 {
        let record = platform.start(&address, "sync", json!({})).await;
        assert_eq!(record["status"], "succeeded", "{record}");
    }
    assert_eq!(slept(), before, "callers waited for a thread that yields");
    let record = platform.start(&address, "async", json!({})).await;
    platform.until(id(&record), "succeeded").await;
    assert!(slept() > before, "nothing was done behind");
}
