//! Tables for who may ask, stories of connections that come and go.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod connections;
mod guard;
