//! Judges what a cluster left behind. Works on the raw log and on witnesses; the fold and the machine are not asked,
//! because a check that shares its subject's mistakes finds none of them.

pub(crate) mod handlers;
mod log;
mod order;
mod time;
mod witness;

use std::collections::BTreeMap;

use serde_json::Value;
use servo_model::RunId;
use servo_runtime::verify;
use servo_store::mem::MemStore;
use servo_store::runs::RunQuery;
use servo_store::{LogStore, Position, RunRow, RunStore, Scope, StoredEvent};

use crate::campaign::Told;
use crate::cluster::Cluster;
use crate::journal::Accepted;
use crate::recorder::{Delivery, Execution, RecordingAdapter, RecordingBus};

/// Everything that is known of a story.
#[derive(Debug, Default)]
pub struct Evidence {
    pub log: Vec<StoredEvent>,
    pub rows: Vec<RunRow>,
    pub journal: Vec<Accepted>,
    pub executions: Vec<Execution>,
    pub delivered: Vec<Delivery>,
    /// Runs of which the bus refused something.
    pub refused: std::collections::BTreeSet<RunId>,
    pub told: Vec<Told>,
    /// What the product's own audit says.
    pub audit: Vec<String>,
    /// Dispatches that are not at their end.
    pub open_dispatches: u64,
}

impl Evidence {
    pub fn collect(cluster: &Cluster, adapter: &RecordingAdapter, bus: &RecordingBus, told: Vec<Told>) -> Self {
        let memory = cluster.memory.clone();
        let (log, rows, audit, open_dispatches) = cluster.sim.block_on(async move {
            let log = whole_log(&memory).await.unwrap_or_default();
            let query = RunQuery { limit: u32::MAX, ..RunQuery::default() };
            let rows = memory.list_runs(&Scope::System, &query).await.unwrap_or_default();
            let audit = match verify::verify(&memory, |_| {}).await {
                Ok(report) => report.findings.iter().map(|f| format!("{}: {}", f.run_id, f.problem)).collect(),
                Err(error) => vec![error.to_string()],
            };
            let backlog = servo_store::WorkStore::backlog(&memory).await.unwrap_or_default();
            (log, rows, audit, backlog.pending + backlog.notified)
        });
        Self {
            log,
            rows,
            journal: cluster.journal.entries(),
            executions: adapter.executions(),
            delivered: bus.delivered(),
            refused: bus.refused(),
            told,
            audit,
            open_dispatches,
        }
    }
}

/// One event, read as plain JSON.
struct Fact<'a> {
    stored: &'a StoredEvent,
    body: Value,
}

impl Fact<'_> {
    fn is(&self, event_type: &str) -> bool {
        self.stored.event_type == event_type
    }

    fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    fn number(&self, field: &str) -> u64 {
        self.body[field].as_u64().unwrap_or_default()
    }

    /// The step and attempt that the event is about.
    fn attempt(&self) -> (&str, u64) {
        (self.text("stepId"), self.number("logicalAttemptId"))
    }
}

/// A run's events in order.
type History<'a> = Vec<Fact<'a>>;

/// Applies every check and says what is wrong.
pub fn everything(evidence: &Evidence) -> Vec<String> {
    let mut found = evidence.audit.clone();
    let mut runs: BTreeMap<&RunId, History<'_>> = BTreeMap::new();
    for stored in evidence.log.iter().filter(|stored| !stored.run_id.is_system()) {
        match serde_json::from_str(&stored.payload) {
            Ok(body) => runs.entry(&stored.run_id).or_default().push(Fact { stored, body }),
            Err(error) => found.push(format!("{} {}: {error}", stored.run_id, stored.run_seq)),
        }
    }
    log::check(evidence, &runs, &mut found);
    order::check(evidence, &mut found);
    time::check(&runs, &mut found);
    witness::check(evidence, &runs, &mut found);
    if evidence.open_dispatches > 0 {
        found.push(format!("{} dispatches are not at their end", evidence.open_dispatches));
    }
    found
}

/// Every event, page by page: a page is limited in bytes, too.
pub(crate) async fn whole_log(store: &MemStore) -> servo_store::Result<Vec<StoredEvent>> {
    let (mut events, mut at) = (Vec::new(), Position::START);
    loop {
        let page = store.read_log(at, u32::MAX).await?;
        if page.events.is_empty() {
            return Ok(events);
        }
        at = page.next;
        events.extend(page.events.into_iter().map(std::sync::Arc::unwrap_or_clone));
    }
}
