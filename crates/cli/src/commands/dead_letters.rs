//! `servo dead-letters …`

use crate::args::DeadLettersCommand;
use crate::failure::{Failure, exit};
use crate::run::{Session, interruptible};

pub(crate) async fn run(session: &Session, command: DeadLettersCommand) -> Result<u8, Failure> {
    let Session { client, out } = session;
    match command {
        DeadLettersCommand::List(args) => {
            let look = async || client.dead_letters(args.after.as_deref(), Some(args.limit)).await;
            session.show(&args.watch, look).await
        }
        DeadLettersCommand::Redrive(args) => {
            interruptible(async {
                let redriven = client.redrive(args.position.as_deref()).await?;
                out.data(&*redriven, redriven.raw())?;
                Ok(exit::OK)
            })
            .await
        }
    }
}
