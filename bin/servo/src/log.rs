//! Logs go to stderr or a file, for people or as JSON lines, by way of a buffer that nobody waits for.

mod fold;
mod form;
mod sink;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use servo_cli::Failure;
use servo_cli::args::{LogArgs, LogFormat as Wanted};
use servo_server::config::{LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

use form::Form;
use sink::Open;
pub(crate) use sink::Sink;

/// What the end of the program waits for lines that nobody takes.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// The process's log, once it has one.
static SINK: OnceLock<Sink> = OnceLock::new();
static ON_STDERR: AtomicBool = AtomicBool::new(false);

/// Installs the subscriber: arguments win over the configuration.
pub(crate) fn install(args: &LogArgs, config: &LogConfig) -> Result<(), Failure> {
    let directives = args.filter.clone().unwrap_or_else(|| config.level.as_str().to_owned());
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        Failure::usage(format!("--log {directives}: {error}")).hint("such as info or servo_runtime=debug")
    })?;
    let json = match args.format {
        Some(format) => format == Wanted::Json,
        None => config.format == LogFormat::Json,
    };
    let coloured = config.file.is_none() && colour();
    let form = if json { Form::Json } else { Form::Text { coloured } };
    let (name, open) = match &config.file {
        Some(path) => (format!("log.file: {}", path.display()), to_file(path)),
        None => ("stderr".to_owned(), to_stderr()),
    };
    let sink = Sink::start(form, open).map_err(|error| {
        Failure::usage(format!("{name}: {error}")).hint("a file in a folder that is there and may be written to")
    })?;
    let sink = SINK.get_or_init(|| sink);
    ON_STDERR.store(config.file.is_none(), Ordering::Relaxed);
    // The time is put in by the sink, which compares lines without it.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(sink.clone());
    let builder = builder.with_ansi(coloured && !json).without_time();
    let installed = if json { builder.json().try_init() } else { builder.with_target(false).try_init() };
    // Only a second installation fails, and then the first one stands.
    let _ = installed;
    // The usual words about a panic go to stderr directly, where they could wait for whoever does not read it.
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let why = panic.payload_as_str().unwrap_or("no text");
        tracing::error!(at, "a task panicked: {why}");
    }));
    Ok(())
}

/// Says something to whoever follows the log, without waiting for them. False if there is no log yet.
pub(crate) fn say(text: &str) -> bool {
    let Some(sink) = SINK.get() else { return false };
    if !text.is_empty() {
        sink.say(text);
    }
    true
}

/// Whether there is a log, and it goes to stderr.
pub(crate) fn is_on_stderr() -> bool {
    ON_STDERR.load(Ordering::Relaxed)
}

/// The file was moved away by whoever rotates logs.
pub(crate) fn reopen() {
    if let Some(sink) = SINK.get() {
        sink.reopen();
    }
}

/// The end of the program: what waits is written, if anybody takes it.
pub(crate) fn finish() {
    if let Some(sink) = SINK.get() {
        sink.flush(FLUSH_WITHIN);
    }
}

/// Whether stderr shows colours, and nobody minds.
pub(crate) fn colour() -> bool {
    let minds = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !minds
}

/// Past the lock of the standard library's stderr: a line that cannot be written must not keep others from it.
fn to_stderr() -> Open {
    Box::new(|| {
        let own = io::stderr().as_fd().try_clone_to_owned()?;
        Ok(Box::new(File::from(own)))
    })
}

/// Only its owner reads it: lines name tenants and runs.
fn to_file(path: &Path) -> Open {
    let path = path.to_owned();
    Box::new(move || Ok(Box::new(OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?)))
}
