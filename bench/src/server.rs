//! The whole server: idle memory, and the start after a kill with many open runs.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::Args;
use crate::compare::process::resident_mb;

/// When a start that does not take up its work is given up.
const HAND_OUT_PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    let servo = servo(args)?;
    let dir = tempfile::tempdir_in(&args.dir)?;
    let (mut idle, _, ready_empty) = start(&servo, dir.path())?;
    std::thread::sleep(Duration::from_secs(5));
    let idle_mb = resident_mb(idle.id())?;
    stop(&mut idle)?;

    let dir = tempfile::tempdir_in(&args.dir)?;
    let (mut child, url, _) = start(&servo, dir.path())?;
    let began = Instant::now();
    runtime.block_on(open_runs(&url, args.open_runs))?;
    let per_second = args.open_runs as f64 / began.elapsed().as_secs_f64();
    child.kill()?;
    child.wait()?;
    let (mut child, url, ready_full) = start(&servo, dir.path())?;
    let serving = Instant::now();
    runtime.block_on(async { reqwest::get(format!("{url}/readyz")).await?.error_for_status() })?;
    let first_answer = serving.elapsed();
    let dispatched = runtime.block_on(all_handed_out(&url, args.open_runs, serving))?;
    stop(&mut child)?;
    println!("## Server (SQLite)\n");
    println!("| | | goal |\n|---|---|---|");
    println!("| ready, empty store | {:.0} ms | ≤ 2,000 ms |", ready_empty.as_secs_f64() * 1e3);
    println!(
        "| ready after kill -9 with {} open runs | {:.0} ms (first answer {:.0} ms later) | ≤ 2,000 ms |",
        args.open_runs,
        ready_full.as_secs_f64() * 1e3,
        first_answer.as_secs_f64() * 1e3
    );
    println!(
        "| all of their steps handed out again, after ready | {:.0} ms | ≤ 10,000 ms |",
        dispatched.as_secs_f64() * 1e3
    );
    println!("| runs started over HTTP before the kill | {per_second:.0}/s | |");
    println!("| resident memory, idle | {idle_mb:.1} MB | ≤ 40 MB |\n");
    Ok(())
}

pub(crate) fn servo(args: &Args) -> Result<PathBuf> {
    let beside = std::env::current_exe()?.with_file_name("servo");
    let path = args.servo.clone().unwrap_or(beside);
    if !path.exists() {
        bail!("{} is not there; build it with `cargo build --release`", path.display());
    }
    Ok(path)
}

/// Starts the server and waits for its ready line.
fn start(servo: &Path, data: &Path) -> Result<(Child, String, Duration)> {
    let began = Instant::now();
    let mut child = Command::new(servo)
        .args(["dev", "--port", "0", "--no-open", "--ready-json", "--no-sample", "--data-dir"])
        .arg(data)
        // Every open run has a step to hand out; the steps wait and hold nothing but their places.
        .env("SERVO__RUNTIME__DISPATCH__IN_FLIGHT_MAX", "1000000")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let ready = began.elapsed();
    let document: Value = serde_json::from_str(&line).with_context(|| format!("not a ready line: {line:?}"))?;
    let url = document["api"].as_str().context("the ready line has no address")?.to_owned();
    Ok((child, url, ready))
}

fn stop(child: &mut Child) -> Result<()> {
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    child.wait()?;
    Ok(())
}

/// How long a server that was just started takes until it has handed out so many steps.
async fn all_handed_out(url: &str, count: usize, from: Instant) -> Result<Duration> {
    loop {
        let text = reqwest::get(format!("{url}/metrics")).await?.error_for_status()?.text().await?;
        let line = text.lines().find_map(|line| line.strip_prefix("servo_dispatch_wait_seconds_count"));
        let handed_out = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_default();
        if handed_out >= count as f64 {
            return Ok(from.elapsed());
        }
        if from.elapsed() > HAND_OUT_PATIENCE {
            bail!("{handed_out} of {count} steps were handed out in {HAND_OUT_PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Starts runs that stay open: their first step sleeps for an hour.
async fn open_runs(url: &str, count: usize) -> Result<()> {
    let plan = json!({"planId": "open", "planVersion": "1", "schemaVersion": "v1",
        "steps": [{"stepId": "wait", "with": {"sleepMs": 3_600_000}}, {"stepId": "then", "dependsOn": ["wait"]}]});
    let sha256 = servo_canon::fingerprint(&plan)?;
    let body = Arc::new(
        json!({"plan": plan, "planRef": {"sha256": sha256, "schemaVersion": "v1", "planId": "open", "planVersion": "1"}}),
    );
    let client = reqwest::Client::new();
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut callers = Vec::new();
    for _ in 0..64 {
        let (client, body, next, url) = (client.clone(), body.clone(), next.clone(), url.to_owned());
        callers.push(tokio::spawn(async move {
            while next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < count {
                client.post(format!("{url}/v1/runs")).json(&*body).send().await?.error_for_status()?;
            }
            anyhow::Ok(())
        }));
    }
    for caller in callers {
        caller.await??;
    }
    Ok(())
}
