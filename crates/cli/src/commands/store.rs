//! `servo store …` on a server.

use servo_client::IfExists;

use crate::failure::{Failure, exit};
use crate::local::StoreAction;
use crate::run::{Session, interruptible};
use crate::view::BackupDone;

pub(crate) async fn run(session: &Session, action: StoreAction) -> Result<u8, Failure> {
    let Session { client, out } = session;
    interruptible(async {
        match action {
            StoreAction::Info => {
                let info = client.store_info().await?;
                out.data(&*info, info.raw())?;
            }
            StoreAction::Backup(args) => {
                let if_exists = if args.replace { IfExists::Replace } else { IfExists::Refuse };
                let written = client.download_backup(&args.file, if_exists).await;
                let size_bytes = written.map_err(|error| existing(error.into(), &args.file, args.replace))?;
                out.print(&BackupDone { file: args.file, size_bytes })?;
            }
            StoreAction::Restore(_) => {
                return Err(Failure::usage("a running server cannot take a backup back")
                    .hint("stop it, then name its data folder with --data-dir"));
            }
            StoreAction::AcceptLoss => {
                return Err(Failure::usage("a running server has all that it needs")
                    .hint("for a store that does not open, name its data folder with --data-dir"));
            }
            StoreAction::Verify => {
                let report = client.verify_store().await?;
                out.data(&*report, report.raw())?;
                return Ok(if report.is_clean() { exit::OK } else { exit::ERROR });
            }
            StoreAction::Retention { .. } => {
                let retired = client.run_retention().await?;
                out.data(&*retired, retired.raw())?;
            }
        }
        Ok(exit::OK)
    })
    .await
}

/// Says how to write over a file that is there.
pub(crate) fn existing(failure: Failure, file: &std::path::Path, replace: bool) -> Failure {
    if !replace && file.exists() { failure.hint("choose another file, or add --replace") } else { failure }
}
