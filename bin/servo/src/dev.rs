//! `servo dev`: the same server on loopback with SQLite, the mock engine and something to see.

mod definition;
mod diff;
pub(crate) mod flags;
mod folder;
mod line;
mod live;
pub(crate) mod printer;
mod registrar;
mod time;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use servo_adapter_lambda::LambdaHandlers;
use servo_cli::args::{DevArgs, LogFormat};
use servo_cli::{Failure, Global, Out, exit};
use servo_runtime::{Clock, Shutdown, SystemClock};
use servo_server::config::{LogLevel, StoreConfig};
use servo_store_sqlite::SqliteStore;

use crate::functions::Given;
use crate::ready::Announcement;
use crate::start::{Begun, Start};
use crate::{config, dev_key, log, sample, start};
use flags::DevFlags;
use folder::Folder;
use live::Live;
use printer::{Colour, Printer};
use registrar::Registrar;
use time::JumpingClock;

/// How often the programs of functions are looked at.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: DevArgs, flags: DevFlags, global: &Global, out: &Out) -> Result<u8, Failure> {
    if flags.virtual_time && !args.ephemeral {
        // Its events would be of times that have not come, and the next start would stand in their past.
        let what = "--virtual-time would fill a kept store with events of the future";
        return Err(Failure::usage(what).hint("add --ephemeral"));
    }
    // What was said wrong is told before anything is removed, started or put into the store.
    let given = args.function.iter().map(|text| Given::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &flags.entrypoints {
        folder::check(path)?;
    }
    let mut config = config::load(None)?;
    config.server.bind = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), args.port);
    config.server.tls = None;
    config.auth.keys.clear();
    config.auth.access_keys.clear();
    config.engines.mock = true;
    // The banner is the start's own word; the log begins where something is worth a look.
    config.log.level = LogLevel::Warn;
    log::install(&args.log, &config.log)?;
    let temporary = if args.ephemeral { Some(tempfile::tempdir().map_err(|error| failed(&error))?) } else { None };
    let data_dir = temporary.as_ref().map_or_else(|| args.data_dir.clone(), |folder| folder.path().to_owned());
    if args.reset {
        reset(&data_dir, out)?;
    }
    config.store = StoreConfig::Sqlite { path: data_dir.clone() };
    let announcement = if args.ready_json {
        Announcement::Json { ephemeral: args.ephemeral }
    } else {
        let in_ci = std::env::var_os("CI").is_some();
        let open = !args.no_open && !in_ci;
        Announcement::Banner {
            ephemeral: args.ephemeral,
            open,
            virtual_time: flags.virtual_time,
            sample: !args.no_sample,
        }
    };
    // Whoever wants JSON on stderr has a program reading it.
    let shows_events = !flags.quiet && args.log.format != Some(LogFormat::Json);
    let (printer, held) = Printer::on_stderr(global.color);
    let jumping = flags.virtual_time.then(JumpingClock::new);
    let clock: Arc<dyn Clock> = match &jumping {
        Some(clock) => Arc::new(clock.clone()),
        None => Arc::new(SystemClock),
    };
    let start = Start { config, announcement, clock, people: Some(held), dev: true };
    start::run(start, async |server: Begun<'_>| {
        let Begun { runtime, handlers, serverless, tasks } = server;
        let refused = |error| crate::stores::refused("the store", error);
        if shows_events {
            let live = Live::new(runtime.engine(), printer.clone()).await.map_err(refused)?;
            tasks.spawn("live log", live.follow());
        }
        if let Some(clock) = jumping {
            tasks.spawn("virtual time", time::run(runtime.engine().clone(), clock, printer.clone()));
        }
        for function in &given {
            function.begin(runtime, handlers).await?;
        }
        if !args.no_sample {
            sample::start_on_empty_store(runtime, serverless.as_ref()).await;
        }
        let stop = runtime.engine().shutdown().clone();
        if given.iter().any(Given::is_program) {
            tasks.spawn("programs", replace_changed(handlers.clone(), printer.clone(), stop.clone()));
        }
        if let Some(path) = flags.entrypoints {
            let engine = runtime.engine().clone();
            let registrar = Registrar { engine, serverless: serverless.clone(), printer: printer.clone() };
            tasks.spawn("entrypoints", Folder::open(path, registrar).await?.watch(stop));
        }
        Ok(Some(dev_key::ensure(runtime, &data_dir).await?))
    })
    .await
}

/// Starts workers anew whose program was built again.
async fn replace_changed(handlers: Arc<LambdaHandlers>, printer: Printer, stop: Shutdown) {
    loop {
        tokio::select! {
            biased;
            () = stop.triggered() => return,
            () = SystemClock.sleep(LOOK) => {}
        }
        let replaced = handlers.replace_changed().await;
        if replaced > 0 {
            let noun = if replaced == 1 { "worker" } else { "workers" };
            printer.line(printer.paint(Colour::Green, &format!("{replaced} {noun} replaced: the program changed")));
        }
    }
}

/// Removes a store and nothing else, and says what: a folder that holds other things is left alone.
fn reset(folder: &Path, out: &Out) -> Result<(), Failure> {
    let database = folder.join(servo_store_sqlite::DATABASE_FILE);
    if !folder.exists() {
        out.note(&format!("Nothing to reset: {} is not there.", folder.display()));
        return Ok(());
    }
    if !database.exists() {
        let what = format!("{} holds no store", folder.display());
        return Err(Failure::usage(what).hint("--reset removes only a data folder that `servo dev` made"));
    }
    // A running server keeps its data. Any other reason why a store does not open is one more to remove it.
    let opened = SqliteStore::open(servo_store_sqlite::Config::new(folder, crate::stores::system_time()));
    if let Err(error @ servo_store::Error::InUse { .. }) = opened {
        return Err(crate::stores::refused(&folder.display().to_string(), error));
    }
    drop(opened);
    let database = ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", servo_store_sqlite::DATABASE_FILE));
    let mut removed = Vec::new();
    let redo = servo_store_sqlite::REDO_FILES;
    for name in database.iter().map(String::as_str).chain(redo).chain([dev_key::FILE]) {
        let path = folder.join(name);
        if path.exists() {
            std::fs::remove_file(&path).map_err(|error| failed(&error))?;
            removed.push(name);
        }
    }
    out.note(&format!("Reset {}: removed {}.", folder.display(), removed.join(", ")));
    Ok(())
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(exit::ERROR, error.to_string())
}
