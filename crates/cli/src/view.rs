//! What data looks like: pure functions from answers to text. One file per noun.

mod alerts;
mod config;
mod dead_letters;
mod doctor;
mod event;
mod functions;
mod keys;
mod many;
mod operations;
mod profiles;
mod runs;
mod runtime;
mod serverless;
mod snapshot;
mod store;
mod types;
mod version;
mod whoami;

use servo_model::Timestamp;

pub use crate::output::style::Style;
use crate::output::style::clean;
pub use config::{GoodConfig, PrintedConfig};
pub use doctor::{Check, CheckStatus, Diagnosis};
pub use functions::Answered;
pub use store::{BackupDone, RestoreDone};
pub use version::VersionReport;

pub(crate) use event::{EventLine, OperationNames};
pub(crate) use keys::GeneratedKey;
pub(crate) use many::Many;
pub(crate) use profiles::ProfileList;
pub(crate) use runs::{RunRefs, SignalledRuns};
pub(crate) use serverless::{Records, reason, timeline_line};
pub(crate) use whoami::{Caller, Origins, origins};

/// Something that can be printed.
pub trait View {
    /// The field that holds the items of a list: `jsonl` prints them one by one.
    const ITEMS: Option<&'static str> = None;

    /// For people.
    fn table(&self, style: &Style) -> String;

    /// For pipelines.
    fn ids(&self) -> Vec<String> {
        Vec::new()
    }

    /// The option that shows the next page, if there is one.
    fn more(&self) -> Option<String> {
        None
    }

    /// Whether nothing will change any more, so that nobody need look again.
    fn is_final(&self) -> bool {
        false
    }
}

/// Who put a run there that came out of a file: what a file said is not what was seen here.
fn imported(by: Option<&str>, at: Option<Timestamp>, style: &Style) -> Option<String> {
    let at = at.map(|at| format!("{}, ", style.time(at))).unwrap_or_default();
    by.map(|by| format!("{at}from a file, by {}", clean(by)))
}

#[cfg(test)]
mod tests;
