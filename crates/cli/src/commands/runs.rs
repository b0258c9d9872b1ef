//! `servo runs …`

mod act;
mod events;
mod list;
mod start;
mod transfer;

use servo_model::event::SignalType;

use crate::args::{RunsCommand, SignalArgs};
use crate::failure::{Failure, exit};
use crate::run::{Session, interruptible};
use act::Signal;

pub(super) use act::new_signal_id;

pub(crate) async fn run(session: &Session, command: RunsCommand) -> Result<u8, Failure> {
    let verb = |kind, args: crate::args::VerbArgs| (args.targets.runs, Signal { kind, step: None, note: args.note });
    let (targets, signal) = match command {
        RunsCommand::List(args) => return list::list(session, args).await,
        RunsCommand::Get(args) => {
            let snapshot = interruptible(async { Ok(session.client.run(&args.run).await?) }).await?;
            session.out.data(&*snapshot, snapshot.raw())?;
            return Ok(exit::OK);
        }
        RunsCommand::Events(args) if args.follow => return events::follow(session, &args.run, args.after).await,
        RunsCommand::Events(args) => return events::all(session, &args).await,
        RunsCommand::Tail(args) => return events::follow(session, &args.run, args.after).await,
        RunsCommand::Start(args) => return start::start(session, args).await,
        RunsCommand::Export(args) => return transfer::export(session, &args).await,
        RunsCommand::Import(args) => return transfer::import(session, &args).await,
        RunsCommand::Terminate(args) => return act::terminate(session, &args).await,
        RunsCommand::Delete(args) => return act::delete(session, &args).await,
        RunsCommand::Signal(SignalArgs { run, kind, step, note }) => (vec![run], Signal { kind: kind.0, step, note }),
        RunsCommand::Pause(args) => verb(SignalType::Pause, args),
        RunsCommand::Resume(args) => verb(SignalType::Resume, args),
        RunsCommand::Cancel(args) => verb(SignalType::Cancel, args),
        RunsCommand::Approve(args) => verb(SignalType::Approve, args),
        RunsCommand::Retry(args) => {
            let kind = if args.step.is_some() { SignalType::RetryStep } else { SignalType::RetryRun };
            (args.targets.runs, Signal { kind, step: args.step, note: args.note })
        }
    };
    act::signal(session, &targets, &signal).await
}
