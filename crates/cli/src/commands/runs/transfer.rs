//! Runs as files. The bytes are passed on untouched: the file's digest is over them.

use servo_client::{AtomicFile, IfExists};

use crate::args::{ExportArgs, ImportArgs};
use crate::commands::each::one_by_one;
use crate::commands::ids;
use crate::commands::store::existing;
use crate::failure::{Failure, exit};
use crate::input;
use crate::run::{Session, interruptible};
use crate::view::RunRefs;

pub(super) async fn export(session: &Session, args: &ExportArgs) -> Result<u8, Failure> {
    let Some(path) = &args.file else {
        return one_by_one(session, &args.run, async |run| {
            let file = interruptible(async { Ok(session.client.export_run(run).await?) }).await?;
            session.out.text(file.raw())?;
            Ok(exit::OK)
        })
        .await;
    };
    let run = ids::single(session, std::slice::from_ref(&args.run)).await?;
    let if_exists = if args.replace { IfExists::Replace } else { IfExists::Refuse };
    let refused = |error: servo_client::Error| existing(error.into(), path, args.replace);
    let mut target = AtomicFile::create(path, if_exists).map_err(refused)?;
    let file = interruptible(async { Ok(session.client.export_run(&run).await?) }).await?;
    target.write(file.raw().as_bytes())?;
    target.commit().map_err(refused)?;
    session.out.note(&format!("{} events of {} written to {}", file.events.len(), run, path.display()));
    Ok(exit::OK)
}

pub(super) async fn import(session: &Session, args: &ImportArgs) -> Result<u8, Failure> {
    let file = input::read(&args.file)?;
    let imported = interruptible(async { Ok(session.client.import_run(file).await?) }).await?;
    let view = RunRefs { done: "imported", runs: vec![imported.run_id.clone()] };
    session.out.data(&view, imported.raw())?;
    Ok(exit::OK)
}
