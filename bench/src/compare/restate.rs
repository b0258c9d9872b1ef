//! Restate as a subject: one server as it ships, which syncs its log to disk before it answers, and a service on its Rust
//! SDK (`bench/peers`). The second kind has two partitions instead of 24, the setting that matters on two cores.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::json;

use super::load::{Call, NUMBER, Until, ask, run};
use super::process::{Process, free_address, until};
use super::subject::{Calls, Kind, READY_WITHIN, Subject};
use super::{PEERS, RESTATE, variable};

pub(super) async fn start(kind: Kind, dir: &Path) -> Result<Subject> {
    let dir = tempfile::tempdir_in(dir)?;
    let (address, admin) = (free_address()?, free_address()?);
    let server = server(kind, (address, admin), dir.path())?;
    let mut handler = Command::new(Path::new(&variable(PEERS)?).join("restate_service"));
    let handler = Process::start(&mut handler, &dir.path().join("handler.log"))?;
    let ready = handler.line()?;
    let at = ready["address"].as_str().context("the service says where it is")?;
    for health in [format!("http://{address}/restate/health"), format!("http://{admin}/health")] {
        until("ready", READY_WITHIN, async || ask(Method::GET, &health, None).await.map(Some)).await?;
    }
    let deployment = json!({"uri": format!("http://{at}")});
    let register =
        async || ask(Method::POST, &format!("http://{admin}/deployments"), Some(&deployment)).await.map(Some);
    until("registration", READY_WITHIN, register).await?;
    let subject = Subject { kind, address, calls: calls(), server, handler: Some(handler), admin, dir };
    let first = async || run(address, &subject.calls.empty, 1, Until::Calls(1)).await.map(Some);
    until("the first call", READY_WITHIN, first).await?;
    Ok(subject)
}

fn calls() -> Calls {
    let call = |path: &str, body: String| Call { path: path.to_owned(), headers: Vec::new(), body };
    Calls {
        empty: call("/Bench/empty", String::new()),
        empty_send: call("/Bench/empty/send", String::new()),
        script: None,
        steps: call("/Bench/steps", r#"{"steps":10}"#.to_owned()),
        steps_send: call("/Bench/steps/send", format!(r#"{{"number":{NUMBER},"steps":10}}"#)),
    }
}

pub(super) fn server(kind: Kind, (address, admin): (SocketAddr, SocketAddr), dir: &Path) -> Result<Process> {
    let mut command = Command::new(variable(RESTATE)?);
    command.args(["--no-logo", "--node-name", "bench", "--base-dir"]).arg(dir.join("data"));
    command.arg("--bind-address").arg(free_address()?.to_string());
    command.env("RESTATE_INGRESS__BIND_ADDRESS", address.to_string());
    command.env("RESTATE_ADMIN__BIND_ADDRESS", admin.to_string());
    command.env("RESTATE_LISTEN_MODE", "tcp").env("RESTATE_DISABLE_TELEMETRY", "true");
    if kind == Kind::RestateTuned {
        command.env("RESTATE_DEFAULT_NUM_PARTITIONS", "2");
        // A limit per partition: the same in sum as with 24.
        command.env("RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT", "12000");
    }
    Process::start(&mut command, &dir.join("server.log"))
}

pub(super) async fn open(admin: SocketAddr) -> Result<u64> {
    let query = json!({"query": "SELECT COUNT(*) AS open FROM sys_invocation WHERE status <> 'completed'"});
    let answer = ask(Method::POST, &format!("http://{admin}/query"), Some(&query)).await?;
    answer["rows"][0]["open"].as_u64().with_context(|| format!("no count in {answer}"))
}
