//! Time that jumps.

use serde_json::json;

use super::{ended, open, start, text};
use crate::support::process::binary;

const DAYS: &str =
    "def main(ctx, input):\n    before = ctx.now()\n    ctx.sleep('1d')\n    ctx.sleep('2d')\n    return {'days': 3}\n";
const ASKS: &str = "def main(ctx, input):\n    ctx.sleep('1h')\n    return {'by': ctx.wait_signal('approval').by}\n";

/// Three days of waiting end at once, and what a person has yet to answer is still there to be answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_are_over_when_nothing_else_can_run() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("days.workflow.star"), DAYS).expect("a file");
    std::fs::write(folder.path().join("asks.workflow.star"), ASKS).expect("a file");
    let files = text(folder.path());
    let (servo, mut lines) = open(&["--ephemeral", "--no-sample", "--virtual-time", "--entrypoints", files]);
    lines.until(&["registered", "dev.local.days.v1"]);
    let asks = start(&servo, "workflow", "dev.local.asks.v1", "async", json!({})).await;
    let asks = asks["record"]["id"].as_str().expect("an id").to_owned();
    let days = start(&servo, "workflow", "dev.local.days.v1", "async", json!({})).await;
    let days = days["record"]["id"].as_str().expect("an id").to_owned();
    let record = ended(&servo, &days, "succeeded").await;
    let time = |name: &str| {
        let text = record["timestamps"][name].as_str().unwrap_or_else(|| panic!("{record}")).to_owned();
        servo_model::Timestamp::parse(&text).expect("a time")
    };
    let took = time("finished_at").since(time("created_at"));
    assert!(took.as_secs() >= 3 * 86_400, "{took:?}");
    lines.until(&["time jumps"]);
    // Thirty days of suspension are a limit, and nothing that time runs to by itself.
    ended(&servo, &asks, "suspended").await;
    let url = format!("{}{}/invocations/{asks}:signal", servo.url, super::API);
    let signal = json!({"signal_id": "one", "name": "approval", "payload": {"by": "Ada"}});
    let sent = super::client().post(url).json(&signal).send().await.expect("an answer");
    assert!(sent.status().is_success(), "{}", sent.status());
    let record = ended(&servo, &asks, "succeeded").await;
    assert_eq!(record["result"]["by"], "Ada", "{record}");
    assert!(servo.stop().success());
}

#[test]
fn a_kept_store_gets_no_events_of_the_future() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = binary();
    command.args(["dev", "--port", "0", "--no-open", "--virtual-time", "--data-dir"]).arg(folder.path().join("data"));
    let refused = command.output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("add --ephemeral"));
}
