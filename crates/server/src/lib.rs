//! The HTTP surface of a runtime: parse, authenticate, authorise, hand to the runtime, answer.
//!
//! No handler decides anything about runs; that is `servo-machine`, reached through `servo-runtime`. What is decided here
//! is who is asking (`auth`), what a request may look like (`body`, `params`, `cursor`), how much at once (`request`,
//! `rooms`, `link`, `sse`), and how no is said (`error`). The environment is not read here: whoever builds a `Config` passes it in.

mod app;
mod audit;
pub mod auth;
mod body;
pub mod config;
mod console;
mod cursor;
mod error;
mod failures;
pub mod host;
pub mod identity;
mod link;
mod members;
mod metrics;
pub mod openapi;
mod opened;
mod params;
mod payloads;
mod plan_source;
mod request;
mod rooms;
mod routes;
mod series;
mod serve;
mod sigv4;
mod sse;
mod tls;

pub use app::{App, Parts};
pub use auth::Auth;
pub use config::{Config, ConfigError};
pub use plan_source::PlanSources;
pub use serve::serve;
pub use tls::{Tls, TlsError};
