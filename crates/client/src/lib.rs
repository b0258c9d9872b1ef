//! A typed client of the REST API: one method per endpoint, one error, a follower for event streams.
//!
//! It sends what it is given and repeats nothing by itself, except that a follower reconnects where it was. Retries are the
//! caller's decision: `runRequestId` and `signalId` make them safe.

mod answer;
mod backup;
mod client;
mod endpoints;
mod error;
mod file;
mod follow;
mod functions;
mod keys;
mod lambda;
mod lines;
mod path;
mod serverless;
mod sse;
mod timeline;

pub use answer::Answer;
pub use client::{Client, Options};
pub use endpoints::RunFilter;
pub use error::{Error, exit_code};
pub use file::{AtomicFile, IfExists};
pub use follow::{Followed, Follower};
pub use keys::AuditFilter;
pub use lambda::{ExecutionFilter, HistoryFilter, Invocation, Invoked, execution_arn, run_of_arn};
pub use lines::LineFollower;
pub use serverless::{BulkRequest, EntrypointQuery, InvocationQuery, ListQuery, StatusCounts, TypeItem};
pub use timeline::TimelineFollower;
