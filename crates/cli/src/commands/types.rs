//! `servo types`, and the two documents that a server prints about itself.

use crate::args::TypesCommand;
use crate::commands::runtime::print_schema;
use crate::failure::{Failure, exit};
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session, command: TypesCommand) -> Result<u8, Failure> {
    match command {
        TypesCommand::List(watch) => session.show(&watch, async || session.client.types().await).await,
        TypesCommand::Get(args) => {
            let schema = interruptible(async { Ok(session.client.type_schema(&args.id).await?) }).await?;
            print_schema(&session.out, schema.raw())?;
            Ok(exit::OK)
        }
    }
}

/// Metrics have a form of their own, whatever the format.
pub(crate) async fn metrics(session: &Session) -> Result<u8, Failure> {
    let text = interruptible(async { Ok(session.client.metrics().await?) }).await?;
    session.out.text(&text)?;
    Ok(exit::OK)
}

pub(crate) async fn openapi(session: &Session) -> Result<u8, Failure> {
    let document = interruptible(async { Ok(session.client.openapi().await?) }).await?;
    print_schema(&session.out, document.raw())?;
    Ok(exit::OK)
}
