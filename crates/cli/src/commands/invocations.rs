//! `servo invocations`

mod bulk;

use serde_json::Value;
use servo_client::{Answer, InvocationQuery};
use servo_entrypoint::{
    InvocationControlAction as Action, InvocationMode, InvocationRecord, InvocationRequest, InvocationSignal,
    InvocationStatus, SignalResult, gts,
};
use servo_model::{RunId, digits};

use super::each::{ask, one_by_one};
use super::entrypoints::{called, page, registration};
use super::functions::{lines, payload};
use crate::args::{Format, InvocationGetArgs, InvocationStartArgs, InvocationsCommand};
use crate::failure::{Failure, exit};
use crate::output::json;
use crate::output::style::clean;
use crate::run::{Session, interruptible};
use crate::view::{Records, reason, timeline_line};

pub(crate) async fn run(session: &Session, command: InvocationsCommand) -> Result<u8, Failure> {
    let client = &session.client;
    let (targets, action) = match command {
        InvocationsCommand::Start(args) => return start(session, args).await,
        InvocationsCommand::Timeline(args) => {
            return one_by_one(session, &args.id, async |id| match args.watch {
                true => watch(session, id.as_str()).await,
                false => timeline(session, id.as_str()).await,
            })
            .await;
        }
        InvocationsCommand::Watch(args) => {
            return one_by_one(session, &args.id, async |id| watch(session, id.as_str()).await).await;
        }
        InvocationsCommand::Logs(args) => {
            return one_by_one(session, &args.run, async |run| lines(session, run, args.follow).await).await;
        }
        InvocationsCommand::Bulk(args) => return bulk::run(session, args).await,
        InvocationsCommand::List(args) => {
            let query = InvocationQuery {
                entrypoint_id: args.entrypoint,
                status: args.status,
                correlation_id: args.correlation_id,
                mode: args.mode,
                page: page(args.page),
            };
            // Nothing of an entrypoint that is not there is no empty list.
            let address = query.entrypoint_id.clone().filter(|text| text.starts_with("gts.") && !args.watch.watch);
            let look = async || {
                let page = client.list_invocations(&query).await?;
                if let (Some(address), true, None) = (&address, page.items.is_empty(), &query.page.cursor) {
                    client.entrypoint(&registration(address)).await?;
                }
                Ok(page)
            };
            return session.show(&args.watch, look).await;
        }
        InvocationsCommand::Get(InvocationGetArgs { targets, watch }) if watch.watch => {
            let id = super::ids::single(session, &targets.ids).await?;
            return session.show(&watch, async || client.invocation(id.as_str()).await).await;
        }
        InvocationsCommand::Get(args) => {
            let look = async |id: &RunId| client.invocation(id.as_str()).await;
            return ask(session, &args.targets.ids, "get", look, Records).await;
        }
        InvocationsCommand::Counts(args) => {
            let look = async || client.count_invocations(args.entrypoint.as_deref()).await;
            return session.show(&args.watch, look).await;
        }
        InvocationsCommand::Signal(args) => {
            let signal_id = match args.signal_id {
                Some(id) => id,
                None => super::runs::new_signal_id()?.to_string(),
            };
            let signal = InvocationSignal { signal_id, name: args.name, payload: parsed(args.payload, "--payload")? };
            let send = async |id: &RunId| {
                let taken = client.signal_invocation(id.as_str(), &signal).await?;
                if let Some(note) = &taken.signal.note {
                    session.out.note(&clean(&format!("`{}`: {note}", signal.name)));
                }
                Ok(taken)
            };
            let records = |taken: Vec<SignalResult>| Records(taken.into_iter().map(|taken| taken.record).collect());
            return ask(session, &[args.id], "signal", send, records).await;
        }
        InvocationsCommand::Cancel(args) => (args, Action::Cancel),
        InvocationsCommand::Suspend(args) => (args, Action::Suspend),
        InvocationsCommand::Resume(args) => (args, Action::Resume),
        InvocationsCommand::Replay(args) => (args, Action::Replay),
        InvocationsCommand::Skip(args) => (args.targets, Action::SkipStep { step_id: args.step }),
        InvocationsCommand::Retry(args) => match args.step {
            Some(step_id) => (args.targets, Action::RetryStep { step_id }),
            None => (args.targets, Action::Retry),
        },
    };
    let control = async |id: &RunId| client.control_invocation(id.as_str(), &action).await;
    ask(session, &targets.ids, action.as_str(), control, Records).await
}

fn parsed(given: Option<String>, name: &str) -> Result<Value, Failure> {
    let Some(text) = payload(given)? else { return Ok(Value::Null) };
    let value = serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    // The server would refuse it, too, but could not see it: it is here that digits would be lost.
    match digits::first_too_large(&text) {
        None => Ok(value),
        Some(place) => Err(Failure::usage(format!("{name}: /{place}: {}", digits::ADVICE))),
    }
}

async fn start(session: &Session, args: InvocationStartArgs) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    let kind = match (args.workflow, args.function) {
        (true, _) => Some(gts::WORKFLOW),
        (false, true) => Some(gts::FUNCTION),
        (false, false) => None,
    };
    let request = InvocationRequest {
        entrypoint_id: called(&args.entrypoint, kind),
        mode: args.mode.as_deref().and_then(InvocationMode::parse),
        params: match args.params {
            None => serde_json::json!({}),
            given => parsed(given, "--params")?,
        },
        dry_run: args.dry_run,
        idempotency_key: args.key,
    };
    let started = interruptible(async { Ok(client.start_invocation(&request).await?) }).await?;
    for warning in &started.warnings {
        out.note(&clean(&format!("warning: {warning}")));
    }
    // To give up waiting is to wait.
    if !args.wait && !args.watch && args.timeout.is_none() {
        out.data(&*started, started.raw())?;
        let ended = started.record.mode == InvocationMode::Sync && !started.dry_run;
        return if ended { verdict(&started.record) } else { Ok(exit::OK) };
    }
    let id = started.record.invocation_id.clone();
    out.note(&format!("started {id}"));
    let goes_on = |failure: Failure| failure.hint(format!("it goes on: `servo invocations watch {id}`"));
    let follow = async {
        let mut events = client.follow_timeline(&id);
        while let Some(event) = events.next().await? {
            if args.watch {
                out.note(&timeline_line(&event, &out.progress_style()));
            }
        }
        Ok(())
    };
    let follow = async {
        match args.timeout {
            None => follow.await,
            Some(limit) => {
                let late = || Failure::new(exit::TIMED_OUT, format!("timed out waiting for {id}"));
                tokio::time::timeout(limit, follow).await.unwrap_or_else(|_| Err(late()))
            }
        }
    };
    interruptible(follow).await.map_err(|failure| match failure.exit {
        exit::INTERRUPTED | exit::TIMED_OUT => goes_on(failure),
        _ => failure,
    })?;
    let record: Answer<InvocationRecord> = interruptible(async { Ok(client.invocation(&id).await?) }).await?;
    out.data(&*record, record.raw())?;
    verdict(&record)
}

/// A run that has ended otherwise than it should.
fn verdict(record: &InvocationRecord) -> Result<u8, Failure> {
    use InvocationStatus as S;
    match record.status {
        S::Succeeded | S::Queued | S::Running | S::Suspended => Ok(exit::OK),
        S::Failed | S::Canceled | S::Compensating | S::Compensated | S::DeadLettered => {
            let why = reason(record).map(|why| format!(": {why}")).unwrap_or_default();
            let id = &record.invocation_id;
            let ended = match record.status {
                S::Canceled => "was canceled",
                S::Compensating => "has failed and is being undone",
                S::Compensated => "has failed and was undone",
                S::DeadLettered => "has failed and is a dead letter",
                _ => "has failed",
            };
            let what = clean(&format!("{id} {ended}{why}"));
            Err(Failure::new(exit::RUN_FAILED, what)
                .hint(format!("`servo invocations get {id}` shows its steps, `timeline` what happened")))
        }
    }
}

async fn timeline(session: &Session, id: &str) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    interruptible(async {
        let mut page = client.timeline(id, None).await?;
        // JSON is one document, so it waits for the last page.
        let mut raws = Vec::new();
        loop {
            if out.format() == Format::Json {
                raws.extend(json::items(page.raw(), "items")?);
            } else {
                out.data(&*page, page.raw())?;
            }
            let Some(cursor) = page.page_info.next_cursor.clone() else { break };
            page = client.timeline(id, Some(&cursor)).await?;
        }
        if out.format() == Format::Json {
            let items: Vec<_> = raws.iter().map(|raw| raw.get()).collect();
            out.text(&json::indent(&format!("{{\"items\":[{}]}}", items.join(","))))?;
        }
        Ok(exit::OK)
    })
    .await
}

async fn watch(session: &Session, id: &str) -> Result<u8, Failure> {
    interruptible(async {
        let mut events = session.client.follow_timeline(id);
        while let Some(event) = events.next().await? {
            let line = match session.out.format() {
                Format::Table | Format::Ids => timeline_line(&event, &session.out.line_style()),
                // A stream is no single document, so each event is one.
                Format::Json | Format::Jsonl => json::compact(event.raw()),
            };
            session.out.text(&line)?;
        }
        Ok(exit::OK)
    })
    .await
}
