//! `servo runtime …` on a server.

use crate::args::Format;
use crate::failure::{Failure, exit};
use crate::local::RuntimeAction;
use crate::output::{Out, json};
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session, action: RuntimeAction) -> Result<u8, Failure> {
    let Session { client, out } = session;
    interruptible(async {
        match action {
            RuntimeAction::Exec(command) => {
                let executed = client.execute(&command).await?;
                out.data(&*executed, executed.raw())?;
            }
            RuntimeAction::Snapshot => {
                let snapshot = client.runtime_snapshot().await?;
                out.data(&*snapshot, snapshot.raw())?;
            }
            RuntimeAction::Events { after, limit } => {
                let page = client.runtime_events(after.as_deref(), Some(limit)).await?;
                out.data(&*page, page.raw())?;
            }
        }
        Ok(exit::OK)
    })
    .await
}

pub(crate) async fn schema(session: &Session) -> Result<u8, Failure> {
    let schema = interruptible(async { Ok(session.client.runtime_schema().await?) }).await?;
    print_schema(&session.out, schema.raw())?;
    Ok(exit::OK)
}

/// A schema is JSON whatever the format; `jsonl` has it on one line.
pub(crate) fn print_schema(out: &Out, raw: &str) -> Result<(), Failure> {
    out.text(&if out.format() == Format::Jsonl { json::compact(raw) } else { json::indent(raw) })
}
