//! The conformance cases of the durable execution API: what a case file says, and whether a history is what it asks for.
//! Reads and compares only; the handlers and the server are in the tests.

mod case;
mod logs;
mod matcher;
mod text;

pub use case::{Action, Answer, Case, CaseError};
pub use logs::{LogRecord, LogRule};
pub use matcher::{Bindings, Mismatch, matches};
pub use text::spaced;
