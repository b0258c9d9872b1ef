//! Starting the run of a function, once per name.

use std::time::Duration;

use servo_canon::Digest;
use servo_machine::{Command, StartExecution, admit, decide};
use servo_model::{RunId, RunState, TenantId};
use servo_store::Scope;
use servo_store::error::Retry;

use super::{Engine, Error, Hot, Order};

impl Engine {
    /// The run, and whether this call has made it.
    pub(crate) async fn start_execution(
        &self,
        mut start: StartExecution,
        request_key: Option<Digest>,
    ) -> Result<(RunId, bool), Error> {
        if self.inner.shutdown.is_triggered() {
            return Err(Error::ShuttingDown);
        }
        let tenant = start.context.tenant_id.clone();
        if let Some(key) = request_key
            && let Some(earlier) = self.inner.store.find_request(&tenant, key).await?
        {
            return self.started_earlier(&tenant, earlier, start.request_digest).await;
        }
        let under_way = self.inner.admissions.enter(&tenant);
        let rule = self.inner.config.overload_for(tenant.as_str(), &start.start.function);
        let active = self.count_active(&tenant, rule.active_runs_max).await?;
        let (active, delay) = (active.saturating_add(under_way.before), Duration::from_millis(rule.delay_ms));
        let now = self.now();
        start.admission = admit(rule.policy, active, rule.active_runs_max, delay, now)
            .map_err(|overload| Error::Overloaded { retry_after: overload.retry_after })?;
        let run_id = self.inner.ids.run_id(now);
        if start.start.name.is_empty() {
            start.start.name = run_id.to_string();
        }
        let digest = start.request_digest;
        let command = Command::StartExecution(Box::new(start));
        let mut order = Order::new(Scope::Tenant(tenant.clone()), run_id.clone(), command, "engine");
        order.request_key = request_key;
        let slot = self.inner.cache.slot(&run_id);
        let mut hot = slot.lock().await;
        let mut failures = 0;
        loop {
            let decision = decide(None, &order.commands[0], &self.inner.config.policy, now)?;
            let empty = Hot::new(RunState::new(run_id.clone()), tenant.clone());
            match self.commit(&order, &mut hot, empty, decision, now).await {
                // The second from a try whose outcome was unknown: the id is random, so nobody else can have made it.
                Ok(_)
                | Err(Error::Store(servo_store::Error::RunExists { .. } | servo_store::Error::Conflict { .. })) => {
                    return Ok((run_id, true));
                }
                Err(Error::Store(servo_store::Error::RequestExists { run_id: earlier })) => {
                    drop(hot);
                    return self.started_earlier(&tenant, earlier, digest).await;
                }
                Err(Error::Store(error)) if error.retry() == Retry::Later && failures < 2 => {
                    failures += 1;
                    self.back_off(failures).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same call again gets the same run; another payload under the same name is a mistake.
    async fn started_earlier(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        digest: Option<Digest>,
    ) -> Result<(RunId, bool), Error> {
        let scope = Scope::Tenant(tenant.clone());
        let earlier = self.view(&scope, &run_id, |state| state.request_digest).await?;
        if earlier.is_some() && earlier != digest {
            return Err(Error::RequestMismatch);
        }
        Ok((run_id, false))
    }
}
