//! Starting a run: check the plan against its reference, admit, and record — once per request.

use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_machine::{Command, Run, StartRun, admit, decide};
use servo_model::event::run_request_key;
use servo_model::plan::{Plan, check_known_fields};
use servo_model::{Invalid, PlanRef, RunContext, RunId, RunSnapshot, RunState};
use servo_store::Scope;
use servo_store::error::Retry;

use super::{Engine, Error, Hot, Order};

/// A request to start a run, parsed but not yet checked.
#[derive(Debug, Clone)]
pub struct StartRequest {
    pub plan_ref: PlanRef,
    pub plan: Box<RawValue>,
    pub context: RunContext,
    /// The caller's own name for the request: the same one never starts two runs.
    pub run_request_id: Option<String>,
    pub approval_required: bool,
    /// Start not before this time.
    pub not_before: Option<servo_model::Timestamp>,
    pub subject: String,
}

#[derive(Debug, Clone)]
pub struct Started {
    pub run_id: RunId,
    /// False when an earlier request with the same id had started the run.
    pub created: bool,
    pub snapshot: RunSnapshot,
}

impl Engine {
    pub async fn start(&self, request: StartRequest) -> Result<Started, Error> {
        if self.inner.shutdown.is_triggered() {
            return Err(Error::ShuttingDown);
        }
        let plan = self.check_plan(&request)?;
        let digest = request_digest(&request)?;
        let tenant = request.context.tenant_id.clone();
        let key = match &request.run_request_id {
            Some(id) => Some(self.request_key(&request, id)?),
            None => None,
        };
        if let Some(key) = key
            && let Some(earlier) = self.inner.store.find_request(&tenant, key).await?
        {
            return self.started_before(&request, earlier, digest).await;
        }
        let under_way = self.inner.admissions.enter(&tenant);
        let start = self.admitted(request.clone(), &plan, digest, under_way.before).await?;
        let now = self.now();
        let run_id = self.inner.ids.run_id(now);
        let scope = Scope::Tenant(tenant.clone());
        let command = Command::Start(Box::new(start));
        let mut order = Order::new(scope, run_id.clone(), command, "engine");
        order.request_key = key;
        let slot = self.inner.cache.slot(&run_id);
        let mut hot = slot.lock().await;
        let mut failures = 0;
        loop {
            let decision = decide(Run::New(&run_id), &order.commands[0], &self.inner.config.policy, now)?;
            let empty = Hot::new(Box::new(RunState::new(run_id.clone())), tenant.clone());
            match self.commit(&order, &mut hot, empty, decision, now).await {
                Ok(_) => {
                    let new = || RunSnapshot::from(&RunState::new(run_id.clone()));
                    let snapshot = hot.as_ref().map_or_else(new, |known| RunSnapshot::from(known.state.as_ref()));
                    return Ok(Started { run_id, created: true, snapshot });
                }
                Err(Error::Store(servo_store::Error::RequestExists { run_id: earlier })) => {
                    drop(hot);
                    return self.started_before(&request, earlier, digest).await;
                }
                // Ours, from a try whose outcome was unknown: the id is random, so nobody else can have made it.
                Err(Error::Store(servo_store::Error::RunExists { .. } | servo_store::Error::Conflict { .. })) => {
                    drop(hot);
                    let snapshot = self.snapshot(&Scope::System, &run_id).await?;
                    return Ok(Started { run_id, created: true, snapshot });
                }
                Err(Error::Store(error)) if error.retry() == Retry::Later && failures < 2 => {
                    failures += 1;
                    self.back_off(failures).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn check_plan(&self, request: &StartRequest) -> Result<Plan, Error> {
        request.plan_ref.check().map_err(|e| e.inside("planRef"))?;
        let canonical =
            servo_canon::canonicalize(request.plan.get()).map_err(|error| Invalid::new("plan", error.to_string()))?;
        let actual = Digest::of(canonical.as_bytes());
        if actual != request.plan_ref.sha256 {
            let expected = request.plan_ref.sha256.to_string();
            return Err(Error::DigestMismatch { expected, actual: actual.to_string() });
        }
        let document: serde_json::Value =
            serde_json::from_str(request.plan.get()).map_err(|e| Invalid::new("plan", e.to_string()))?;
        check_known_fields(&document).map_err(|e| e.inside("plan"))?;
        let plan: Plan = serde_json::from_value(document).map_err(|e| Invalid::new("plan", e.to_string()))?;
        let limit = self.inner.config.limits.steps_per_plan_max;
        if plan.steps.len() > limit {
            return Err(Invalid::new("plan/steps", format!("a plan has at most {limit} steps")).into());
        }
        let same = [
            ("planRef/planId", plan.plan_id.as_str() == request.plan_ref.plan_id.as_str()),
            ("planRef/planVersion", plan.plan_version == request.plan_ref.plan_version),
            ("planRef/schemaVersion", plan.schema_version == request.plan_ref.schema_version),
        ];
        if let Some((field, _)) = same.into_iter().find(|(_, equal)| !equal) {
            return Err(Invalid::new(field, "differs from the plan's own").into());
        }
        if !self.inner.engines.contains(&plan.engine_type) {
            let installed = self.inner.engines.clone();
            return Err(Error::EngineUnknown { engine: plan.engine_type, installed });
        }
        Ok(plan)
    }

    fn request_key(&self, request: &StartRequest, id: &str) -> Result<Digest, Error> {
        let plain = !id.is_empty() && id.len() <= 256 && !id.contains('|') && !id.chars().any(char::is_control);
        if !plain {
            let reason = "has 1 to 256 bytes, no `|` and no control characters";
            return Err(Invalid::new("runRequestId", reason).into());
        }
        let (context, plan) = (&request.context, &request.plan_ref);
        let (project, environment) = (context.project_id.as_str(), context.environment_id.as_str());
        let tenant = &context.tenant_id;
        Ok(run_request_key(tenant, project, environment, &plan.plan_id, &plan.plan_version, id))
    }

    async fn admitted(
        &self,
        request: StartRequest,
        plan: &Plan,
        digest: Digest,
        under_way: u32,
    ) -> Result<StartRun, Error> {
        let tenant = &request.context.tenant_id;
        let rule = self.inner.config.overload_for(tenant.as_str(), plan.plan_id.as_str());
        let now = self.now();
        let delay = std::time::Duration::from_millis(rule.delay_ms);
        let admission = match request.not_before.filter(|at| *at > now) {
            Some(until) => servo_machine::Admission::Delay { until },
            None => {
                let active = self.count_active(tenant, rule.active_runs_max).await?;
                let active = active.saturating_add(under_way);
                admit(rule.policy, active, rule.active_runs_max, delay, now)
                    .map_err(|overload| Error::Overloaded { retry_after: overload.retry_after })?
            }
        };
        Ok(StartRun {
            plan_ref: request.plan_ref.into(),
            plan: request.plan,
            context: request.context.into(),
            run_request_id: request.run_request_id,
            request_digest: Some(digest),
            approval_required: request.approval_required,
            admission,
        })
    }

    /// The same request again gets the same run; another request under the same id is a mistake.
    async fn started_before(&self, request: &StartRequest, run_id: RunId, digest: Digest) -> Result<Started, Error> {
        let scope = Scope::Tenant(request.context.tenant_id.clone());
        let state = self.state(&scope, &run_id).await?;
        if state.request_digest.is_some_and(|earlier| earlier != digest) {
            return Err(Error::RequestMismatch);
        }
        Ok(Started { run_id, created: false, snapshot: RunSnapshot::from(&state) })
    }
}

/// What makes two requests the same: everything but when and by whom they were sent.
fn request_digest(request: &StartRequest) -> Result<Digest, Error> {
    let context = &request.context;
    let fields = serde_json::json!({
        "planRef": request.plan_ref,
        "projectId": context.project_id,
        "environmentId": context.environment_id,
        "approvalRequired": request.approval_required,
        "notBefore": request.not_before,
    });
    servo_canon::fingerprint(&fields).map_err(|error| Invalid::new("", error.to_string()).into())
}
