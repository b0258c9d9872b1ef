//! Where a test may end the process. Without the feature `sabotage` the macro is empty.

macro_rules! crashpoint {
    ($name:literal) => {
        #[cfg(feature = "sabotage")]
        $crate::crashpoint::CRASH_POINTS.hit($name);
    };
}

/// Before a commit means: locks are held, and the exchange that writes and commits has not been sent.
#[cfg(feature = "sabotage")]
pub static CRASH_POINTS: servo_store::crashpoints::CrashPoints = servo_store::crashpoints::CrashPoints::new(&[
    "postgres.migration.before_commit",
    "postgres.migration.after_commit",
    "postgres.append.before_begin",
    "postgres.append.before_commit",
    "postgres.append.after_commit",
    "postgres.retire.before_commit",
    "postgres.retire.after_commit",
    "postgres.trim.before_commit",
    "postgres.trim.after_commit",
]);
