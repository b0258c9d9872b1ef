//! The real binary, from outside: processes, files, signals and HTTP.
//!
//! Crash suites are short here and long with `cargo xtask crash` (`SERVO_CRASH_PERCENT`). Every suite has a control: the same
//! suite over a broken variant must find something, else it proves nothing.

// The published example uses the SDK by this name.
extern crate servo_sdk as aws_durable_execution_sdk;

mod bus;
mod cli;
mod console;
mod contract;
mod crash;
mod demo;
mod dev;
mod disk;
mod docs;
mod doctor;
mod entrypoints;
mod log;
mod operate;
mod peers;
mod readers;
mod support;
mod telemetry;
mod tls;
mod versions;
mod workers;
