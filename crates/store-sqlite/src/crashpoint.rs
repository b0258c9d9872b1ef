//! Where a test may end the process. Without the feature `sabotage` the macro is empty.

macro_rules! crashpoint {
    ($name:literal) => {
        #[cfg(feature = "sabotage")]
        $crate::crashpoint::CRASH_POINTS.hit($name);
    };
}

#[cfg(feature = "sabotage")]
pub static CRASH_POINTS: servo_store::crashpoints::CrashPoints = servo_store::crashpoints::CrashPoints::new(&[
    "sqlite.migration.before_commit",
    "sqlite.migration.after_commit",
    "sqlite.append.before_begin",
    "sqlite.append.before_commit",
    "sqlite.append.after_commit",
    "sqlite.redo.switched",
    "sqlite.apply.before_commit",
    "sqlite.apply.after_commit",
    "sqlite.direct.before_commit",
    "sqlite.direct.after_commit",
    "sqlite.recover.applied",
    "sqlite.checkpoint.before",
    "sqlite.checkpoint.after",
    "sqlite.retire.hidden",
    "sqlite.retire.purged",
    "sqlite.trim.deleted",
    "sqlite.backup.before_rename",
    "sqlite.restore.before_rename",
    "sqlite.close.before_checkpoint",
]);
