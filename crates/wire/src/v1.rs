//! Version 1 of the REST API, one file per resource. JSON is camelCase, except the runtime contract's own documents.

pub mod alerts;
pub mod audit;
pub mod dead_letters;
pub mod events;
pub mod functions;
pub mod health;
pub mod keys;
pub mod runs;
pub mod runtime;
pub mod series;
pub mod signals;
pub mod store;
pub mod transfer;
pub mod whoami;

pub use alerts::AlertList;
pub use audit::AuditList;
pub use dead_letters::{DeadLetter, DeadLetterList, RedriveRequest, Redriven};
pub use events::EventPage;
pub use functions::{
    AliasItem, AliasRequest, FunctionItem, FunctionList, FunctionView, LineItem, LineList, VersionItem,
};
pub use health::Version;
pub use keys::{CreateKeyRequest, CreatedKey, KeyItem, KeyKind, KeyList, KeyStatus};
pub use runs::{PlanRefRequest, RunItem, RunList, StartRunRequest, StartedRun};
pub use runtime::{Executed, RuntimeEventPage};
pub use series::{Series, SeriesPoint};
pub use signals::{SignalAnswer, SignalRequest};
pub use store::{Finding, Retired, StoreInfo, VerifyReport};
pub use transfer::{RunFile, RunRef, TerminateRequest};
pub use whoami::WhoAmI;
