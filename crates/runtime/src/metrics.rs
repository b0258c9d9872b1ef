//! Every metric of the runtime, by name. Labels are few and bounded: never a run, never a tenant.

use std::time::Duration;

use servo_machine::StepResult;
use servo_model::alert::AlertCode;
use servo_model::{RunState, RunStatus};

/// How a run stands, as far as metrics go.
pub(crate) fn standing(state: &RunState) -> (RunStatus, Option<Duration>) {
    let lasted = state.started_at.zip(state.completed_at).map(|(started, ended)| ended.since(started));
    (state.status, lasted)
}

pub(crate) fn attempt_ended((status, lasted): (RunStatus, Option<Duration>), result: &StepResult) {
    let outcome = match result {
        StepResult::Success { .. } => "success",
        StepResult::Failure { .. } => "failure",
    };
    metrics::counter!("servo_attempts_total", "outcome" => outcome).increment(1);
    run_ended((status, lasted));
}

pub(crate) fn run_ended((status, lasted): (RunStatus, Option<Duration>)) {
    if status.is_terminal() {
        metrics::counter!("servo_runs_finished_total", "status" => status.as_str()).increment(1);
        if let Some(lasted) = lasted {
            metrics::histogram!("servo_run_duration_seconds").record(lasted.as_secs_f64());
        }
    }
}

pub(crate) fn over_budget(event_type: &str) {
    metrics::counter!("servo_write_budget_exceeded_total", "event" => event_type.to_owned()).increment(1);
}

pub(crate) fn projection_lag(lag: Duration) {
    metrics::gauge!("servo_projection_lag_seconds").set(lag.as_secs_f64());
}

pub(crate) fn alert(code: AlertCode) {
    metrics::counter!("servo_alerts_total", "code" => code.as_str()).increment(1);
}

/// The store's clock was set, forwards or backwards.
pub(crate) fn clock_step(step_ms: i64) {
    let direction = if step_ms > 0 { "forwards" } else { "backwards" };
    metrics::counter!("servo_clock_steps_total", "direction" => direction).increment(1);
}

pub(crate) fn publication(result: &'static str, count: u64) {
    metrics::counter!("servo_publications_total", "result" => result).increment(count);
}

pub(crate) fn retired(runs: u64) {
    metrics::counter!("servo_runs_retired_total").increment(runs);
}

/// Dispatches of how many tenants wait, and since when the oldest of them.
pub(crate) fn waiting(tenants: usize, oldest: Option<Duration>) {
    metrics::gauge!("servo_dispatch_tenants_waiting").set(u32::try_from(tenants).unwrap_or(u32::MAX));
    metrics::gauge!("servo_dispatch_oldest_seconds").set(oldest.unwrap_or_default().as_secs_f64());
}

pub(crate) fn handed_out(waited: Duration) {
    metrics::histogram!("servo_dispatch_wait_seconds").record(waited.as_secs_f64());
}
