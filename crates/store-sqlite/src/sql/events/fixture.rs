//! A database with rows and packs in it, and the same events as a list.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Connection;
use servo_canon::Digest;
use servo_model::event::FORMAT;
use servo_model::{EventId, RunId, TenantId, Timestamp};
use servo_store::testkit::fixtures;
use servo_store::{Position, StoredEvent};

use super::{Packing, insert_pack};
use crate::codec::int;
use crate::sabotage::Sabotage;
use crate::schema;
use crate::sql::{log, runs};

/// One event to be: of which run, whether it is a row, how far from the event before, and how large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) run: usize,
    pub(crate) is_row: bool,
    pub(crate) gap: u64,
    pub(crate) bytes: usize,
}

pub(crate) struct Filled {
    pub(crate) conn: Connection,
    /// The whole log, in order.
    pub(crate) log: Vec<Arc<StoredEvent>>,
    pub(crate) numbers: BTreeMap<RunId, i64>,
    heads: BTreeMap<RunId, u64>,
    last_position: u64,
}

pub(crate) fn run(index: usize) -> RunId {
    fixtures::run_id(&format!("run-{index}"))
}

pub(crate) fn tenant() -> TenantId {
    fixtures::tenant("acme")
}

pub(crate) fn packed(run: usize) -> Plan {
    Plan { run, is_row: false, gap: 0, bytes: 10 }
}

pub(crate) fn row(run: usize) -> Plan {
    Plan { is_row: true, ..packed(run) }
}

impl Filled {
    pub(crate) fn new() -> Self {
        let conn = Connection::open_in_memory().unwrap();
        schema::migrate(&conn, Timestamp::EPOCH).unwrap();
        schema::seed(&conn, Timestamp::EPOCH).unwrap();
        let (numbers, heads) = (BTreeMap::new(), BTreeMap::new());
        Self { conn, log: Vec::new(), numbers, heads, last_position: 0 }
    }

    /// Writes events in one transaction, as the flusher does.
    pub(crate) fn flush(&mut self, plans: &[Plan]) {
        let mut packs: BTreeMap<RunId, Vec<Vec<Arc<StoredEvent>>>> = BTreeMap::new();
        for plan in plans {
            let event = self.make(*plan);
            let of_run = packs.entry(event.run_id.clone()).or_default();
            if plan.is_row {
                insert_row(&self.conn, self.numbers[&event.run_id], &event);
                of_run.push(Vec::new());
            } else if let Some(pack) = of_run.last_mut() {
                pack.push(event);
            } else {
                of_run.push(vec![event]);
            }
        }
        for (run_id, packs) in packs {
            for pack in packs {
                let packing = packing(self.numbers[&run_id], int(self.last_position));
                insert_pack(&self.conn, packing, &pack).unwrap();
            }
        }
    }

    fn make(&mut self, plan: Plan) -> Arc<StoredEvent> {
        self.last_position += 1 + plan.gap;
        let (run_id, position) = (run(plan.run), self.last_position);
        if !self.numbers.contains_key(&run_id) {
            let row = fixtures::run_row(&run_id, &tenant(), Timestamp::EPOCH);
            runs::insert(&self.conn, &row, Some(int(position))).unwrap();
            self.numbers.insert(run_id.clone(), int(position));
        }
        let seq = self.heads.entry(run_id.clone()).or_default();
        *seq += 1;
        let event = Arc::new(StoredEvent {
            position: Position::of_id(position),
            format: FORMAT,
            run_id,
            tenant: tenant(),
            run_seq: *seq,
            event_id: EventId::from_u128(u128::from(position)),
            event_type: "test.noted".into(),
            idempotency_key: Digest::of(&position.to_be_bytes()),
            emitted_at: Timestamp::from_millis(1_000 + int(position)),
            emitted_by: format!("by-{}", position % 3).into(),
            occurred_at: position.is_multiple_of(2).then_some(Timestamp::from_millis(int(position))),
            payload: "x".repeat(plan.bytes),
        });
        self.log.push(event.clone());
        event
    }

    pub(crate) fn last_position(&self) -> u64 {
        self.last_position
    }
}

pub(crate) fn packing(number: i64, flush_end: i64) -> Packing {
    Packing { number, flush_end, sabotage: Sabotage::default() }
}

/// A row that knows its position.
pub(crate) fn insert_row(conn: &Connection, number: i64, event: &StoredEvent) {
    log::insert(conn, number, event, Sabotage::default()).unwrap();
}
