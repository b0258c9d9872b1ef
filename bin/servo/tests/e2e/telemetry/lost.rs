//! A collector that does not answer, or is not there. No request waits for it or fails, and what is lost is counted.

use serde_json::json;
use tokio::net::TcpListener;

use crate::support::api::{Api, finished_run};
use crate::support::process::Servo;
use crate::support::until;

/// The value of the metric that counts lost spans, for a reason.
async fn dropped(url: &str, reason: &str) -> Option<u64> {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let text = client.get(format!("{url}/metrics")).send().await.ok()?.text().await.ok()?;
    let begin = format!("servo_spans_dropped_total{{reason=\"{reason}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_complete_while_the_collector_never_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    // Takes connections and says nothing, for as long as the test runs.
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            held.push(connection);
        }
        held
    });
    let servo = Servo::dev(
        folder.path(),
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "4"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"),
        ],
    )
    .expect("it starts");
    let api = Api::new();
    for _ in 0..20 {
        let (status, _) = api.get(&servo.url, "/v1/runs").await.expect("an answer");
        assert_eq!(status, 200);
    }
    finished_run(&servo.url, "beside a collector that hangs").await;
    // One is on its way, four wait, and there is no room for the others.
    assert!(dropped(&servo.url, "queue").await.is_some_and(|count| count >= 15));
    assert!(servo.stop().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_complete_without_the_collector_and_lost_spans_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody listens there any more.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let file = folder.path().join("servo.toml");
    let config = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[store]\npath = {:?}\n[engines]\nmock = true\n\
         [telemetry]\notlp_endpoint = \"http://{address}\"\n",
        folder.path().join("data")
    );
    std::fs::write(&file, config).expect("a file");
    let servo = Servo::server(&file, &[("OTEL_BSP_SCHEDULE_DELAY", "1")]).expect("it starts");
    finished_run(&servo.url, "without a collector").await;
    until("lost spans to be counted", async || dropped(&servo.url, "export").await.filter(|count| *count > 0)).await;
    let ready = Api::new().get(&servo.url, "/readyz").await.expect("an answer");
    assert_eq!((ready.0, ready.1["ready"].clone()), (200, json!(true)));
    assert!(servo.stop().success());
}
