//! Servo as a subject: `servo dev` on SQLite with `synchronous=FULL`, and handlers on the Rust SDK that it calls.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::json;

use super::load::{Call, NUMBER, ask};
use super::process::{Process, free_address};
use super::subject::{Calls, Kind, Subject};

pub(crate) async fn start(dir: &Path) -> Result<Subject> {
    start_program(&beside_this()?, dir).await
}

fn beside_this() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("servo"))
}

/// With any build of the server; the handlers are always those of this program.
pub(crate) async fn start_program(program: &Path, dir: &Path) -> Result<Subject> {
    let dir = tempfile::tempdir_in(dir)?;
    let address = free_address()?;
    let server = server_of(program, address, dir.path())?;
    let mut handler = Command::new(std::env::current_exe()?);
    let handler =
        Process::start(handler.arg("handler").arg(format!("http://{address}")), &dir.path().join("handler.log"))?;
    let ready = handler.line()?;
    let at = ready["address"].as_str().context("the handlers say where they are")?;
    for (name, durable) in [("empty", false), ("steps", true)] {
        let spec = json!({"reach": {"kind": "push", "url": format!("http://{at}")}, "durable": durable});
        ask(Method::PUT, &format!("http://{address}/v1/functions/{name}"), Some(&spec)).await?;
    }
    let mut calls = calls();
    calls.script = Some(script(address).await?);
    let handler = Some(handler);
    let subject = Subject { kind: Kind::Servo, address, calls, server, handler, admin: address, dir };
    let url = format!("http://{address}{}", subject.calls.empty.path);
    ask(Method::POST, &url, Some(&json!({}))).await?;
    Ok(subject)
}

const EMPTY: &str = "def main(ctx, input):\n    return {}\n";

/// The function that is in the folder of the server.
async fn script(address: SocketAddr) -> Result<Call> {
    let url = format!("http://{address}/api/serverless-runtime/v1/entrypoints");
    let listed = ask(Method::GET, &url, None).await?;
    let id = listed["items"][0]["entrypoint_id"].as_str().with_context(|| format!("no entrypoint in {listed}"))?;
    let body = json!({"entrypoint_id": id, "mode": "sync", "params": {}}).to_string();
    Ok(Call { path: "/api/serverless-runtime/v1/invocations".to_owned(), headers: Vec::new(), body })
}

pub(super) async fn start_together(dir: &Path) -> Result<Subject> {
    let dir = tempfile::tempdir_in(dir)?;
    let address = free_address()?;
    let server = together(address, dir.path())?;
    let kind = Kind::ServoTogether;
    Ok(Subject { kind, address, calls: calls(), server, handler: None, admin: address, dir })
}

pub(super) fn together(address: SocketAddr, dir: &Path) -> Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["together", &address.port().to_string()]).arg(dir.join("data"));
    let server = Process::start(&mut command, &dir.join("server.log"))?;
    server.line()?;
    Ok(server)
}

fn calls() -> Calls {
    let call = |name: &str, body: String| Call {
        path: format!("/2015-03-31/functions/{name}/invocations"),
        headers: Vec::new(),
        body,
    };
    let sent = |call: Call| Call { headers: vec![("x-amz-invocation-type".to_owned(), "Event".to_owned())], ..call };
    let numbered = format!(r#"{{"number":{NUMBER},"steps":10}}"#);
    Calls {
        empty: call("empty", "{}".to_owned()),
        empty_send: sent(call("empty", "{}".to_owned())),
        script: None,
        steps: call("steps", r#"{"steps":10}"#.to_owned()),
        steps_send: sent(call("steps", numbered)),
    }
}

/// An execution that waits for a day, only accepted.
pub(crate) fn wait_send() -> Call {
    Call { body: r#"{"steps":0,"wait":86400}"#.to_owned(), ..calls().steps_send }
}

/// The server, once it says that it is ready.
pub(super) fn server(address: SocketAddr, dir: &Path) -> Result<Process> {
    server_of(&beside_this()?, address, dir)
}

fn server_of(program: &Path, address: SocketAddr, dir: &Path) -> Result<Process> {
    let mut command = Command::new(program);
    let scripts = dir.join("scripts");
    std::fs::create_dir_all(&scripts)?;
    std::fs::write(scripts.join("empty.star"), EMPTY)?;
    let port = address.port().to_string();
    command.args(["dev", "--quiet", "--no-open", "--ready-json", "--no-sample", "--port", &port]);
    command.arg("--entrypoints").arg(scripts);
    let server = Process::start(command.arg("--data-dir").arg(dir.join("data")), &dir.join("server.log"))?;
    server.line()?;
    Ok(server)
}

pub(super) async fn open(address: SocketAddr) -> Result<u64> {
    let view = ask(Method::GET, &format!("http://{address}/v1/functions/steps"), None).await?;
    let versions = view["versions"].as_array().context("a function has versions")?;
    Ok(versions.iter().filter_map(|version| version["openRuns"].as_u64()).sum())
}
