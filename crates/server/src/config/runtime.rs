//! What the runtime's own sections may say: words without effect are refused, since whoever wrote them expects one.

use servo_model::event::CANONICAL_TYPES;
use servo_runtime::RuntimeConfig;

use super::ConfigError;

/// The one class of events that can be recorded later: the end of a step is what others wait for.
const MAY_FAIL_OPEN: &str = "StepStarted";

pub(super) fn check(config: &RuntimeConfig) -> Result<(), ConfigError> {
    let classes = &config.state_store;
    for class in &classes.fail_open_for_event_class {
        if class != MAY_FAIL_OPEN {
            let reason = format!("`{class}` cannot fail open; the list may hold {MAY_FAIL_OPEN}, or be empty");
            return Err(ConfigError::new("runtime.state_store.failOpenForEventClass", reason));
        }
    }
    for class in &classes.never_fail_open {
        if !CANONICAL_TYPES.contains(&class.as_str()) {
            let reason = format!("there is no event `{class}`; events are {}", CANONICAL_TYPES.join(", "));
            return Err(ConfigError::new("runtime.state_store.neverFailOpen", reason));
        }
    }
    let place = &config.place;
    let is_region = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=64).contains(&place.region.len()) || !place.region.bytes().all(is_region) {
        return Err(ConfigError::new("runtime.place.region", "has 1 to 64 of a-z, 0-9 and -, such as us-east-1"));
    }
    if place.account.len() != 12 || !place.account.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ConfigError::new("runtime.place.account", "has 12 digits"));
    }
    Ok(())
}
