//! The `servo` program: the only place where stores, bus, adapters and server meet.
//!
//! `servo-cli` parses every command and executes those that talk to a server. What is left comes back here: starting a
//! server (`start`), and commands that open a data folder themselves (`folder`, `doctor`).

mod background;
mod code;
mod config;
mod deadline;
mod demo;
mod dev;
mod dev_key;
mod doctor;
mod folder;
mod functions;
mod log;
mod ready;
mod sabotage;
mod sample;
mod signals;
mod start;
mod stores;
mod telemetry;

use std::process::ExitCode;

use dev::flags::DevFlags;
use servo_cli::{Cli, Command, Failure, Global, Local, Next, Out, exit};

/// Requests and events are many small pieces that one thread makes and another frees, which costs glibc's allocator most.
#[global_allocator]
static ALLOCATOR: servo_adapter_starlark::KeptStack<servo_heap::Heap> =
    servo_adapter_starlark::KeptStack(servo_heap::Heap);

const WORKERS_MIN: usize = 2;
const WORKERS_MAX: usize = 16;

fn main() -> ExitCode {
    // A child that runs sandboxed code: no command of people, and nothing else of this program is set up for it.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == code::WORKER) {
        return servo_adapter_starlark::worker_main();
    }
    let matches = dev::flags::command().get_matches();
    let (cli, flags) = dev::flags::parse(&matches).unwrap_or_else(|error| error.exit());
    let out = Out::new(&cli.global);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(cli, flags, &out)),
        Err(error) => Err(Failure::new(exit::ERROR, format!("the async runtime does not start: {error}"))),
    };
    let code = result.unwrap_or_else(|failure| {
        // Where the log goes to stderr: behind the lines that say why, and waiting for nobody.
        let is_said = log::is_on_stderr() && log::say(&out.failure_text(&failure));
        if is_said { failure.exit } else { out.failure(&failure) }
    });
    log::finish();
    ExitCode::from(code)
}

/// As many as there are processors. Two even with one, so that a long answer does not hold up the short ones; and not more
/// than the store's one writer can feed.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(WORKERS_MIN, |found| found.get().clamp(WORKERS_MIN, WORKERS_MAX))
}

async fn run(cli: Cli, flags: DevFlags, out: &Out) -> Result<u8, Failure> {
    // Chosen once for the process; an earlier choice is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let global = cli.global.clone();
    if let Command::Completions { shell } = cli.command {
        // Here, because only here all options are known.
        return out.text(&dev::flags::completions(shell)).map(|()| exit::OK);
    }
    match servo_cli::run(cli).await? {
        Next::Done(code) => Ok(code),
        Next::Local(local) => here(local, flags, &global, out).await,
    }
}

async fn here(local: Local, flags: DevFlags, global: &Global, out: &Out) -> Result<u8, Failure> {
    sabotage::arm()?;
    match local {
        Local::Dev(args) => dev::run(args, flags, global, out).await,
        Local::DemoCrash => demo::crash::run(out).await,
        Local::Server(args) => start::server(args).await,
        Local::ConfigCheck(args) => config::check(&args, out),
        Local::ConfigPrint(args) => config::print(&args, out),
        Local::RuntimeLocal { data_dir, at, action } => folder::runtime(&data_dir, at, action, out).await,
        Local::StoreLocal { data_dir, action } => folder::store(&data_dir, action, out).await,
        Local::Doctor(args) => doctor::run(args, global, out).await,
    }
}
