//! Deliberately broken variants, so that a test of a guarantee can show that it would notice. Without the feature
//! `sabotage` every question below is a constant `false` and the variants are not in the program.

use servo_store::Result;

use crate::Config;

/// Which variant a store was opened with, if any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sabotage {
    #[cfg(feature = "sabotage")]
    variant: Option<Variant>,
}

macro_rules! variants {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $question:ident;)*) => {
        #[cfg(feature = "sabotage")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Variant { $($variant),* }

        impl Sabotage {
            #[cfg(feature = "sabotage")]
            pub(crate) fn of(config: &Config) -> Result<Self> {
                let variant = match config.sabotage.as_deref() {
                    None => None,
                    $(Some($name) => Some(Variant::$variant),)*
                    Some(other) => return Err(servo_store::Error::Invalid {
                        field: "sabotage".to_owned(),
                        reason: format!("there is no variant {other}"),
                    }),
                };
                Ok(Self { variant })
            }

            #[cfg(not(feature = "sabotage"))]
            pub(crate) fn of(_config: &Config) -> Result<Self> {
                Ok(Self {})
            }

            $(
                $(#[$doc])*
                pub(crate) fn $question(self) -> bool {
                    #[cfg(feature = "sabotage")]
                    { self.variant == Some(Variant::$variant) }
                    #[cfg(not(feature = "sabotage"))]
                    { false }
                }
            )*
        }
    };
}

impl Sabotage {
    /// Between an answer and its commit: long enough for a kill to fall into it now and then.
    #[expect(clippy::disallowed_methods, reason = "only broken variants wait like this")]
    pub(crate) fn dawdle() {
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
}

variants! {
    /// Waiters are answered before the commit that holds their work.
    AckBeforeCommit = "ack-before-commit", acks_before_commit;
    /// Commits reach the operating system but not the disk.
    SynchronousNormal = "synchronous-normal", syncs_rarely;
    /// Nothing is ever synced.
    SynchronousOff = "synchronous-off", never_syncs;
    /// An append is taken whatever sequence it expects.
    NoSeqCheck = "no-seq-check", ignores_sequences;
    /// An authority that has passed on may still write.
    NoFence = "no-fence", ignores_fences;
    /// A read of one run does not wait for what is ahead of the database.
    StaleReads = "stale-reads", forgets_what_changed;
    /// Where the database has no room for what was answered, a read of it is refused.
    ReadsNeedRoom = "reads-need-room", refuses_reads;
    /// Every commit happens, and then reports an error of the disk.
    CommitIoError = "commit-io-error", reports_commit_errors;
    /// Events are written without a checksum: what changed afterwards looks as if it had been written.
    NoChecksums = "no-checksums", writes_no_checksums;
    /// Not broken, but old: every event is a row of its own, as before there were packs.
    EventsAsRows = "events-as-rows", writes_rows;
}
