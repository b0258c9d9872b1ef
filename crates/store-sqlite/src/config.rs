//! What a SQLite store is opened with. Reading it from files or the environment is the binary's business.

use std::fmt;
use std::path::PathBuf;

use servo_model::limits::Limits;
use servo_store::TimeSource;

/// Jobs that may wait for the writer. At a thousand commits a second and full groups this is a few milliseconds of work;
/// whoever finds it full is better told at once.
const QUEUE_JOBS_MAX: usize = 16_384;
/// Payload bytes that may wait for the writer, so that few large appends cannot eat the memory.
const QUEUE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Reads are short and from the page cache; more threads than cores only wait for each other.
const READERS: usize = 2;

/// How to open a store.
#[derive(Clone)]
pub struct Config {
    /// The folder that holds the database and its lock. Made if it is not there.
    pub data_dir: PathBuf,
    pub limits: Limits,
    /// Where `emitted_at`, leases and timers take the time from.
    pub time: TimeSource,
    /// Commits what waits together. Off only to measure what it gains.
    pub group_commit: bool,
    /// Threads that read, each with its own connection, opened when first used. At least one.
    pub readers: usize,
    /// Writes beyond these limits are refused at once with `Unavailable`.
    pub queue_jobs_max: usize,
    pub queue_bytes_max: usize,
    /// Largest size of the database in pages of the file, which are of 8 KiB where it is new; more is `Full`. `None` leaves it to the disk.
    pub pages_max: Option<u32>,
    /// Opens a store that was not closed in order and lacks something of its redo file, without it. What is missing is said in
    /// the log and in an alert; without this the store is refused.
    pub accept_loss: bool,
    /// The name of a deliberately broken variant.
    #[cfg(feature = "sabotage")]
    pub sabotage: Option<String>,
}

impl Config {
    /// Defaults for everything but the place and the time.
    pub fn new(data_dir: impl Into<PathBuf>, time: TimeSource) -> Self {
        Self {
            data_dir: data_dir.into(),
            limits: Limits::default(),
            time,
            group_commit: true,
            readers: READERS,
            queue_jobs_max: QUEUE_JOBS_MAX,
            queue_bytes_max: QUEUE_BYTES_MAX,
            pages_max: None,
            accept_loss: false,
            #[cfg(feature = "sabotage")]
            sabotage: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("data_dir", &self.data_dir)
            .field("limits", &self.limits)
            .field("group_commit", &self.group_commit)
            .field("readers", &self.readers)
            .field("pages_max", &self.pages_max)
            .finish_non_exhaustive()
    }
}
