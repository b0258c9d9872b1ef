//! What data looks like: pure functions from answers to text. One file per noun.

mod alerts;
mod dead_letters;
mod doctor;
mod event;
mod functions;
mod keys;
mod runs;
mod runtime;
mod serverless;
mod snapshot;
mod store;
mod version;
mod whoami;

pub use crate::output::style::Style;
pub use doctor::{Check, CheckStatus, Diagnosis};
pub use functions::Answered;
pub use store::{BackupDone, RestoreDone};
pub use version::VersionReport;

pub(crate) use event::EventLine;
pub(crate) use runs::{RunRefs, SignalledRuns};
pub(crate) use serverless::timeline_line;

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
}

#[cfg(test)]
mod tests;
