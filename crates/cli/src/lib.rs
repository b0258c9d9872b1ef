//! The command line: arguments, remote commands over `servo-client`, and what data looks like on a terminal.
//!
//! Commands that need a store or a runtime of their own ([`Local`]) are parsed here and handed back to the binary, so that
//! this crate links no engine.

pub mod args;

pub use args::{Cli, Command};
