//! Values that are more than text: ids, times, durations. Each error says what is allowed.

use std::time::Duration;

use servo_model::ids::Name;
use servo_model::{AliasName, FunctionName, Invalid, Role, RunId, SignalId, StepId, TenantId, Timestamp};

use super::runs::Target;

/// `30s`, `1h 30m`, `7d` or ISO 8601 such as `PT30S`. A day has 24 hours.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "not a duration such as 30s, 5m, 7d or PT30S".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| "a duration is not negative".to_owned())
}

/// How often to look.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    let allowed = Duration::from_millis(100)..=Duration::from_secs(3_600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("between 100ms and 1h".to_owned()) }
}

pub fn parse_time(text: &str) -> Result<Timestamp, Invalid> {
    Timestamp::parse(text)
}

pub(super) fn run_id_or_dash(text: &str) -> Result<Target, Invalid> {
    if text == "-" { Ok(Target::Stdin) } else { RunId::parse(text).map(Target::Run) }
}

/// A run or the ARN of an execution, or `-`.
pub(super) fn execution_or_dash(text: &str) -> Result<Target, Invalid> {
    match servo_client::run_of_arn(text) {
        Some(run) => Ok(Target::Run(run)),
        None => run_id_or_dash(text),
    }
}

/// The name of a profile.
pub(super) fn profile(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=64).contains(&text.len()) && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("1 to 64 letters, digits, `-`, `_` and `.`".to_owned())
    }
}

pub(super) fn step_id(text: &str) -> Result<StepId, Invalid> {
    StepId::parse(text)
}

pub(super) fn signal_id(text: &str) -> Result<SignalId, Invalid> {
    SignalId::parse(text)
}

pub(super) fn name(text: &str) -> Result<Name, Invalid> {
    Name::parse(text)
}

pub(super) fn function_name(text: &str) -> Result<FunctionName, Invalid> {
    FunctionName::parse(text)
}

pub(super) fn alias_name(text: &str) -> Result<AliasName, Invalid> {
    AliasName::parse(text)
}

pub(super) fn tenant(text: &str) -> Result<TenantId, Invalid> {
    TenantId::parse(text)
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| format!("not one of {}", Role::ALL.map(Role::as_str).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_friendly_or_iso() {
        let cases = [("30s", 30), ("5m", 300), ("1h 30m", 5_400), ("7d", 604_800), ("PT30S", 30), ("P1DT1H", 90_000)];
        for (text, seconds) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "30", "-5s", "soon", "1y"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
