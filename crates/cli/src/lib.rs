//! The command line: arguments, remote commands over `servo-client`, and what data looks like on a terminal.
//!
//! Commands that need a store or a runtime of their own ([`Local`]) are parsed here and handed back to the binary, so that
//! this crate links no engine. The binary prints their results with [`Out`], and they look the same as a server's.

pub mod args;
mod commands;
mod failure;
mod input;
mod local;
mod output;
mod profiles;
mod run;
mod settings;
pub mod view;
mod watch;

pub use args::{Cli, Command, Global};
pub use commands::doctor;
pub use failure::{Failure, exit};
pub use local::{Local, Next, RuntimeAction, StoreAction};
pub use output::Out;
pub use run::run;
