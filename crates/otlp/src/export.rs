//! The task that sends: batches from the queue, a few tries for each, and the rest when the server stops.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use servo_runtime::{Clock, Shutdown, Span};
use tokio::sync::mpsc;

use crate::encode;
use crate::settings::{Settings, Wrong};

/// How often one batch is sent before it is given up. Meanwhile the queue fills, so it is not for long.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// An answer is some bytes; a longer one is not read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct Exporter {
    http: reqwest::Client,
    settings: Settings,
    resource: Resource,
    clock: Arc<dyn Clock>,
    stopping: Shutdown,
    /// Whether the last batch was lost, so that a collector that is away is told once.
    failing: bool,
}

/// Why a batch was not taken.
struct Refused {
    /// Whether another try may go better, and after how long at least.
    again: Option<Duration>,
    reason: String,
}

impl Refused {
    fn passing(reason: String) -> Self {
        Self { again: Some(Duration::ZERO), reason }
    }
}

impl Exporter {
    pub(crate) fn new(
        settings: Settings,
        instance: &str,
        clock: Arc<dyn Clock>,
        stopping: Shutdown,
    ) -> Result<Self, Wrong> {
        let http = client(&settings)?;
        let resource = encode::resource(&settings, instance);
        Ok(Self { http, settings, resource, clock, stopping, failing: false })
    }

    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Span>) {
        let stopping = self.stopping.clone();
        loop {
            tokio::select! {
                biased;
                () = stopping.triggered() => break,
                first = queue.recv() => match first {
                    Some(first) => {
                        let batch = self.gather(first, &mut queue).await;
                        self.send(batch).await;
                    }
                    None => return,
                },
            }
        }
        queue.close();
        let mut batch = Vec::new();
        while queue.recv_many(&mut batch, self.settings.batch_max).await > 0 {
            self.send(std::mem::take(&mut batch)).await;
        }
    }

    /// Waits for more, until the batch is full or has waited long enough.
    async fn gather(&self, first: Span, queue: &mut mpsc::Receiver<Span>) -> Vec<Span> {
        let mut batch = vec![first];
        let most = self.settings.batch_max;
        let mut late = std::pin::pin!(self.clock.sleep(self.settings.delay));
        while batch.len() < most {
            let room = most - batch.len();
            tokio::select! {
                biased;
                () = self.stopping.triggered() => break,
                more = queue.recv_many(&mut batch, room) => if more == 0 { break },
                () = &mut late => break,
            }
        }
        batch
    }

    async fn send(&mut self, batch: Vec<Span>) {
        let count = batch.len() as u64;
        let body = encode::request(&self.resource, batch).encode_to_vec();
        let mut tries = 1;
        let refused = loop {
            match self.post(body.clone()).await {
                Ok(rejected) => {
                    exported(count.saturating_sub(rejected));
                    dropped("refused", rejected);
                    self.failing = false;
                    return;
                }
                Err(refused) => {
                    // Nobody waits for a second try while the server stops.
                    let Some(least) = refused.again.filter(|_| tries < TRIES && !self.stopping.is_triggered()) else {
                        break refused;
                    };
                    let pause = PAUSE.saturating_mul(1 << tries).max(least).min(PAUSE_MAX);
                    tries += 1;
                    tokio::select! {
                        biased;
                        () = self.stopping.triggered() => {}
                        () = self.clock.sleep(pause) => {}
                    }
                }
            }
        };
        dropped("export", count);
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(reason = refused.reason, "spans are not exported; servo_spans_dropped_total counts them");
        }
    }

    /// How many spans the collector did not want.
    async fn post(&self, body: Vec<u8>) -> Result<u64, Refused> {
        let mut response = self
            .http
            .post(&self.settings.url)
            .body(body)
            .send()
            .await
            // The address may hold a password.
            .map_err(|error| Refused::passing(cause(&error.without_url())))?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            let seconds = response.headers().get(RETRY_AFTER).and_then(|text| text.to_str().ok()?.parse().ok());
            let again = matches!(status, 429 | 502 | 503 | 504).then(|| Duration::from_secs(seconds.unwrap_or(0)));
            return Err(Refused { again, reason: format!("the collector answered {status}") });
        }
        let mut answer = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            if answer.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Ok(0);
            }
            answer.extend_from_slice(&chunk);
        }
        // They were taken; an answer that cannot be read changes nothing about that.
        let read = ExportTraceServiceResponse::decode(answer.as_slice()).unwrap_or_default();
        let rejected = read.partial_success.map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(rejected).unwrap_or(0))
    }
}

/// The innermost cause says more than the outermost.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn client(settings: &Settings) -> Result<reqwest::Client, Wrong> {
    let wrong = |reason: String| Wrong { key: "OTEL_EXPORTER_OTLP_HEADERS".to_owned(), reason };
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let read = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
        let (name, mut value) = read.ok_or_else(|| wrong(format!("`{name}` cannot be sent as a header")))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("servo-otlp/", env!("CARGO_PKG_VERSION")))
        .timeout(settings.timeout)
        // A redirect would carry the headers elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .default_headers(headers);
    if settings.url.starts_with("http://") {
        // No TLS, so the system's certificates need not be there, nor be read.
        builder = builder.tls_certs_only([]).no_proxy();
    }
    let unusable = |error: reqwest::Error| Wrong { key: "telemetry.otlp_endpoint".to_owned(), reason: cause(&error) };
    builder.build().map_err(unusable)
}

fn exported(count: u64) {
    metrics::counter!("servo_spans_exported_total").increment(count);
}

pub(crate) fn dropped(reason: &'static str, count: u64) {
    if count > 0 {
        metrics::counter!("servo_spans_dropped_total", "reason" => reason).increment(count);
    }
}
