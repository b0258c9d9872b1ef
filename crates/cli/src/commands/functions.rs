//! `servo functions`, `servo executions`, `servo callbacks`

use servo_client::{ExecutionFilter, HistoryFilter, Invocation, execution_arn, run_of_arn};
use servo_model::RunId;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{ErrorObject, ExecutionStatus};

use super::each::{ask, one_by_one};
use crate::args::{
    CallbacksCommand, ExecutionsCommand, Format, FunctionShowArgs, FunctionsCommand, InvokeArgs, LogsArgs,
    RegisterArgs, Target,
};
use crate::failure::{Failure, exit};
use crate::input;
use crate::output::json;
use crate::run::{Session, interruptible};
use crate::view::{Answered, Many};

pub(crate) async fn run(session: &Session, command: FunctionsCommand) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    interruptible(async {
        match command {
            FunctionsCommand::Register(args) => {
                let item = client.register_function(&args.name, &spec(&args)?).await?;
                out.data(&*item, item.raw())?;
                if let Some(address) = &item.worker_address {
                    out.note(&format!("workers ask for work at AWS_LAMBDA_RUNTIME_API={address}"));
                }
            }
            FunctionsCommand::List(args) => {
                let look = async || client.functions(args.after.as_deref(), Some(args.limit)).await;
                return session.show(&args.watch, look).await;
            }
            FunctionsCommand::Show(FunctionShowArgs { name, version: Some(version), watch }) => {
                return session.show(&watch, async || client.function_version(&name, version).await).await;
            }
            FunctionsCommand::Show(args) => {
                return session.show(&args.watch, async || client.function(&args.name).await).await;
            }
            FunctionsCommand::Unalias(args) => {
                client.remove_alias(&args.name, &args.alias).await?;
                out.note(&format!("removed {} of {}", args.alias, args.name));
            }
            FunctionsCommand::Alias(args) => {
                let item = client.put_alias(&args.name, &args.alias, args.version).await?;
                out.data(&*item, item.raw())?;
            }
            FunctionsCommand::Remove(args) => {
                client.remove_function(&args.name).await?;
                out.note(&format!("removed {}", args.name));
            }
            FunctionsCommand::Invoke(args) => return invoke(session, args).await,
            FunctionsCommand::Logs(args) => return logs(session, &args).await,
        }
        Ok(exit::OK)
    })
    .await
}

fn spec(args: &RegisterArgs) -> Result<FunctionSpec, Failure> {
    let reach = args.push.clone().map_or(Reach::Pull, |url| Reach::Push { url });
    let mut spec =
        FunctionSpec { durable: !args.plain, max_concurrent: args.max_concurrent, ..FunctionSpec::new(reach) };
    if let Some(timeout) = args.execution_timeout {
        spec.execution_timeout_seconds = timeout.as_secs();
    }
    if let Some(timeout) = args.invocation_timeout {
        spec.invocation_timeout_seconds = timeout.as_secs();
    }
    spec.check().map_err(|invalid| Failure::usage(invalid.to_string()))?;
    Ok(spec)
}

/// Text given on the command line: itself, a file's, or stdin's.
pub(super) fn payload(given: Option<String>) -> Result<Option<String>, Failure> {
    match given {
        Some(stdin) if stdin == "-" => input::read("-".as_ref()).map(Some),
        Some(file) if file.starts_with('@') => input::read(file[1..].as_ref()).map(Some),
        text => Ok(text),
    }
}

async fn invoke(session: &Session, args: InvokeArgs) -> Result<u8, Failure> {
    let invocation = Invocation {
        function: args.function,
        qualifier: args.qualifier,
        name: args.name,
        payload: payload(args.payload)?,
        is_event: args.event,
    };
    let answer = session.client.invoke(&invocation).await?;
    let failed = answer.function_error.is_some();
    let shown = Answered {
        status_code: answer.status,
        executed_version: answer.executed_version,
        durable_execution_arn: answer.execution_arn,
        function_error: answer.function_error,
        payload: answer.payload,
    };
    session.out.print(&shown)?;
    Ok(if failed { exit::RUN_FAILED } else { exit::OK })
}

async fn logs(session: &Session, args: &LogsArgs) -> Result<u8, Failure> {
    let client = &session.client;
    if args.of == "-" {
        let read = async |run: &RunId| lines(session, run, args.follow).await;
        return one_by_one(session, &Target::Stdin, read).await;
    }
    let run = match RunId::parse(&args.of).ok().filter(|_| args.of.starts_with("inv_")).or_else(|| run_of_arn(&args.of))
    {
        Some(run) => super::ids::whole(session, &run).await?,
        None => {
            let filter = ExecutionFilter { limit: Some(1), ..ExecutionFilter::default() };
            let newest = match client.executions(&args.of, &filter).await {
                Ok(newest) => newest,
                // No function: the last letters of a run, perhaps.
                Err(error) => match RunId::parse(&args.of) {
                    Ok(letters) => {
                        let run = super::ids::whole(session, &letters).await?;
                        if run == letters {
                            return Err(error.into());
                        }
                        return lines(session, &run, args.follow).await;
                    }
                    Err(_) => return Err(error.into()),
                },
            };
            let newest = newest.durable_executions.first().and_then(|item| run_of_arn(&item.durable_execution_arn));
            let none = || Failure::new(exit::NOT_FOUND, format!("`{}` has not been run yet", args.of));
            newest.ok_or_else(none)?
        }
    };
    lines(session, &run, args.follow).await
}

pub(super) async fn lines(session: &Session, run: &RunId, follow: bool) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    if follow {
        let mut lines = client.follow_lines(run, 0);
        while let Some(page) = lines.next().await? {
            out.data(&*page, page.raw())?;
        }
        return Ok(exit::OK);
    }
    let mut after = 0;
    loop {
        let page = client.run_logs(run, after, Some(1_000)).await?;
        let Some(last) = page.items.last() else { return Ok(exit::OK) };
        after = last.number;
        out.data(&*page, page.raw())?;
    }
}

pub(crate) async fn executions(session: &Session, command: ExecutionsCommand) -> Result<u8, Failure> {
    let client = &session.client;
    let look = async |run: &RunId| client.execution(&execution_arn(run)).await;
    match command {
        ExecutionsCommand::List(args) => {
            let statuses = args.status.iter().filter_map(|text| ExecutionStatus::parse(&text.to_uppercase()));
            let filter = ExecutionFilter {
                qualifier: args.qualifier,
                name: args.name,
                statuses: statuses.collect(),
                limit: Some(args.limit),
                marker: args.marker,
            };
            session.show(&args.watch, async || client.executions(&args.function, &filter).await).await
        }
        ExecutionsCommand::Get(args) if args.watch.watch => {
            let run = super::ids::single(session, &args.runs).await?;
            session.show(&args.watch, async || look(&run).await).await
        }
        ExecutionsCommand::Get(args) => ask(session, &args.runs, "get", look, Many).await,
        ExecutionsCommand::History(args) => {
            one_by_one(session, &args.run, async |run| history(session, run, args.newest_first).await).await
        }
        ExecutionsCommand::Stop(args) => {
            let error = ErrorObject { error_message: args.reason, ..ErrorObject::default() };
            let stop = async |run: &RunId| client.stop_execution(&execution_arn(run), &error).await;
            ask(session, &args.runs, "stop", stop, Many).await
        }
    }
}

/// Every page. Only JSON, which is one document, waits for the last one.
async fn history(session: &Session, run: &RunId, newest_first: bool) -> Result<u8, Failure> {
    let out = &session.out;
    interruptible(async {
        let mut filter = HistoryFilter { limit: Some(1_000), newest_first, ..HistoryFilter::default() };
        let mut raws = Vec::new();
        loop {
            let page = session.client.history(&execution_arn(run), &filter).await?;
            if out.format() == Format::Json {
                raws.extend(json::items(page.raw(), "Events")?);
            } else {
                out.data(&*page, page.raw())?;
            }
            filter.marker.clone_from(&page.next_marker);
            if filter.marker.is_none() {
                break;
            }
        }
        if out.format() == Format::Json {
            let items: Vec<_> = raws.iter().map(|raw| raw.get()).collect();
            out.text(&json::indent(&format!("{{\"Events\":[{}]}}", items.join(","))))?;
        }
        Ok(exit::OK)
    })
    .await
}

pub(crate) async fn callbacks(session: &Session, command: CallbacksCommand) -> Result<u8, Failure> {
    let client = &session.client;
    interruptible(async {
        match command {
            CallbacksCommand::Succeed(args) => client.succeed_callback(&args.id, payload(args.payload)?).await?,
            CallbacksCommand::Fail(args) => {
                let error =
                    ErrorObject { error_message: args.message, error_type: args.error_type, ..ErrorObject::default() };
                client.fail_callback(&args.id, &error).await?;
            }
            CallbacksCommand::Heartbeat(args) => client.heartbeat_callback(&args.id).await?,
        }
        session.out.note("answered");
        Ok(exit::OK)
    })
    .await
}
