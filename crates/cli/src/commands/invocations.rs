//! `servo invocations`

use serde_json::Value;
use servo_client::{Answer, BulkRequest, InvocationQuery};
use servo_entrypoint::{
    InvocationControlAction as Action, InvocationMode, InvocationRecord, InvocationRequest, InvocationSignal,
    InvocationStatus,
};

use super::entrypoints::{address, more, page};
use super::functions::payload;
use crate::args::{BulkArgs, Format, InvocationStartArgs, InvocationsCommand};
use crate::failure::{Failure, exit};
use crate::output::json;
use crate::output::style::clean;
use crate::run::{Session, interruptible};
use crate::view::timeline_line;

pub(crate) async fn run(session: &Session, command: InvocationsCommand) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    let (id, action) = match command {
        InvocationsCommand::Start(args) => return start(session, args).await,
        InvocationsCommand::Timeline(args) if args.watch => return watch(session, &args.id).await,
        InvocationsCommand::Timeline(args) => return timeline(session, &args.id).await,
        InvocationsCommand::Watch(args) => return watch(session, &args.id).await,
        InvocationsCommand::Bulk(args) => return bulk(session, args).await,
        InvocationsCommand::List(args) => {
            let query = InvocationQuery {
                entrypoint_id: args.entrypoint,
                status: args.status,
                correlation_id: args.correlation_id,
                page: page(args.page),
            };
            let page = interruptible(async { Ok(client.list_invocations(&query).await?) }).await?;
            out.data(&*page, page.raw())?;
            more(session, page.page_info.next_cursor.as_deref());
            return Ok(exit::OK);
        }
        InvocationsCommand::Get(args) => {
            let record = interruptible(async { Ok(client.invocation(&args.id).await?) }).await?;
            out.data(&*record, record.raw())?;
            return Ok(exit::OK);
        }
        InvocationsCommand::Counts(args) => {
            let counts =
                interruptible(async { Ok(client.count_invocations(args.entrypoint.as_deref()).await?) }).await?;
            out.data(&*counts, counts.raw())?;
            return Ok(exit::OK);
        }
        InvocationsCommand::Signal(args) => {
            let signal_id = match args.signal_id {
                Some(id) => id,
                None => super::runs::new_signal_id()?.to_string(),
            };
            let signal = InvocationSignal { signal_id, name: args.name, payload: parsed(args.payload, "--payload")? };
            let record = interruptible(async { Ok(client.signal_invocation(&args.id, &signal).await?) }).await?;
            out.data(&*record, record.raw())?;
            return Ok(exit::OK);
        }
        InvocationsCommand::Cancel(args) => (args.id, Action::Cancel),
        InvocationsCommand::Suspend(args) => (args.id, Action::Suspend),
        InvocationsCommand::Resume(args) => (args.id, Action::Resume),
        InvocationsCommand::Replay(args) => (args.id, Action::Replay),
        InvocationsCommand::Retry(args) => match args.step {
            Some(step_id) => (args.id, Action::RetryStep { step_id }),
            None => (args.id, Action::Retry),
        },
    };
    let record = interruptible(async { Ok(client.control_invocation(&id, &action).await?) }).await?;
    out.data(&*record, record.raw())?;
    Ok(exit::OK)
}

fn parsed(given: Option<String>, name: &str) -> Result<Value, Failure> {
    match payload(given)? {
        None => Ok(Value::Null),
        Some(text) => serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{name}: {error}"))),
    }
}

async fn start(session: &Session, args: InvocationStartArgs) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    let request = InvocationRequest {
        entrypoint_id: address(&args.entrypoint, args.workflow),
        mode: args.mode.as_deref().and_then(InvocationMode::parse),
        params: parsed(args.params, "--params")?,
        dry_run: args.dry_run,
        idempotency_key: args.key,
    };
    let started = interruptible(async { Ok(client.start_invocation(&request).await?) }).await?;
    if !args.wait && !args.watch {
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
    interruptible(follow).await.map_err(|failure| match failure.exit {
        exit::INTERRUPTED => goes_on(failure),
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
            let why = record.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
            let id = &record.invocation_id;
            let what = clean(&format!("{id} is {}{why}", record.status.as_str()));
            Err(Failure::new(exit::RUN_FAILED, what)
                .hint(format!("`servo invocations timeline {id}` shows what happened")))
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

async fn bulk(session: &Session, args: BulkArgs) -> Result<u8, Failure> {
    let action = match args.action.as_str() {
        "cancel" => Action::Cancel,
        "suspend" => Action::Suspend,
        "resume" => Action::Resume,
        "retry" => Action::Retry,
        _ => Action::Replay,
    };
    let request = BulkRequest {
        action,
        filter: args.filter,
        max_items: Some(args.max_items),
        per_second: args.per_second,
        dry_run: args.dry_run,
        cursor: args.cursor,
    };
    let page = interruptible(async { Ok(session.client.bulk_control(&request).await?) }).await?;
    session.out.data(&*page, page.raw())?;
    if let Some(cursor) = &page.page_info.next_cursor {
        session.out.note(&format!("there are more: run the command again with --cursor {cursor}"));
    }
    let refused = page.items.iter().filter(|outcome| outcome.error.is_some()).count();
    Ok(if refused == 0 { exit::OK } else { exit::CONFLICT })
}
