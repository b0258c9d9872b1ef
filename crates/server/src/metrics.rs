//! Every metric of the server, by name, and the text that `/metrics` answers. Labels are few and bounded.

mod tenants;

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use servo_model::SecurityContext;
use servo_runtime::Runtime;

use crate::app::App;

/// The media type of the Prometheus text format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Seconds: from a read out of memory to a run of a day.
const BUCKETS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0, 86_400.0];

/// The process's recorder: metrics are global, so there is one however many servers a process has.
static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

#[derive(Clone)]
pub(crate) struct Metrics(PrometheusHandle);

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub(crate) fn install() -> Self {
        let handle = HANDLE.get_or_init(|| {
            let builder =
                PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS);
            let recorder = builder.expect("the list of buckets is not empty").build_recorder();
            let handle = recorder.handle();
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("metrics go to a recorder that was there before; /metrics stays empty");
            }
            describe();
            handle
        });
        Self(handle.clone())
    }

    /// Measures what is a state rather than an event, and renders everything: what concerns tenants, for a caller who is known.
    pub(crate) async fn render(&self, app: &App, caller: Option<&SecurityContext>) -> String {
        if let Err(error) = measure(&app.runtime).await {
            tracing::debug!(%error, "the store could not be measured");
        }
        for (name, used) in [
            ("servo_http_requests_in_flight", app.rooms.requests.used()),
            ("servo_http_streams_open", app.rooms.streams.used()),
            ("servo_http_channels_open", app.rooms.channels.used()),
            ("servo_http_bodies_bytes", app.rooms.bodies.used()),
            ("servo_http_connections_open", app.connections.taken()),
        ] {
            gauge!(name).set(used as f64);
        }
        self.0.run_upkeep();
        let mut text = self.0.render();
        if let Some(caller) = caller {
            text.push_str(&tenants::render(app, caller).await);
        }
        text
    }

    /// Folds raw samples into buckets, so that they do not pile up while nobody scrapes.
    pub(crate) fn upkeep(&self) {
        self.0.run_upkeep();
    }
}

fn describe() {
    describe_counter!("servo_http_requests_total", "requests answered, by method, route and status");
    describe_histogram!("servo_http_request_duration_seconds", "time until the answer's head was ready, by route");
    describe_gauge!("servo_http_requests_in_flight", "requests under way");
    describe_gauge!("servo_http_streams_open", "open event streams");
    describe_counter!("servo_log_lines_dropped_total", "lines of the log that could not be written in time");
    describe_gauge!("servo_http_channels_open", "open channels of handlers");
    describe_gauge!("servo_http_bodies_bytes", "bytes of bodies that are being read or of requests under way");
    describe_gauge!("servo_http_connections_open", "open connections");
    describe_counter!("servo_spans_exported_total", "spans that a collector has taken");
    describe_counter!("servo_spans_dropped_total", "spans that were not exported, by reason");
    describe_gauge!("servo_dispatches", "dispatches by state; the notified ones are steps in flight");
    describe_gauge!("servo_outbox_retries", "events whose publication failed and will be tried again");
    describe_gauge!("servo_store_size_bytes", "size of the store");
    describe_gauge!("servo_ready", "1 when the runtime is ready");
    describe_gauge!("servo_authority_held", "1 when this node holds the authority");
}

async fn measure(runtime: &Runtime) -> Result<(), servo_runtime::Error> {
    gauge!("servo_authority_held").set(if runtime.fence().is_some() { 1.0 } else { 0.0 });
    let store = runtime.engine().store();
    let snapshot = runtime.snapshot().await.inspect_err(|_| gauge!("servo_ready").set(0.0))?;
    gauge!("servo_ready").set(if snapshot.readiness.ready { 1.0 } else { 0.0 });
    let backlog = snapshot.backlog;
    for (state, count) in [
        ("pending", backlog.pending),
        ("notified", backlog.notified),
        ("delivered", backlog.delivered),
        ("failed", backlog.failed),
    ] {
        gauge!("servo_dispatches", "state" => state).set(count as f64);
    }
    gauge!("servo_outbox_retries").set(store.outbox_len().await? as f64);
    gauge!("servo_store_size_bytes").set(store.info().await?.size_bytes as f64);
    Ok(())
}

/// Of one route, by method and code.
type Places = Vec<(&'static str, u16, Answers)>;

/// Places of answers by their routes; as many as there are routes, methods and codes.
static PLACES: RwLock<BTreeMap<String, Places>> = RwLock::new(BTreeMap::new());

pub(crate) fn request(method: &str, route: &str, status: u16, took: Duration) {
    let method = known_method(method);
    let is_it = |(of, code, _): &&(&str, u16, Answers)| *of == method && *code == status;
    {
        let places = PLACES.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., answers)) = places.get(route).and_then(|places| places.iter().find(is_it)) {
            return answers.note(took);
        }
    }
    let answers = Answers::of(method, route, status);
    answers.note(took);
    let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
    places.entry(route.to_owned()).or_default().push((method, status, answers));
}

/// Where answers of one kind are counted. Looking the place up costs more than counting: whoever answers often keeps it.
#[derive(Clone)]
pub(crate) struct Answers {
    count: metrics::Counter,
    took: metrics::Histogram,
}

impl Answers {
    pub(crate) fn of(method: &str, route: &str, status: u16) -> Self {
        let method = known_method(method);
        let labels = [("method", method.to_owned()), ("route", route.to_owned()), ("status", status.to_string())];
        Self {
            count: metrics::counter!("servo_http_requests_total", &labels),
            took: metrics::histogram!("servo_http_request_duration_seconds", "route" => route.to_owned()),
        }
    }

    pub(crate) fn note(&self, took: Duration) {
        self.count.increment(1);
        self.took.record(took.as_secs_f64());
    }
}

/// Callers may invent methods; labels must not grow with them.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}
