//! `servo dead-letters …`

use crate::args::DeadLettersCommand;
use crate::failure::{Failure, exit};
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session, command: DeadLettersCommand) -> Result<u8, Failure> {
    let Session { client, out } = session;
    interruptible(async {
        match command {
            DeadLettersCommand::List(args) => {
                let letters = client.dead_letters(args.after.as_deref(), Some(args.limit)).await?;
                out.data(&*letters, letters.raw())?;
                if let Some(next) = &letters.next_after {
                    out.note(&format!("there are more: --after {next}"));
                }
            }
            DeadLettersCommand::Redrive(args) => {
                let redriven = client.redrive(args.position.as_deref()).await?;
                out.data(&*redriven, redriven.raw())?;
            }
        }
        Ok(exit::OK)
    })
    .await
}
