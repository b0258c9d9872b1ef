//! Taking back a dispatch that its run does not want (any more).

use servo_machine::{Command, Run, decide};
use servo_model::contract::DispatchState;
use servo_store::dispatch::DispatchChange;
use servo_store::{Append, DispatchRow, Expected, Fence, Scope, StreamAppend};

use super::{Engine, Error};

impl Engine {
    /// Decided again on the newest state and written only if the run has not moved since: between a refusal and this
    /// write the run may have been resumed, and then the dispatch under the same id is a new one and wanted.
    pub(crate) async fn withdraw(&self, row: &DispatchRow, command: &Command, fence: Fence) -> Result<(), Error> {
        let slot = self.inner.cache.slot(&row.run_id);
        let mut hot = slot.lock().await;
        *hot = None;
        self.ensure_loaded(&Scope::System, &row.run_id, &mut hot).await?;
        let Some(known) = hot.as_ref() else { return Ok(()) };
        // The start of a plan's step is refused by an execution whatever its dispatch is: whoever tried it could not read what the
        // run is. The dispatch stays, and is found again.
        let of_plan = matches!(command, Command::StartStep { .. } | Command::TakeOver { .. });
        if of_plan && known.state.execution.is_some() {
            return Ok(());
        }
        let Err(refusal) = decide(Run::Known(&known.state), command, &self.inner.config.policy, self.now()) else {
            return Ok(());
        };
        let request_id = row.request_id.clone();
        let change = match row.state {
            DispatchState::Notified => DispatchChange::Fail { request_id, reason: refusal.to_string() },
            DispatchState::Pending | DispatchState::Delivered | DispatchState::Failed => {
                DispatchChange::Withdraw { request_id }
            }
        };
        tracing::debug!(request_id = %row.request_id, %refusal, "dispatch withdrawn");
        let expected = Expected::Seq(known.state.last_event_seq);
        let mut stream = StreamAppend::new(row.run_id.clone(), known.tenant.clone(), expected);
        stream.dispatches.push(change);
        let append = Append { fence: Some(fence), streams: vec![stream], ..Append::default() };
        self.inner.store.append(append).await?;
        Ok(())
    }
}
