//! What travels over HTTP, as types: requests, answers and problems of the REST API, shared by server and client.
//!
//! Requests refuse unknown fields, so that a misspelt one is not dropped silently; answers ignore them, so that an older
//! client reads a newer server. Conversions to and from `servo-model` are here; nothing here sends or receives.

pub mod channel;
pub mod document;
pub mod key;
pub mod lambda;
mod object;
pub mod problem;
pub mod sigv4;
pub mod v1;

pub use problem::{FieldProblem, Problem};
