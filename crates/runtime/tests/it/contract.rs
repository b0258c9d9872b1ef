//! The runtime contract: authority, dispatch backlog, replay, snapshot, and the facts that the running system reports.

mod authority;
mod backlog;
mod replay;
mod reports;
mod snapshot;
