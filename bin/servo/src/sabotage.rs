//! Arming broken variants and crash points from the environment. In a build without the feature this does nothing.

use servo_cli::Failure;

/// The variant that `SERVO_SABOTAGE` names.
#[cfg(feature = "sabotage")]
#[expect(clippy::disallowed_methods, reason = "the binary reads the environment")]
pub(crate) fn variant() -> Option<String> {
    std::env::var("SERVO_SABOTAGE").ok().filter(|name| !name.is_empty())
}

#[cfg(not(feature = "sabotage"))]
pub(crate) fn variant() -> Option<String> {
    None
}

/// Gives the runtime the variant.
#[cfg(feature = "sabotage")]
pub(crate) fn weaken_runtime(config: &mut servo_runtime::RuntimeConfig) {
    config.sabotage = variant();
}

#[cfg(not(feature = "sabotage"))]
pub(crate) fn weaken_runtime(_config: &mut servo_runtime::RuntimeConfig) {}

/// Variants that stores do not have, and would refuse.
#[cfg(feature = "sabotage")]
const NOT_OF_STORES: [&str; 8] = [
    "fifo-dispatch",
    "answer-before-commit",
    "forget-timers",
    "two-invocations",
    "foreign-runs",
    "check-then-insert",
    "any-role",
    "one-room",
];

/// Gives a store the variant.
#[cfg(feature = "sabotage")]
pub(crate) fn weaken(config: &mut servo_store_sqlite::Config) {
    config.sabotage = variant().filter(|name| !NOT_OF_STORES.contains(&name.as_str()));
}

#[cfg(not(feature = "sabotage"))]
pub(crate) fn weaken(_config: &mut servo_store_sqlite::Config) {}

/// Arms the crash point that `SERVO_CRASHPOINT` names (`name` or `name:nth`).
#[cfg(feature = "sabotage")]
#[expect(clippy::disallowed_methods, reason = "the binary reads the environment")]
pub(crate) fn arm() -> Result<(), Failure> {
    let Ok(point) = std::env::var("SERVO_CRASHPOINT") else { return Ok(()) };
    let (name, nth) = point.split_once(':').unwrap_or((&point, "1"));
    let nth = nth.parse().map_err(|_| Failure::usage("SERVO_CRASHPOINT: the part behind `:` is a number"))?;
    if !servo_store_sqlite::CRASH_POINTS.arm(name, nth) && !servo_store_postgres::CRASH_POINTS.arm(name, nth) {
        return Err(Failure::usage(format!("SERVO_CRASHPOINT: there is no point {name}")));
    }
    Ok(())
}

#[cfg(not(feature = "sabotage"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature with and without the feature")]
pub(crate) fn arm() -> Result<(), Failure> {
    Ok(())
}
