//! `servo runs …`

mod act;
mod events;
mod list;
mod start;
mod transfer;

use servo_model::event::SignalType;

use super::each::{ask, one_by_one};
use super::ids;
use crate::args::{GetArgs, RunsCommand, SignalArgs, Targets};
use crate::failure::Failure;
use crate::run::Session;
use crate::view::Many;
use act::Signal;

pub(super) use act::new_signal_id;

pub(crate) async fn run(session: &Session, command: RunsCommand) -> Result<u8, Failure> {
    let verb = |kind, args: crate::args::VerbArgs| (args.targets.runs, Signal { kind, step: None, note: args.note });
    let (targets, signal) = match command {
        RunsCommand::List(args) => return list::list(session, args).await,
        RunsCommand::Get(args) => {
            let GetArgs { targets: Targets { runs }, watch } = args;
            if watch.watch {
                let run = ids::single(session, &runs).await?;
                return session.show(&watch, async || session.client.run(&run).await).await;
            }
            return ask(session, &runs, "get", async |run| session.client.run(run).await, Many).await;
        }
        RunsCommand::Events(args) => {
            return one_by_one(session, &args.run, async |run| match args.follow {
                true => events::follow(session, run, args.after).await,
                false => events::all(session, run, &args).await,
            })
            .await;
        }
        RunsCommand::Tail(args) => {
            return one_by_one(session, &args.run, async |run| events::follow(session, run, args.after).await).await;
        }
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
