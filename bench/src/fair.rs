//! A noisy neighbour over HTTP: one tenant floods the server with invocations; how long another's wait for their handler,
//! beside what they wait when it is alone. The handlers of both are in this program, so that one clock measures.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as InPath, State};
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::Args;
use crate::compare::load::{self, Call, Until};
use crate::compare::process::{Process, free_address};
use crate::stats::percentile;

const NOISY: &str = "Bearer noisy-tenants-key";
const QUIET: &str = "Bearer quiet-tenants-key";
const LANES: usize = 64;
/// Between two invocations of the quiet tenant.
const PACE: Duration = Duration::from_millis(25);
/// While the flood comes in, its handlers are slow, so that it is still there afterwards.
const SLOW: Duration = Duration::from_secs(5);
const USUAL: Duration = Duration::from_millis(20);
const WITHIN: Duration = Duration::from_secs(600);
/// Invocations of the quiet tenant when it has a crowd of its own.
const CROWD: usize = 1_000;
/// Between two invocations of each tenant that is neither noisy nor quiet.
const OTHERS_PACE: Duration = Duration::from_millis(200);

/// Who is there beside the quiet tenant.
struct Shape {
    /// Functions over which the flood is spread.
    functions: usize,
    /// Tenants that send a little all the time.
    others: usize,
}

const ONE_FUNCTION: Shape = Shape { functions: 1, others: 0 };
/// With the noisy and the quiet one, twenty tenants.
const MANY_FUNCTIONS: Shape = Shape { functions: 1_000, others: 18 };

/// What the handlers saw.
#[derive(Default)]
struct Seen {
    flooding: AtomicBool,
    /// Invocations of each function that began.
    flood: AtomicUsize,
    crowd: AtomicUsize,
    /// How many of the flood had begun with the first and the last of the crowd.
    flood_at: Mutex<Vec<usize>>,
    /// When each probe began.
    probes: Mutex<Vec<Option<Instant>>>,
}

async fn invoked(State(seen): State<Arc<Seen>>, InPath(function): InPath<String>, body: Bytes) -> impl IntoResponse {
    match function.as_str() {
        "probe" => {
            let now = Instant::now();
            let number = serde_json::from_slice::<Value>(&body).ok().and_then(|body| body["number"].as_u64());
            let place = number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX);
            if let Some(place) = seen.probes.lock().unwrap_or_else(|e| e.into_inner()).get_mut(place) {
                place.get_or_insert(now);
            }
        }
        "crowd" => {
            let before = seen.crowd.fetch_add(1, Relaxed);
            if before == 0 || before == CROWD - 1 {
                seen.flood_at.lock().unwrap_or_else(|e| e.into_inner()).push(seen.flood.load(Relaxed));
            }
            tokio::time::sleep(USUAL).await;
        }
        "other" => tokio::time::sleep(USUAL).await,
        _ => {
            seen.flood.fetch_add(1, Relaxed);
            tokio::time::sleep(if seen.flooding.load(Relaxed) { SLOW } else { USUAL }).await;
        }
    }
    ([("content-type", "application/json")], "null")
}

struct Bed {
    url: String,
    address: std::net::SocketAddr,
    client: reqwest::Client,
    seen: Arc<Seen>,
    shape: &'static Shape,
    _server: Process,
}

pub(crate) fn run(args: &Args, runtime: &Runtime) -> Result<()> {
    for shape in [&ONE_FUNCTION, &MANY_FUNCTIONS] {
        measure(args, runtime, shape)?;
    }
    Ok(())
}

fn measure(args: &Args, runtime: &Runtime, shape: &'static Shape) -> Result<()> {
    let dir = tempfile::tempdir_in(&args.dir)?;
    let servo = crate::server::servo(args)?;
    runtime.block_on(async {
        let bed = Bed::start(&servo, dir.path(), shape).await?;
        // Warm: connections, prepared statements, pages.
        bed.probe(40).await?;
        let solo = bed.probe(args.probes).await?;
        let accepted = bed.flood(args.flood).await?;
        let handled = bed.seen.flood.load(Relaxed);
        let others = bed.others();
        let beside = bed.probe(args.probes).await?;
        others.iter().for_each(tokio::task::JoinHandle::abort);
        let left = args.flood.saturating_sub(bed.seen.flood.load(Relaxed));
        if left == 0 {
            bail!("the flood was over before the measurement: try a larger --flood or fewer --probes");
        }
        let share = bed.share().await?;
        let (alone, flooded) = (percentile(&solo, 0.99), percentile(&beside, 0.99));
        println!(
            "## Fairness (SQLite, HTTP): {} invocations of one tenant over {} functions, another sends one every {} ms, {} more one every {} ms\n",
            args.flood,
            shape.functions,
            PACE.as_millis(),
            shape.others,
            OTHERS_PACE.as_millis()
        );
        println!("| from the request to the handler | alone | beside the flood | ratio | goal |\n|---|---|---|---|---|");
        let (p50, p50_beside) = (percentile(&solo, 0.5), percentile(&beside, 0.5));
        println!("| p50 ms | {p50:.1} | {p50_beside:.1} | {:.2} | |", p50_beside / p50);
        let goal = 2.0 * alone + 250.0;
        println!("| p99 ms | {alone:.1} | {flooded:.1} | {:.2} | ≤ {goal:.0} ms (2 × alone + 250) |", flooded / alone);
        println!(
            "\nThe flood was accepted at {accepted:.0}/s; {handled} of it had begun before the measurement and {left} had not after."
        );
        println!("Of {CROWD} more of the quiet tenant, sent at once, {share}\n");
        Ok(())
    })
}

fn flood_name(number: usize) -> String {
    format!("flood-{number}")
}

fn other(number: usize) -> String {
    format!("Bearer other-tenants-key-{number}")
}

impl Bed {
    async fn start(servo: &Path, dir: &Path, shape: &'static Shape) -> Result<Self> {
        let seen = Arc::new(Seen::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let handlers = format!("http://{}", listener.local_addr()?);
        let app =
            Router::new().route("/2015-03-31/functions/{name}/invocations", post(invoked)).with_state(seen.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let address = free_address()?;
        let key = |tenant: &str, bearer: &str| {
            let digest = servo_canon::Digest::of(bearer.trim_start_matches("Bearer ").as_bytes());
            format!(
                "[[auth.keys]]\nname = \"{tenant}\"\ntenant = \"{tenant}\"\nroles = [\"developer\"]\nsha256 = \"{digest}\"\nself_made = true\n"
            )
        };
        let config = format!(
            "[server]\nbind = \"{address}\"\n[store]\nkind = \"sqlite\"\npath = {:?}\n\
             [functions]\npush_allow_nets = [\"127.0.0.0/8\"]\n{}{}{}",
            dir.join("data"),
            key("noisy", NOISY),
            key("quiet", QUIET),
            (0..shape.others).map(|number| key(&format!("other-{number}"), &other(number))).collect::<String>()
        );
        let file = dir.join("servo.toml");
        std::fs::write(&file, config)?;
        let mut command = Command::new(servo);
        command.args(["server", "--ready-json", "--config"]).arg(&file);
        let server = Process::start(&mut command, &dir.join("server.log"))?;
        server.line()?;
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
        let bed = Self { url: format!("http://{address}"), address, client, seen, shape, _server: server };
        let flood = (0..shape.functions).map(|number| (flood_name(number), NOISY.to_owned()));
        let quiet = ["probe", "crowd"].map(|name| (name.to_owned(), QUIET.to_owned()));
        let others = (0..shape.others).map(|number| ("other".to_owned(), other(number)));
        for (name, bearer) in flood.chain(quiet).chain(others) {
            let spec = json!({"reach": {"kind": "push", "url": handlers}, "durable": false});
            let put = bed.client.put(format!("{}/v1/functions/{name}", bed.url)).header("authorization", bearer);
            put.json(&spec).send().await?.error_for_status()?;
        }
        Ok(bed)
    }

    fn call(name: &str, bearer: &'static str) -> Call {
        let headers = vec![
            ("x-amz-invocation-type".to_owned(), "Event".to_owned()),
            ("authorization".to_owned(), bearer.to_owned()),
        ];
        Call { path: format!("/2015-03-31/functions/{name}/invocations"), headers, body: "{}".to_owned() }
    }

    /// Sends the flood, and says how many a second were accepted.
    async fn flood(&self, count: usize) -> Result<f64> {
        self.seen.flooding.store(true, Relaxed);
        let (began, each) = (Instant::now(), count.div_ceil(self.shape.functions));
        let lanes = LANES.min(each);
        for number in 0..self.shape.functions {
            let call = Self::call(&flood_name(number), NOISY);
            load::run(self.address, &call, lanes, Until::Calls(each)).await?;
        }
        let accepted = (each * self.shape.functions) as f64 / began.elapsed().as_secs_f64();
        self.seen.flooding.store(false, Relaxed);
        // The handlers that were slow have ended.
        tokio::time::sleep(SLOW).await;
        Ok(accepted)
    }

    /// Tenants that send a little, until they are stopped.
    fn others(&self) -> Vec<tokio::task::JoinHandle<()>> {
        let one = |number: usize| {
            let (client, bearer) = (self.client.clone(), other(number));
            let url = format!("{}/2015-03-31/functions/other/invocations", self.url);
            tokio::spawn(async move {
                loop {
                    let request = client.post(&url).header("authorization", &bearer);
                    let request = request.header("x-amz-invocation-type", "Event").json(&json!({}));
                    if let Err(error) = request.send().await.and_then(reqwest::Response::error_for_status) {
                        crate::compare::note(&format!("another tenant's invocation was not taken: {error}"));
                    }
                    tokio::time::sleep(OTHERS_PACE).await;
                }
            })
        };
        (0..self.shape.others).map(one).collect()
    }

    /// Milliseconds from the request to the handler, of each.
    async fn probe(&self, count: usize) -> Result<Vec<f64>> {
        *self.seen.probes.lock().unwrap_or_else(|e| e.into_inner()) = vec![None; count];
        let from = Instant::now();
        let mut calls = Vec::new();
        for number in 0..count {
            let due = PACE * u32::try_from(number)?;
            tokio::time::sleep(due.saturating_sub(from.elapsed())).await;
            let path = "/2015-03-31/functions/probe/invocations";
            let request = self.client.post(format!("{}{path}", self.url)).header("authorization", QUIET);
            let request = request.header("x-amz-invocation-type", "Event").json(&json!({"number": number}));
            let sent = Instant::now();
            calls.push(tokio::spawn(async move {
                request.send().await?.error_for_status()?;
                anyhow::Ok(sent)
            }));
        }
        let mut sent = Vec::new();
        for call in calls {
            sent.push(call.await??);
        }
        let deadline = Instant::now() + WITHIN;
        loop {
            let begun = self.seen.probes.lock().unwrap_or_else(|e| e.into_inner()).clone();
            if let Some(begun) = begun.into_iter().collect::<Option<Vec<_>>>() {
                let waited =
                    begun.iter().zip(&sent).map(|(begun, sent)| begun.duration_since(*sent).as_secs_f64() * 1e3);
                return Ok(waited.collect());
            }
            if Instant::now() > deadline {
                bail!("some invocations did not begin within {} s", WITHIN.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What the quiet tenant gets when it has a crowd of its own. Half is fair.
    async fn share(&self) -> Result<String> {
        load::run(self.address, &Self::call("crowd", QUIET), LANES, Until::Calls(CROWD)).await?;
        let deadline = Instant::now() + WITHIN;
        while self.seen.crowd.load(Relaxed) < CROWD && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let flood_at = self.seen.flood_at.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let (first, last) = flood_at.first().zip(flood_at.get(1)).context("the crowd did not begin")?;
        let share = CROWD as f64 / (CROWD + (last - first)) as f64;
        Ok(format!("{:.0} % of what began until the last of them was theirs (fair 50, goal ≥ 40).", share * 100.0))
    }
}
