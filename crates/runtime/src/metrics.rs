//! Every metric of the runtime, by name. Labels are few and bounded: never a run, never a tenant.

use std::time::Duration;

use servo_machine::StepResult;
use servo_model::RunSnapshot;
use servo_model::alert::AlertCode;

pub(crate) fn attempt_ended(snapshot: &RunSnapshot, result: &StepResult) {
    let outcome = match result {
        StepResult::Success { .. } => "success",
        StepResult::Failure { .. } => "failure",
    };
    metrics::counter!("servo_attempts_total", "outcome" => outcome).increment(1);
    if snapshot.status.is_terminal() {
        metrics::counter!("servo_runs_finished_total", "status" => snapshot.status.as_str()).increment(1);
        if let Some(ms) = snapshot.total_duration_ms {
            metrics::histogram!("servo_run_duration_seconds").record(Duration::from_millis(ms).as_secs_f64());
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

pub(crate) fn publication(result: &'static str, count: u64) {
    metrics::counter!("servo_publications_total", "result" => result).increment(count);
}

pub(crate) fn retired(runs: u64) {
    metrics::counter!("servo_runs_retired_total").increment(runs);
}
