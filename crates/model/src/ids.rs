//! Typed ids. Each is a checked string: made once at the edge by `parse`, trusted everywhere else.
//!
//! Reserved spellings (`*`, `~`, `..`, empty) cannot be written with the allowed characters, so no id is a wildcard.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Invalid;
use crate::limits::{FUNCTION_NAME_CHARS_MAX, ID_CHARS_MAX, STEP_ID_CHARS_MAX, fits};

pub use uuid::Uuid as EventId;

fn check_plain(kind: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new("", format!("a {kind} is empty")));
    }
    if text.len() > ID_CHARS_MAX {
        return Err(Invalid::new("", format!("a {kind} has at most {ID_CHARS_MAX} characters")));
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Err(Invalid::new("", format!("a {kind} holds only letters, digits, `_` and `-`")));
    }
    Ok(())
}

/// Plan, project, environment and similar names also allow `.` and `/`, but no empty or dot-only part.
fn check_name(kind: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() || text.len() > ID_CHARS_MAX {
        return Err(Invalid::new("", format!("a {kind} has 1 to {ID_CHARS_MAX} characters")));
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':')) {
        return Err(Invalid::new("", format!("a {kind} holds only letters, digits and `_ - . / :`")));
    }
    if text.split('/').any(|part| part.is_empty() || part.bytes().all(|b| b == b'.')) {
        return Err(Invalid::new("", format!("a {kind} has no empty or dot-only part")));
    }
    Ok(())
}

/// Step ids may be any text a person would name a step with, but no control characters and no `|`, which joins the
/// parts of an idempotency key.
fn check_step(kind: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() || !fits(text, STEP_ID_CHARS_MAX) {
        return Err(Invalid::new("", format!("a {kind} has 1 to {STEP_ID_CHARS_MAX} characters")));
    }
    if text == "RUN" {
        return Err(Invalid::new("", "`RUN` is reserved for the run itself"));
    }
    if text.chars().any(|c| c.is_control() || c == '|') || text.trim() != text {
        return Err(Invalid::new("", format!("a {kind} has no `|`, control characters or outer white space")));
    }
    Ok(())
}

fn check_function(kind: &str, text: &str) -> Result<(), Invalid> {
    check_plain(kind, text)?;
    if text.len() > FUNCTION_NAME_CHARS_MAX {
        return Err(Invalid::new("", format!("a {kind} has at most {FUNCTION_NAME_CHARS_MAX} characters")));
    }
    Ok(())
}

/// An alias stands where a version could stand, so it must not look like one.
fn check_alias(kind: &str, text: &str) -> Result<(), Invalid> {
    check_plain(kind, text)?;
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Invalid::new("", format!("a {kind} is not all digits, which would be a version")));
    }
    Ok(())
}

/// `key_` and something, so that nothing else is taken for one.
fn check_key(kind: &str, text: &str) -> Result<(), Invalid> {
    check_plain(kind, text)?;
    if text.len() <= KEY_PREFIX.len() || !text.starts_with(KEY_PREFIX) {
        return Err(Invalid::new("", format!("a {kind} begins with `{KEY_PREFIX}`")));
    }
    Ok(())
}

const KEY_PREFIX: &str = "key_";

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                $check($kind, text)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, shared.
            pub fn text(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::text::parse(deserializer, concat!("a ", $kind), Self::parse)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id!(
    /// One execution. Ours are `inv_` and a time-ordered id; foreign logs may use any allowed spelling.
    RunId, "run id", check_plain);
text_id!(
    /// An isolated customer. Has no comma, so a list of tenants can be handed to the database's row security as text.
    TenantId, "tenant id", check_plain);
text_id!(
    /// One operation of a plan.
    StepId, "step id", check_step);
text_id!(
    /// Chosen by whoever sends a signal; sending the same id again changes nothing.
    SignalId, "signal id", check_plain);
text_id!(
    /// A registered function, inside its tenant.
    FunctionName, "function name", check_function);
text_id!(
    /// A name for one version of a function, which may be pointed at another one.
    AliasName, "function alias", check_alias);
text_id!(
    /// A key that callers show, by its public name. It also names the caller wherever the key is used.
    KeyId, "key id", check_key);
text_id!(PlanId, "plan id", check_name);
text_id!(
    /// Project, environment and other names inside a tenant.
    Name, "name", check_name);

impl RunId {
    /// The reserved stream for facts that belong to no run: authority, workers, operator dispatches.
    pub fn system() -> Self {
        Self("_system".into())
    }

    pub fn is_system(&self) -> bool {
        &*self.0 == "_system"
    }

    /// When it was made, if it is one of ours.
    pub fn created_at(&self) -> Option<crate::Timestamp> {
        let digits = self.0.strip_prefix("inv_").filter(|rest| rest.len() == 32)?;
        i64::from_str_radix(digits.get(..12)?, 16).ok().map(crate::Timestamp::from_millis)
    }

    /// A new id: `inv_`, 12 hex digits of milliseconds and 20 of randomness, so ids sort by time and inserts cluster.
    pub fn new(now: crate::Timestamp, random: [u8; 10]) -> Self {
        Self(time_ordered("inv_", now, random).into())
    }
}

impl KeyId {
    /// A new id, made as a run's.
    pub fn new(now: crate::Timestamp, random: [u8; 10]) -> Self {
        Self(time_ordered(KEY_PREFIX, now, random).into())
    }
}

fn time_ordered(prefix: &str, now: crate::Timestamp, random: [u8; 10]) -> String {
    let mut number = [0; 16];
    number[6..].copy_from_slice(&random);
    format!("{prefix}{:012x}{:020x}", now.as_millis().max(0), u128::from_be_bytes(number))
}

impl Name {
    /// The project and the environment of runs that name none.
    pub fn default_name() -> Self {
        static NAME: LazyLock<Name> = LazyLock::new(|| Name("default".into()));
        NAME.clone()
    }
}

impl TenantId {
    /// The tenant of the development principal and of the system stream.
    pub fn default_tenant() -> Self {
        Self("default".into())
    }

    pub fn system() -> Self {
        Self("_system".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_drawn_sort_by_time_and_say_all_digits() {
        let at = |millis, random| time_ordered("run_", crate::Timestamp::from_millis(millis), random);
        assert_eq!(at(10, [0, 0, 0, 0, 0, 0, 0, 0, 1, 255]), "run_00000000000a000000000000000001ff");
        assert_eq!(at(-1, [255; 10]), format!("run_000000000000{}", "f".repeat(20)));
        assert!(at(1_794_986_631_226, [0; 10]) > at(1_794_986_631_225, [255; 10]));
    }

    #[test]
    fn wildcards_and_controls_are_no_ids() {
        for bad in ["", "*", "~", "..", "a b", "a%00", "a\0b", "ä", "a/b", "a,b", &"x".repeat(129)] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
            assert!(TenantId::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "RUN", "a|b", " a", "a\n"] {
            assert!(StepId::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "..", "a/../b", "a//b", "/a"] {
            assert!(PlanId::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "a.b", "a:1", "$LATEST", "a b", &"x".repeat(65)] {
            assert!(FunctionName::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "1", "0042", "a.b", "$LATEST", &"x".repeat(129)] {
            assert!(AliasName::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "key_", "inv_1", "key_a b", "KEY_1"] {
            assert!(KeyId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(KeyId::parse(KeyId::new(crate::Timestamp::from_millis(1), [7; 10]).as_str()).is_ok());
        assert!(FunctionName::parse(&"x".repeat(64)).is_ok() && FunctionName::parse("1").is_ok());
        assert!(AliasName::parse(&"x".repeat(128)).is_ok() && AliasName::parse("1a").is_ok());
        assert!(StepId::parse("größe").is_ok());
        assert!(RunId::parse("run_2026-02-11_abc123").is_ok());
    }

    #[test]
    fn new_run_ids_sort_by_time() {
        let early = RunId::new(crate::Timestamp::from_millis(1_000), [0xff; 10]);
        let late = RunId::new(crate::Timestamp::from_millis(2_000), [0; 10]);
        assert!(early < late);
        assert!(RunId::parse(early.as_str()).is_ok());
    }
}
