//! Reading runs, and setting aside those that cannot be read.

use std::time::Duration;

use servo_model::alert::AlertCode;
use servo_model::{RunId, RunSnapshot, RunState, TenantId};
use servo_store::log::RunPage;
use servo_store::relay::NewAlert;
use servo_store::resync::{fold, load};
use servo_store::{RunRow, Scope, Unreadable};

use super::{Engine, Error, Hot};

/// How long a reader waits for a command on the same run that is under way.
const PLACE_PATIENCE: Duration = Duration::from_secs(1);

impl Engine {
    /// The run as its events stand now.
    pub async fn snapshot(&self, scope: &Scope, run_id: &RunId) -> Result<RunSnapshot, Error> {
        self.view(scope, run_id, RunSnapshot::whole).await
    }

    /// The folded state. Copies all of it: `view` looks without copying.
    pub async fn state(&self, scope: &Scope, run_id: &RunId) -> Result<RunState, Error> {
        self.view(scope, run_id, RunState::clone).await
    }

    /// Looks at the folded state. Where several processes write to the store, a cached one is brought up to date by the
    /// same query that reads the head.
    pub async fn view<T>(
        &self,
        scope: &Scope,
        run_id: &RunId,
        view: impl FnOnce(&RunState) -> T + Send,
    ) -> Result<T, Error> {
        let scope = if self.inner.config.is_sabotaged("foreign-runs") { &Scope::System } else { scope };
        let slot = self.inner.cache.slot(run_id);
        let mut hot = match slot.try_lock() {
            Ok(hot) => hot,
            Err(_) => tokio::select! {
                biased;
                hot = slot.lock() => hot,
                // Whoever has the place waits for a store that takes no writes, or takes long. To look, it is not needed.
                () = self.inner.clock.sleep(PLACE_PATIENCE) => {
                    return Ok(view(&Box::pin(self.load(scope, run_id)).await?.state));
                }
            },
        };
        if self.inner.single_process
            && let Some(known) = hot.as_ref()
            && scope.covers(&known.tenant)
        {
            return Ok(view(&known.state));
        }
        let known = if hot.is_some() {
            Box::pin(self.bring_up_to_date(scope, run_id, &mut hot)).await?
        } else {
            Box::pin(self.load(scope, run_id)).await?
        };
        self.inner.cache.weigh(run_id, &known.state);
        let seen = view(&known.state);
        *hot = Some(known);
        Ok(seen)
    }

    /// A run that this node does not remember.
    pub(super) async fn load(&self, scope: &Scope, run_id: &RunId) -> Result<Hot, Error> {
        let store = self.inner.store.as_ref();
        let stored = match load(store, scope, run_id).await {
            // Its events cannot be read; its row may.
            Err(servo_store::Error::Corrupt { detail }) => {
                return Err(self.damaged(&self.readable_row(scope, run_id).await?.tenant, run_id, detail).await);
            }
            stored => stored?,
        };
        if let Some(reason) = stored.row.quarantined {
            return Err(Error::Quarantined(reason));
        }
        let tenant = stored.row.tenant.clone();
        match fold(store, scope, stored).await {
            Ok(state) => Ok(Hot::new(Box::new(state), tenant)),
            Err(servo_store::Error::Corrupt { detail }) => Err(self.damaged(&tenant, run_id, detail).await),
            Err(error) => Err(error.into()),
        }
    }

    /// Events of a run as they are stored. A run with an event that is not as it was written is set aside.
    pub async fn read_events(&self, scope: &Scope, run_id: &RunId, after: u64, limit: u32) -> Result<RunPage, Error> {
        match self.inner.store.read_run(scope, run_id, after, limit).await {
            Err(servo_store::Error::Corrupt { detail }) if !run_id.is_system() => {
                let row = self.readable_row(scope, run_id).await?;
                Err(self.damaged(&row.tenant, run_id, detail).await)
            }
            page => Ok(page?),
        }
    }

    /// What a reader of the log passes by: its run is set aside. Where it is not certain whose it is, an alert names the place.
    pub(crate) async fn set_aside_unreadable(&self, unreadable: &[Unreadable]) -> Result<(), servo_store::Error> {
        for Unreadable { position, run, detail } in unreadable {
            if let Some((run_id, tenant)) = run.as_ref().filter(|(run_id, _)| !run_id.is_system()) {
                let row = self.inner.store.get_run(&Scope::System, run_id).await?;
                // Every reader of the log comes by, and again after each start.
                if row.is_some_and(|row| row.quarantined.is_none()) {
                    self.try_quarantine(run_id, tenant, detail).await?;
                }
                continue;
            }
            tracing::error!(%position, detail, "passed by: the log is not as it was written");
            crate::metrics::alert(AlertCode::LogDamaged);
            let alert = NewAlert {
                code: AlertCode::LogDamaged,
                subject: position.to_string(),
                run_id: None,
                tenant: TenantId::system(),
                message: detail.clone(),
            };
            self.inner.store.raise_alert(alert).await?;
        }
        Ok(())
    }

    async fn damaged(&self, tenant: &TenantId, run_id: &RunId, detail: String) -> Error {
        self.quarantine(run_id, tenant, &detail).await;
        Error::Quarantined(detail)
    }

    /// The row of a run that is not set aside.
    async fn readable_row(&self, scope: &Scope, run_id: &RunId) -> Result<RunRow, Error> {
        let row = self.inner.store.get_run(scope, run_id).await?.ok_or(servo_store::Error::NotFound)?;
        match row.quarantined {
            Some(reason) => Err(Error::Quarantined(reason)),
            None => Ok(row),
        }
    }

    /// A run that this node remembers, and that another may have moved on. It stays remembered where the caller may not see it.
    async fn bring_up_to_date(&self, scope: &Scope, run_id: &RunId, hot: &mut Option<Hot>) -> Result<Hot, Error> {
        let row = self.readable_row(scope, run_id).await?;
        let Hot { state, timer, .. } = hot.take().ok_or(servo_store::Error::NotFound)?;
        let seen = state.last_event_seq;
        let state = self.catch_up(scope, &row.tenant, state).await?;
        let unchanged = state.last_event_seq == seen;
        Ok(Hot { timer: if unchanged { timer } else { None }, ..Hot::new(state, row.tenant) })
    }

    /// Looks at the state that this node remembers, which another may have moved on since. `None` if it remembers none.
    pub(crate) async fn remembered<T>(
        &self,
        scope: &Scope,
        run_id: &RunId,
        view: impl FnOnce(&RunState) -> T + Send,
    ) -> Option<T> {
        let slot = self.inner.cache.slot(run_id);
        let hot = slot.lock().await;
        hot.as_ref().filter(|known| scope.covers(&known.tenant)).map(|known| view(&known.state))
    }

    /// Applies what was appended since.
    pub(super) async fn catch_up(
        &self,
        scope: &Scope,
        tenant: &TenantId,
        mut state: Box<RunState>,
    ) -> Result<Box<RunState>, Error> {
        loop {
            let page = self.read_events(scope, &state.run_id, state.last_event_seq, 1_000).await?;
            for stored in &page.events {
                match stored.decode() {
                    Ok(event) => {
                        state.advance(&event);
                    }
                    Err(invalid) => {
                        let reason = format!("event {} cannot be read: {invalid}", stored.run_seq);
                        self.quarantine(&state.run_id, tenant, &reason).await;
                        return Err(Error::Quarantined(reason));
                    }
                }
            }
            if page.events.is_empty() || state.last_event_seq >= page.head_seq {
                return Ok(state);
            }
        }
    }

    /// Sets a run aside whose log cannot be read, so that it disturbs no other. What the store does not take now is done
    /// by whoever meets the run next.
    pub(crate) async fn quarantine(&self, run_id: &RunId, tenant: &TenantId, reason: &str) {
        if let Err(error) = self.try_quarantine(run_id, tenant, reason).await {
            tracing::error!(run_id = %run_id, %error, "the run could not be set aside");
        }
    }

    pub(crate) async fn try_quarantine(
        &self,
        run_id: &RunId,
        tenant: &TenantId,
        reason: &str,
    ) -> Result<(), servo_store::Error> {
        tracing::error!(run_id = %run_id, reason, "run set aside: its log cannot be read");
        self.forget(run_id);
        match self.inner.store.quarantine(run_id, reason).await {
            Ok(()) => {}
            // Removed meanwhile.
            Err(servo_store::Error::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        }
        let alert = NewAlert {
            code: AlertCode::RunQuarantined,
            subject: run_id.to_string(),
            run_id: Some(run_id.clone()),
            tenant: tenant.clone(),
            message: reason.to_owned(),
        };
        self.inner.store.raise_alert(alert).await
    }
}
