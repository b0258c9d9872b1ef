//! `servo demo crash`: an order is half done when its server is killed, and is finished by the next one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use servo_cli::args::Format;
use servo_cli::{Failure, Out, exit};
use servo_client::Client;
use servo_entrypoint::{
    EntrypointId, InvocationMode, InvocationRequest, InvocationSignal, InvocationStatus, InvocationTimelineEvent,
    TimelineEventType,
};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{order, order_params};

pub(crate) async fn run(out: &Out) -> Result<u8, Failure> {
    let folder = tempfile::tempdir().map_err(|error| failed(&error.to_string()))?;
    let mut first = Server::start(folder.path()).await?;
    out.note(&format!("started   server {} on an empty store\n", first.child.id()));
    let request = InvocationRequest {
        entrypoint_id: EntrypointId::from(order()),
        mode: Some(InvocationMode::Async),
        params: order_params("o-42", 80),
        dry_run: false,
        idempotency_key: None,
    };
    let id = first.client.start_invocation(&request).await?.record.invocation_id.to_string();
    // Paid, not yet approved: the worst moment to lose an order.
    let charged = |events: &[InvocationTimelineEvent]| count(events, "charge") == 1;
    let told = follow(&first.client, &id, 0, out, charged).await?.len();
    let pid = first.child.id();
    first.child.kill().and_then(|()| first.child.wait()).map_err(|error| failed(&error.to_string()))?;
    out.note(&format!("\nkilled    kill -9 {pid}, in the middle of the order\n"));

    let began = Instant::now();
    let second = Server::start(folder.path()).await?;
    let ready = began.elapsed().as_millis();
    out.note(&format!("started   server {} on the same store, ready after {ready} ms\n", second.child.id()));
    let payload = json!({"yes": true, "by": "you"});
    let approval = InvocationSignal { signal_id: "demo".to_owned(), name: "approval".to_owned(), payload };
    second.client.signal_invocation(&id, &approval).await?;
    let events = follow(&second.client, &id, told, out, |_| false).await?;
    let record = second.client.invocation(&id).await?.into_value();
    let steps = ["reserve", "charge", "ship books", "ship games"];
    let once = steps.iter().all(|step| count(&events, step) == 1);
    let result = record.result.unwrap_or(Value::Null);
    let summary = json!({"invocationId": id, "status": record.status.as_str(), "readyAfterMs": ready,
        "everyStepOnce": once, "result": result});
    if out.format() == Format::Table {
        let whole = serde_json::to_string_pretty(&result).unwrap_or_default();
        let steps = if once { "every step is recorded once" } else { "a step is missing or recorded twice" };
        out.text(&format!("\n{}: {steps}\n{whole}", record.status.as_str()))?;
    } else {
        out.text(&summary.to_string())?;
    }
    Ok(if once && record.status == InvocationStatus::Succeeded { exit::OK } else { exit::ERROR })
}

/// How often a step of this name has ended well.
fn count(events: &[InvocationTimelineEvent], step: &str) -> usize {
    let is_it = |event: &&InvocationTimelineEvent| {
        event.event_type == TimelineEventType::StepCompleted && event.step_name.as_deref() == Some(step)
    };
    events.iter().filter(is_it).count()
}

/// Tells what happens to an invocation until it is as expected or over. `told` is how much was told before.
async fn follow(
    client: &Client,
    id: &str,
    told: usize,
    out: &Out,
    until: impl Fn(&[InvocationTimelineEvent]) -> bool,
) -> Result<Vec<InvocationTimelineEvent>, Failure> {
    let mut timeline = client.follow_timeline(id);
    let mut events = Vec::new();
    while !until(&events) {
        let Some(event) = timeline.next().await? else { break };
        if events.len() >= told && event.event_type != TimelineEventType::CheckpointCreated {
            let step = event.step_name.as_deref().unwrap_or_default();
            out.note(&format!("  {:<22} {step}", event.event_type.as_str()));
        }
        events.push(event.into_value());
    }
    Ok(events)
}

/// A server of our own, which does not outlive us.
struct Server {
    child: Child,
    client: Client,
}

impl Server {
    async fn start(folder: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["dev", "--port", "0", "--no-open", "--quiet", "--ready-json", "--data-dir"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
        let ready = match child.stdout.take().map(tokio::process::ChildStdout::from_std) {
            Some(Ok(stdout)) => BufReader::new(stdout).lines().next_line().await.ok().flatten(),
            Some(Err(_)) | None => None,
        };
        let ready: Option<Value> = ready.and_then(|line| serde_json::from_str(&line).ok());
        let connected = ready.and_then(|ready| {
            let key = ready["key"].as_str().map(str::to_owned);
            Client::new(ready["api"].as_str()?, key).ok()
        });
        match connected {
            Some(client) => Ok(Self { child, client }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(failed("the server did not start").hint("`servo dev --ephemeral` says why"))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(what: &str) -> Failure {
    Failure::new(exit::ERROR, what)
}
