//! What `ctx`'s functions are given, checked and brought into one form.

use servo_model::invocation::RetryRule;
use starlark::values::float::UnpackFloat;
use starlark::values::{UnpackValue as _, Value};

use super::json;
use super::raised::wrong;

/// An argument that was left out, or is None, is not given.
pub(crate) fn given(value: Option<Value<'_>>) -> Option<Value<'_>> {
    value.filter(|value| !value.is_none())
}

pub(crate) fn text<'v>(what: &str, value: Option<Value<'v>>) -> starlark::Result<Option<&'v str>> {
    let Some(value) = given(value) else { return Ok(None) };
    match value.unpack_str() {
        Some(text) => Ok(Some(text)),
        None => Err(wrong(format!("{what} is a str, not {}", value.get_type()))),
    }
}

pub(crate) fn count(what: &str, value: Option<Value<'_>>) -> starlark::Result<Option<usize>> {
    let Some(value) = given(value) else { return Ok(None) };
    let number = value.unpack_i32().and_then(|number| usize::try_from(number).ok());
    number.map(Some).ok_or_else(|| wrong(format!("{what} is an int from 0, not {value}")))
}

/// Seconds as a number, or a text such as `"10m"` or `"1h30m"`. Rounded up: nothing takes less than asked.
pub(crate) fn seconds(what: &str, value: Value<'_>) -> starlark::Result<u64> {
    let seconds = match value.unpack_str() {
        Some(text) => parse_duration(text),
        None => UnpackFloat::unpack_value_opt(value).and_then(|UnpackFloat(number)| whole(number)),
    };
    seconds.ok_or_else(|| {
        wrong(format!(
            "{what} is a number of seconds, or a text such as \"30s\", \"10m\", \"1h30m\" or \"7d\", not {value}"
        ))
    })
}

pub(crate) fn optional_seconds(what: &str, value: Option<Value<'_>>) -> starlark::Result<Option<u64>> {
    given(value).map(|value| seconds(what, value)).transpose()
}

fn whole(number: f64) -> Option<u64> {
    let fits = number.is_finite() && (0.0..1e12).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 10^12")]
    let seconds = number.ceil() as u64;
    fits.then_some(seconds)
}

fn parse_duration(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = match rest.as_bytes().get(digits)? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[digits + 1..];
    }
    (!text.is_empty()).then_some(total)
}

/// The entrypoint's rule, changed by a number of attempts or by the words of a retry policy.
pub(crate) fn retry(value: Option<Value<'_>>, default: &RetryRule) -> starlark::Result<RetryRule> {
    let Some(value) = given(value) else { return Ok(default.clone()) };
    let mut rule = default.clone();
    if let Some(attempts) = value.unpack_i32() {
        rule.max_attempts = u32::try_from(attempts).map_err(|_| wrong("retry is a number of attempts from 0"))?;
        return Ok(rule);
    }
    let words = json::write(value, 64 * 1024).ok();
    let words: Option<Words> = words.and_then(|text| serde_json::from_str(&text).ok());
    let Some(words) = words else {
        return Err(wrong(
            "retry is a number of attempts, or a dict with max_attempts, initial_delay_ms, max_delay_ms, \
             backoff_multiplier and non_retryable_errors",
        ));
    };
    rule.max_attempts = words.max_attempts.unwrap_or(rule.max_attempts);
    rule.initial_delay_ms = words.initial_delay_ms.unwrap_or(rule.initial_delay_ms);
    rule.max_delay_ms = words.max_delay_ms.unwrap_or(rule.max_delay_ms.max(rule.initial_delay_ms));
    rule.non_retryable_errors = words.non_retryable_errors.unwrap_or(rule.non_retryable_errors);
    if let Some(multiplier) = words.backoff_multiplier {
        if !(1.0..=1_000.0).contains(&multiplier) {
            return Err(wrong("backoff_multiplier is a number from 1 to 1000"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1000 and 10^6")]
        let permille = (multiplier * 1_000.0).round() as u32;
        rule.backoff_permille = permille;
    }
    Ok(rule)
}

/// A retry policy in the words of the REST API.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    max_attempts: Option<u32>,
    initial_delay_ms: Option<u64>,
    max_delay_ms: Option<u64>,
    backoff_multiplier: Option<f64>,
    non_retryable_errors: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        let table = [("30s", 30), ("10m", 600), ("1h30m", 5_400), ("7d", 604_800), ("0s", 0)];
        for (text, seconds) in table {
            assert_eq!(parse_duration(text), Some(seconds), "{text}");
        }
        for wrong in ["", "10", "m", "-1s", "1.5h", "1 m", "99999999999999999999s", "1s2"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
        assert_eq!((whole(0.5), whole(2.0), whole(-1.0), whole(f64::NAN)), (Some(1), Some(2), None, None));
    }
}
