//! Tells that the store's clock was set by more than a little: waits, which are points in its time, then end too early or too
//! late by as much. It only tells; which time is right is for people to say.

use servo_model::TenantId;
use servo_model::alert::AlertCode;
use servo_store::relay::NewAlert;

use crate::engine::Engine;

const SUBJECT: &str = "clock";

pub(crate) async fn run(engine: Engine) {
    let poll = engine.config().poll();
    let mut untold = 0;
    while super::pause(engine.clock().as_ref(), engine.shutdown(), &engine.wake().clock, poll).await {
        if let Some(step) = engine.take_step() {
            tracing::warn!("{}", told(step));
            crate::metrics::alert(AlertCode::ClockJump);
            crate::metrics::clock_step(step);
            // Several that could not be told yet are told as one.
            untold += step;
        }
        if untold == 0 {
            continue;
        }
        let alert = NewAlert {
            code: AlertCode::ClockJump,
            subject: SUBJECT.to_owned(),
            run_id: None,
            tenant: TenantId::system(),
            message: told(untold),
        };
        match engine.store().raise_alert(alert).await {
            Ok(_) => untold = 0,
            Err(error) => tracing::debug!(%error, "a step of the clock is told later"),
        }
    }
}

fn told(step: i64) -> String {
    let (direction, effect) = if step > 0 { ("forwards", "early") } else { ("backwards", "late") };
    let millis = step.unsigned_abs();
    format!("the store's clock went {direction} by {millis} ms at once: what was waiting may end as much too {effect}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_direction_and_size() {
        assert!(told(3_600_000).contains("forwards by 3600000 ms") && told(3_600_000).ends_with("too early"));
        assert!(told(-5_000).contains("backwards by 5000 ms") && told(-5_000).ends_with("too late"));
    }
}
