//! Maintenance.

use std::path::Path;

use async_trait::async_trait;
use servo_model::contract::DispatchState;
use servo_model::{RunId, Timestamp};

use super::{Inner, MemStore, Run};
use crate::admin::{AdminStore, Integrity, StoreInfo};
use crate::error::{Error, Result};
use crate::log::StoredEvent;
use crate::position::Position;
use crate::runs::{RunRow, Scope};

impl Inner {
    fn remove_run(&mut self, run_id: &RunId) {
        let Some(run) = self.runs.remove(run_id) else { return };
        for event in run.events.values() {
            self.log.remove(&event.position.id);
        }
        self.dispatches.retain(|_, row| row.run_id != *run_id);
        self.outbox.retain(|_, row| row.run_id != *run_id);
        self.dead.retain(|_, row| row.run_id != *run_id);
        self.alerts.retain(|_, row| row.run_id.as_ref() != Some(run_id));
        self.requests.retain(|_, started| started != run_id);
    }
}

#[async_trait]
impl AdminStore for MemStore {
    async fn info(&self) -> Result<StoreInfo> {
        drop(self.lock()?);
        Ok(StoreInfo {
            kind: "memory",
            engine_version: env!("CARGO_PKG_VERSION").to_owned(),
            schema_version: 1,
            single_process: self.single_process,
            size_bytes: 0,
            settings: Vec::new(),
        })
    }

    async fn secret(&self) -> Result<[u8; 32]> {
        Ok(self.lock()?.secret)
    }

    async fn quarantine(&self, run_id: &RunId, reason: &str) -> Result<()> {
        let mut inner = self.lock()?;
        let run = inner.runs.get_mut(run_id).ok_or(Error::NotFound)?;
        run.row.quarantined = Some(reason.to_owned());
        run.timer = None;
        run.queue = None;
        inner.dispatches.retain(|_, row| row.run_id != *run_id || !is_open(row.state));
        Ok(())
    }

    async fn retire(&self, finished_before: Timestamp, limit: u32) -> Result<u32> {
        let mut inner = self.lock()?;
        let mut due: Vec<_> = inner
            .runs
            .values()
            .filter_map(|run| Some((run.row.finished_at?, run.row.run_id.clone())))
            .filter(|(finished, _)| *finished < finished_before)
            .collect();
        due.sort();
        due.truncate(limit as usize);
        for (_, run_id) in &due {
            inner.remove_run(run_id);
        }
        Ok(u32::try_from(due.len()).unwrap_or(limit))
    }

    async fn delete_run(&self, scope: &Scope, run_id: &RunId) -> Result<()> {
        let mut inner = self.lock()?;
        if run_id.is_system() {
            return Err(Error::NotFound);
        }
        inner.run(scope, run_id)?;
        inner.remove_run(run_id);
        Ok(())
    }

    async fn trim_system(&self, before: Timestamp, limit: u32) -> Result<u32> {
        let mut inner = self.lock()?;
        let system = RunId::system();
        let run = inner.runs.get_mut(&system).ok_or(Error::NotFound)?;
        let old: Vec<_> = run
            .events
            .values()
            .take_while(|event| event.emitted_at < before)
            .take(limit as usize)
            .map(|event| (event.run_seq, event.idempotency_key, event.position.id))
            .collect();
        for (seq, key, _) in &old {
            run.events.remove(seq);
            run.keys.remove(key);
        }
        for (_, _, id) in &old {
            inner.log.remove(id);
        }
        inner.dispatches.retain(|_, row| row.run_id != system || is_open(row.state) || row.changed_at >= before);
        Ok(u32::try_from(old.len()).unwrap_or(limit))
    }

    async fn import_run(&self, row: RunRow, events: Vec<StoredEvent>) -> Result<()> {
        let mut inner = self.lock()?;
        if inner.runs.contains_key(&row.run_id) {
            return Err(Error::RunExists { run_id: row.run_id });
        }
        if let Some(key) = row.request_key {
            let slot = (row.tenant.clone(), key);
            if let Some(earlier) = inner.requests.get(&slot) {
                return Err(Error::RequestExists { run_id: earlier.clone() });
            }
        }
        crate::admin::check_import(&row, &events)?;
        if let Some(key) = row.request_key {
            inner.requests.insert((row.tenant.clone(), key), row.run_id.clone());
        }
        let mut run = Run::new(row);
        for mut event in events {
            inner.next_id += 1;
            event.position = Position::of_id(inner.next_id);
            event.tenant = run.row.tenant.clone();
            inner.log.insert(event.position.id, (event.run_id.clone(), event.run_seq));
            run.head = event.run_seq;
            run.keep(event);
        }
        inner.runs.insert(run.row.run_id.clone(), run);
        Ok(())
    }

    async fn backup(&self, _path: &Path) -> Result<()> {
        drop(self.lock()?);
        Err(Error::Unsupported { what: "backup of a store in memory" })
    }

    async fn integrity(&self) -> Result<Integrity> {
        let inner = self.lock()?;
        let events = inner.runs.values().flat_map(|run| run.events.values().map(move |event| run.check(event)));
        let problems = events.filter_map(Result::err).map(|error| error.to_string()).collect();
        Ok(Integrity { problems, without_checksum: 0 })
    }

    async fn close(&self) -> Result<()> {
        self.lock()?.closed = true;
        Ok(())
    }
}

fn is_open(state: DispatchState) -> bool {
    matches!(state, DispatchState::Pending | DispatchState::Notified)
}
