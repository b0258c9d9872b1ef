//! Reading a run again, in both modes of the contract. Built on `read_run` and `snapshot_at`, so every backend has it.

use servo_model::projection::Resync;
use servo_model::{Event, RunId, RunState};

use crate::Store;
use crate::error::{Error, Result};
use crate::runs::Scope;

/// Events read per page: large enough to be quick, small enough for memory.
const PAGE: u32 = 1_000;

/// A state to start from and the events after it.
#[derive(Debug)]
pub struct Reread {
    pub base: RunState,
    pub events: Vec<Event>,
    pub head_seq: u64,
}

/// `FULL` gives every event; `FROM_SNAPSHOT` gives the latest stored snapshot at or before the sequence and what
/// follows it, and is `FULL` where there is none.
pub async fn resync(store: &dyn Store, scope: &Scope, run_id: &RunId, mode: Resync) -> Result<Reread> {
    let base = base_state(store, scope, run_id, mode).await?;
    let mut events = Vec::new();
    let mut after = base.last_event_seq;
    loop {
        let page = store.read_run(scope, run_id, after, PAGE).await?;
        for stored in &page.events {
            events.push(decode(stored)?);
        }
        match page.events.last() {
            Some(last) if last.run_seq < page.head_seq => after = last.run_seq,
            _ => return Ok(Reread { base, events, head_seq: page.head_seq }),
        }
    }
}

/// The folded state of a run, a page at a time: a long history is never in memory at once.
pub async fn load_state(store: &dyn Store, scope: &Scope, run_id: &RunId) -> Result<RunState> {
    let mut state = base_state(store, scope, run_id, Resync::FromSnapshot { snapshot_seq: u64::MAX }).await?;
    loop {
        let page = store.read_run(scope, run_id, state.last_event_seq, PAGE).await?;
        for stored in &page.events {
            state.advance(&decode(stored)?);
        }
        if page.events.is_empty() || state.last_event_seq >= page.head_seq {
            return Ok(state);
        }
    }
}

async fn base_state(store: &dyn Store, scope: &Scope, run_id: &RunId, mode: Resync) -> Result<RunState> {
    let seq_max = match mode {
        Resync::Full => return Ok(RunState::new(run_id.clone())),
        Resync::FromSnapshot { snapshot_seq } => snapshot_seq,
    };
    let stored = store.snapshot_at(scope, run_id, seq_max).await?;
    // A snapshot that this version cannot read is only a lost short cut: the log has everything.
    let state = stored.and_then(|snapshot| serde_json::from_str::<RunState>(&snapshot.state).ok());
    Ok(state.unwrap_or_else(|| RunState::new(run_id.clone())))
}

fn decode(stored: &crate::StoredEvent) -> Result<Event> {
    stored.decode().map_err(|invalid| Error::Corrupt {
        detail: format!("event {} of run {}: {invalid}", stored.run_seq, stored.run_id),
    })
}
