//! Overload: whether a new run starts now, waits, or is turned away.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use servo_model::Timestamp;

/// What to do with a new run when as many are active as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverloadPolicy {
    /// Turn it away: 429 with `Retry-After`.
    Reject,
    /// Keep it and start it when there is room.
    #[default]
    Queue,
    /// Accept it, and start it not before a time.
    Delay,
}

/// When a run may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Now,
    Queue,
    Delay { until: Timestamp },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overload {
    pub retry_after: Duration,
}

pub fn admit(
    policy: OverloadPolicy,
    active: u32,
    active_max: u32,
    delay: Duration,
    now: Timestamp,
) -> Result<Admission, Overload> {
    if active < active_max {
        return Ok(Admission::Now);
    }
    match policy {
        OverloadPolicy::Reject => Err(Overload { retry_after: delay.max(Duration::from_secs(1)) }),
        OverloadPolicy::Queue => Ok(Admission::Queue),
        OverloadPolicy::Delay => Ok(Admission::Delay { until: now.plus(delay) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-070
    #[test]
    fn below_the_limit_everything_starts_and_at_it_the_policy_decides() {
        let now = Timestamp::from_millis(1_000);
        let delay = Duration::from_secs(30);
        for policy in [OverloadPolicy::Reject, OverloadPolicy::Queue, OverloadPolicy::Delay] {
            assert_eq!(admit(policy, 9, 10, delay, now), Ok(Admission::Now));
        }
        assert_eq!(admit(OverloadPolicy::Reject, 10, 10, delay, now), Err(Overload { retry_after: delay }));
        assert_eq!(admit(OverloadPolicy::Queue, 10, 10, delay, now), Ok(Admission::Queue));
        assert_eq!(admit(OverloadPolicy::Delay, 10, 10, delay, now), Ok(Admission::Delay { until: now.plus(delay) }));
    }
}
