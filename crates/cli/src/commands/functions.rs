//! `servo functions`, `servo executions`, `servo callbacks`

use servo_client::{ExecutionFilter, HistoryFilter, Invocation, execution_arn, run_of_arn};
use servo_model::RunId;
use servo_model::function::{FunctionSpec, Reach};
use servo_model::operation::{ErrorObject, ExecutionStatus};

use crate::args::{CallbacksCommand, ExecutionsCommand, FunctionsCommand, InvokeArgs, LogsArgs, RegisterArgs};
use crate::failure::{Failure, exit};
use crate::input;
use crate::run::{Session, interruptible};
use crate::view::Answered;

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
                let list = client.functions(args.after.as_deref(), Some(args.limit)).await?;
                out.data(&*list, list.raw())?;
                if let Some(after) = &list.after {
                    out.note(&format!("there are more: --after {after}"));
                }
            }
            FunctionsCommand::Show(args) => {
                let view = client.function(&args.name).await?;
                out.data(&*view, view.raw())?;
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
    let (client, out) = (&session.client, &session.out);
    let run = match RunId::parse(&args.of).ok().filter(|_| args.of.starts_with("inv_")).or_else(|| run_of_arn(&args.of))
    {
        Some(run) => run,
        None => {
            let filter = ExecutionFilter { limit: Some(1), ..ExecutionFilter::default() };
            let newest = client.executions(&args.of, &filter).await?;
            let newest = newest.durable_executions.first().and_then(|item| run_of_arn(&item.durable_execution_arn));
            let none = || Failure::new(exit::NOT_FOUND, format!("`{}` has not been run yet", args.of));
            newest.ok_or_else(none)?
        }
    };
    if args.follow {
        let mut lines = client.follow_lines(&run, 0);
        while let Some(page) = lines.next().await? {
            out.data(&*page, page.raw())?;
        }
        return Ok(exit::OK);
    }
    let mut after = 0;
    loop {
        let page = client.run_logs(&run, after, Some(1_000)).await?;
        let Some(last) = page.items.last() else { return Ok(exit::OK) };
        after = last.number;
        out.data(&*page, page.raw())?;
    }
}

pub(crate) async fn executions(session: &Session, command: ExecutionsCommand) -> Result<u8, Failure> {
    let (client, out) = (&session.client, &session.out);
    interruptible(async {
        match command {
            ExecutionsCommand::List(args) => {
                let statuses = args.status.iter().filter_map(|text| ExecutionStatus::parse(&text.to_uppercase()));
                let filter = ExecutionFilter {
                    qualifier: None,
                    name: args.name,
                    statuses: statuses.collect(),
                    limit: Some(args.limit),
                    marker: args.marker,
                };
                let page = client.executions(&args.function, &filter).await?;
                out.data(&*page, page.raw())?;
                if let Some(marker) = &page.next_marker {
                    out.note(&format!("there are more: --marker {marker}"));
                }
            }
            ExecutionsCommand::Get(args) => {
                let execution = client.execution(&args.arn).await?;
                out.data(&*execution, execution.raw())?;
            }
            ExecutionsCommand::History(args) => {
                let mut filter = HistoryFilter { limit: Some(1_000), ..HistoryFilter::default() };
                loop {
                    let page = client.history(&args.arn, &filter).await?;
                    out.data(&*page, page.raw())?;
                    filter.marker.clone_from(&page.next_marker);
                    if filter.marker.is_none() {
                        break;
                    }
                }
            }
            ExecutionsCommand::Stop(args) => {
                let error = ErrorObject { error_message: args.reason, ..ErrorObject::default() };
                let stopped = client.stop_execution(&args.arn, &error).await?;
                out.data(&*stopped, stopped.raw())?;
            }
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

/// The ARN that a run or an ARN stands for.
pub(crate) fn arn_of(text: &str) -> Result<String, String> {
    if run_of_arn(text).is_some() {
        return Ok(text.to_owned());
    }
    RunId::parse(text).map(|run| execution_arn(&run)).map_err(|invalid| invalid.reason)
}
