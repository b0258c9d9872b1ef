//! Runs as files. The bytes are passed on untouched: the file's digest is over them.

use servo_client::{AtomicFile, IfExists};

use crate::args::{ExportArgs, ImportArgs};
use crate::commands::store::existing;
use crate::failure::{Failure, exit};
use crate::input;
use crate::run::{Session, interruptible};
use crate::view::RunRefs;

pub(super) async fn export(session: &Session, args: &ExportArgs) -> Result<u8, Failure> {
    let Some(path) = &args.file else {
        let file = interruptible(async { Ok(session.client.export_run(&args.run).await?) }).await?;
        session.out.text(file.raw())?;
        return Ok(exit::OK);
    };
    let if_exists = if args.replace { IfExists::Replace } else { IfExists::Refuse };
    let refused = |error: servo_client::Error| existing(error.into(), path, args.replace);
    let mut target = AtomicFile::create(path, if_exists).map_err(refused)?;
    let file = interruptible(async { Ok(session.client.export_run(&args.run).await?) }).await?;
    target.write(file.raw().as_bytes())?;
    target.commit().map_err(refused)?;
    session.out.note(&format!("{} events of {} written to {}", file.events.len(), args.run, path.display()));
    Ok(exit::OK)
}

pub(super) async fn import(session: &Session, args: &ImportArgs) -> Result<u8, Failure> {
    let file = input::read(&args.file)?;
    let imported = interruptible(async { Ok(session.client.import_run(file).await?) }).await?;
    let view = RunRefs { done: "imported", runs: vec![imported.run_id.clone()] };
    session.out.data(&view, imported.raw())?;
    Ok(exit::OK)
}
