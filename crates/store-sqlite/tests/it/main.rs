//! The SQLite store: the suite that every store passes, and what only a file and its one writer have.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod ahead;
mod backup;
mod checksums;
mod conformance;
mod crash;
mod disk;
mod full;
mod group;
mod guards;
mod opening;
mod removal;
mod sabotage;
mod support;
mod through;
mod upgrade;
