//! A closed loop of HTTP calls: so many lanes with a connection each, the next call after the answer to the last. The same
//! for every subject. It repeats nothing: an answer that is no success ends the measurement.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use reqwest::header;
use serde_json::Value;

use super::lane::Lane;

const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Where a body names the execution; the first is 1.
pub(crate) const NUMBER: &str = "{number}";

/// What one call sends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    /// JSON, or nothing at all.
    pub(crate) body: String,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Seconds(f64),
    Calls(usize),
}

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) calls: usize,
    pub(crate) per_second: f64,
    /// Of each call, in microseconds.
    pub(crate) times: Vec<f64>,
}

/// On a thread of its own: the load takes one core at most, and none from tasks of this program.
pub(crate) async fn run(address: SocketAddr, call: &Call, lanes: usize, until: Until) -> Result<Loaded> {
    let call = call.clone();
    tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(drive(address, &call, lanes, until))
    })
    .await?
}

async fn drive(address: SocketAddr, call: &Call, lanes: usize, until: Until) -> Result<Loaded> {
    let next = Arc::new(AtomicUsize::new(1));
    let mut connections = Vec::new();
    for _ in 0..lanes {
        connections.push(Lane::connect(address, call).await?);
    }
    let from = Instant::now();
    let lane = |mut connection: Lane| {
        let (next, path) = (next.clone(), call.path.clone());
        async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = match until {
                    Until::Seconds(seconds) => from.elapsed().as_secs_f64() >= seconds,
                    Until::Calls(calls) => number > calls,
                };
                if over {
                    return anyhow::Ok(times);
                }
                let began = Instant::now();
                let answered = tokio::time::timeout(CALL_TIMEOUT, connection.call(number)).await;
                answered.context("no answer within a minute")?.with_context(|| path.clone())?;
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
        }
    };
    let tasks: Vec<_> = connections.into_iter().map(|connection| tokio::spawn(lane(connection))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let seconds = from.elapsed().as_secs_f64();
    Ok(Loaded { calls: times.len(), per_second: times.len() as f64 / seconds, times })
}

/// One call outside any measurement, and its answer.
pub(crate) async fn ask(method: reqwest::Method, url: &str, body: Option<&Value>) -> Result<Value> {
    let client = reqwest::Client::builder().timeout(CALL_TIMEOUT).no_proxy().tls_certs_only([]).build()?;
    let mut request = client.request(method, url).header(header::ACCEPT, "application/json");
    if let Some(body) = body {
        request = request.json(body);
    }
    let answer = request.send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    if !status.is_success() {
        bail!("{url} answered {status}: {text}");
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// `servo-bench load ADDRESS PATH BODY LANES SECONDS [NAME=VALUE...]`: the load alone, beside a server under a profiler.
pub(crate) fn alone(arguments: &[String]) -> Result<()> {
    let [address, path, body, lanes, seconds, headers @ ..] = arguments else {
        bail!("usage: servo-bench load ADDRESS PATH BODY LANES SECONDS [NAME=VALUE...]");
    };
    let headers = headers.iter().map(|header| {
        let (name, value) = header.split_once('=').context("a header is NAME=VALUE")?;
        anyhow::Ok((name.to_owned(), value.to_owned()))
    });
    let call = Call { path: path.clone(), headers: headers.collect::<Result<_>>()?, body: body.clone() };
    let until = Until::Seconds(seconds.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut loaded = runtime.block_on(run(address.parse()?, &call, lanes.parse()?, until))?;
    loaded.times.sort_by(f64::total_cmp);
    let p50 = loaded.times.get(loaded.times.len() / 2).copied().unwrap_or_default();
    println!("{} calls, {:.0} a second, p50 {p50:.0} µs", loaded.calls, loaded.per_second);
    Ok(())
}
