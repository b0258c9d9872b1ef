//! From arguments to effects: remote commands are executed, local ones handed back.

use std::future::Future;

use servo_client::{Client, Options};
use servo_model::codes;
use servo_model::contract::{RuntimeCommand, json_schema};

use crate::args::{
    Cli, Command, ConfigCommand, DeadLettersCommand, DemoCommand, EmbeddedArgs, EntrypointsCommand, ExecArgs,
    ExecutionsCommand, Format, FunctionsCommand, Global, InvocationsCommand, KeysCommand, RunsCommand, RuntimeCommands,
    SnapshotArgs, StoreArgs, StoreCommand, TypesCommand,
};
use crate::commands;
use crate::failure::{Failure, exit};
use crate::input;
use crate::local::{Local, Next, RuntimeAction, StoreAction};
use crate::output::Out;
use crate::profiles;
use crate::settings::{Origin, Setting, Settings};

/// A server and a place to print.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) out: Out,
}

/// Executes a command. A failure is not printed: [`Out::failure`] does that and knows the exit code.
pub async fn run(cli: Cli) -> Result<Next, Failure> {
    let Cli { global, command } = cli;
    if global.format() == Format::Ids && !has_ids(&command) {
        return Err(Failure::usage("this command has no ids to print").hint("leave -o ids out, or use -o json"));
    }
    let code = match command {
        Command::Dev(args) => return Ok(Next::Local(Local::Dev(args))),
        Command::Demo(DemoCommand::Crash) => return Ok(Next::Local(Local::DemoCrash)),
        Command::Server(args) => return Ok(Next::Local(Local::Server(args))),
        Command::Config(ConfigCommand::Check(args)) => return Ok(Next::Local(Local::ConfigCheck(args))),
        Command::Config(ConfigCommand::Print(args)) => return Ok(Next::Local(Local::ConfigPrint(args))),
        Command::Doctor(args) => return Ok(Next::Local(Local::Doctor(args))),
        Command::Runs(command) => commands::runs::run(&session(&global)?, command).await?,
        Command::Entrypoints(command) => commands::entrypoints::run(&session(&global)?, command).await?,
        Command::Invocations(command) => commands::invocations::run(&session(&global)?, command).await?,
        Command::Functions(command) => commands::functions::run(&session(&global)?, command).await?,
        Command::Executions(command) => commands::functions::executions(&session(&global)?, command).await?,
        Command::Callbacks(command) => commands::functions::callbacks(&session(&global)?, command).await?,
        Command::Runtime(command) => return runtime(&global, command).await,
        Command::Store(args) => return store(&global, args).await,
        Command::Keys(KeysCommand::Generate(args)) => commands::keys::generate(&Out::new(&global), args)?,
        Command::Explain { code } => commands::explain::run(&code, &Out::new(&global))?,
        Command::Keys(command) => commands::keys::run(&session(&global)?, command).await?,
        Command::Audit(command) => commands::keys::audit(&session(&global)?, command).await?,
        Command::Alerts(args) => commands::alerts::run(&session(&global)?, &args).await?,
        Command::DeadLetters(command) => commands::dead_letters::run(&session(&global)?, command).await?,
        Command::Whoami => commands::whoami::run(&global).await?,
        Command::Profiles(command) => commands::profiles::run(&global, command)?,
        Command::Types(command) => commands::types::run(&session(&global)?, command).await?,
        Command::Metrics => commands::types::metrics(&session(&global)?).await?,
        Command::Openapi => commands::types::openapi(&session(&global)?).await?,
        Command::Completions { shell } => commands::completions::run(shell, &Out::new(&global))?,
        Command::Version => commands::version::run(&global).await?,
    };
    Ok(Next::Done(code))
}

pub(crate) fn session(global: &Global) -> Result<Session, Failure> {
    let settings = Settings::of(global)?;
    let mut options = Options::new(&settings.server.value, settings.token.as_ref().map(|token| token.value.clone()));
    options.user_agent = concat!("servo-cli/", env!("CARGO_PKG_VERSION")).to_owned();
    if let Some(file) = &settings.ca_file {
        options.ca_pem = Some(input::read(&file.value)?.into_bytes());
    }
    let session = Session { client: Client::with_options(&options)?, out: Out::new(global) };
    if options.token.is_some() && session.client.is_in_the_clear() {
        session.out.note(&format!("warning: the key goes to {} unencrypted", session.client.server()));
    }
    if let (Some(Setting { from: Origin::Profile(_), .. }), Some(file)) = (&settings.token, &settings.file)
        && profiles::is_open_to_others(file)
    {
        let file = file.display();
        session.out.note(&format!("warning: others can read the keys in {file}; run `chmod 600 {file}`"));
    }
    Ok(session)
}

/// Runs until it is done or Ctrl-C is pressed.
pub(crate) async fn interruptible<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        // Without a handler the signal ends the process, which is as good.
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::new(exit::INTERRUPTED, "interrupted")),
    }
}

async fn runtime(global: &Global, command: RuntimeCommands) -> Result<Next, Failure> {
    let (embedded, action) = match command {
        RuntimeCommands::Exec(ExecArgs { command, embedded }) => {
            (embedded, RuntimeAction::Exec(parse_command(&command)?))
        }
        RuntimeCommands::Snapshot(SnapshotArgs { embedded, look }) if look.watch => {
            if embedded.data_dir.is_some() {
                return Err(Failure::usage("a data folder that no server has open does not change")
                    .hint("leave --watch out, or ask a server"));
            }
            let session = session(global)?;
            let code = session.show(&look, async || session.client.runtime_snapshot().await).await?;
            return Ok(Next::Done(code));
        }
        RuntimeCommands::Snapshot(args) => (args.embedded, RuntimeAction::Snapshot),
        RuntimeCommands::Events(args) => {
            (args.embedded, RuntimeAction::Events { after: args.after, limit: args.limit })
        }
        RuntimeCommands::Schema => return schema(global).await,
    };
    let EmbeddedArgs { data_dir, at } = embedded;
    match data_dir {
        Some(data_dir) => Ok(Next::Local(Local::RuntimeLocal { data_dir, at, action })),
        None => Ok(Next::Done(commands::runtime::run(&session(global)?, action).await?)),
    }
}

/// Checked here, so that a malformed command is refused the same way wherever it would go.
fn parse_command(argument: &str) -> Result<RuntimeCommand, Failure> {
    let stdin = if argument == "-" { Some(input::read("-".as_ref())?) } else { None };
    let text = stdin.as_deref().unwrap_or(argument);
    RuntimeCommand::parse(text).map_err(|invalid| {
        Failure::invalid(codes::SCHEMA_VALIDATION_FAILED, &invalid)
            .hint("`servo runtime schema` has the commands and their fields")
    })
}

/// The contract is the same everywhere in one version, so it needs a server only when one is named.
async fn schema(global: &Global) -> Result<Next, Failure> {
    if Settings::of(global)?.names_a_server() {
        return Ok(Next::Done(commands::runtime::schema(&session(global)?).await?));
    }
    let raw = json_schema().to_string();
    commands::runtime::print_schema(&Out::new(global), &raw)?;
    Ok(Next::Done(exit::OK))
}

async fn store(global: &Global, args: StoreArgs) -> Result<Next, Failure> {
    let action = match args.command {
        StoreCommand::Info => StoreAction::Info,
        StoreCommand::Backup(args) => StoreAction::Backup(args),
        StoreCommand::Restore(args) => StoreAction::Restore(args),
        StoreCommand::Verify => StoreAction::Verify,
        StoreCommand::AcceptLoss => StoreAction::AcceptLoss,
        StoreCommand::Retention(args) => StoreAction::Retention { older_than: args.older_than },
    };
    match args.data_dir {
        Some(data_dir) => Ok(Next::Local(Local::StoreLocal { data_dir, action })),
        None => Ok(Next::Done(commands::store::run(&session(global)?, action).await?)),
    }
}

fn has_ids(command: &Command) -> bool {
    match command {
        Command::Runs(RunsCommand::Export(_)) => false,
        Command::Keys(_) | Command::Audit(_) => true,
        Command::Runs(_) | Command::Alerts(_) | Command::DeadLetters(DeadLettersCommand::List(_)) => true,
        Command::Entrypoints(command) => !matches!(command, EntrypointsCommand::Delete(_)),
        Command::Invocations(command) => !matches!(
            command,
            InvocationsCommand::Timeline(_)
                | InvocationsCommand::Watch(_)
                | InvocationsCommand::Logs(_)
                | InvocationsCommand::Counts(_)
        ),
        Command::Functions(command) => {
            use FunctionsCommand as F;
            !matches!(command, F::Remove(_) | F::Logs(_) | F::Alias(_) | F::Unalias(_))
        }
        Command::Profiles(_) => true,
        Command::Types(command) => matches!(command, TypesCommand::List(_)),
        Command::Executions(command) => matches!(command, ExecutionsCommand::List(_) | ExecutionsCommand::Get(_)),
        Command::Callbacks(_) => false,
        Command::Store(args) => matches!(args.command, StoreCommand::Verify),
        Command::DeadLetters(DeadLettersCommand::Redrive(_))
        | Command::Dev(_)
        | Command::Demo(_)
        | Command::Server(_)
        | Command::Config(_)
        | Command::Runtime(_)
        | Command::Doctor(_)
        | Command::Whoami
        | Command::Metrics
        | Command::Openapi
        | Command::Explain { .. }
        | Command::Completions { .. }
        | Command::Version => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    async fn next(line: &[&str]) -> Result<Next, Failure> {
        run(Cli::try_parse_from(line).unwrap()).await
    }

    #[tokio::test]
    async fn local_commands_are_handed_back() {
        let found = next(&["servo", "dev", "--port", "0"]).await.unwrap();
        assert!(matches!(found, Next::Local(Local::Dev(args)) if args.port == 0));
        let found =
            next(&["servo", "runtime", "snapshot", "--data-dir", "d", "--at", "2026-02-11T10:30:00Z"]).await.unwrap();
        assert!(matches!(found, Next::Local(Local::RuntimeLocal { at: Some(_), action: RuntimeAction::Snapshot, .. })));
        let found = next(&["servo", "store", "--data-dir", "d", "verify"]).await.unwrap();
        assert!(matches!(found, Next::Local(Local::StoreLocal { action: StoreAction::Verify, .. })));
        let found = next(&["servo", "store", "retention", "--data-dir", "d", "--older-than", "30d"]).await.unwrap();
        assert!(matches!(
            found,
            Next::Local(Local::StoreLocal { action: StoreAction::Retention { older_than: Some(_) }, .. })
        ));
    }

    /// RT-018: exit code 2, the field named, before anything is opened or sent.
    #[tokio::test]
    async fn a_malformed_command_is_refused_before_it_is_sent() {
        for (json, field) in [
            (r#"{"command":"Explode"}"#, "command"),
            (r#"{"command":"QueueDispatch","request_id":7,"target":"t"}"#, "request_id"),
            (r#"{"command":"MarkDelivered","request_id":"r","extra":"x"}"#, "extra"),
            ("{", "not a JSON object"),
        ] {
            for place in [&["--data-dir", "nowhere"][..], &["--server", "http://127.0.0.1:1"][..]] {
                let line = [&["servo", "runtime", "exec", json][..], place].concat();
                let failure = next(&line).await.unwrap_err();
                assert_eq!(failure.exit, exit::USAGE, "{json}");
                assert!(failure.to_string().contains(field), "{failure}");
            }
        }
    }

    #[tokio::test]
    async fn ids_are_refused_where_there_are_none() {
        let failure = next(&["servo", "store", "retention", "-o", "ids"]).await.unwrap_err();
        assert_eq!(failure.exit, exit::USAGE);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_exit_code_9() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let hang_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let failure = next(&["servo", "runs", "list", "--server", &server]).await.unwrap_err();
        assert_eq!(failure.exit, exit::UNAVAILABLE);
        assert!(failure.to_string().contains(&server), "{failure}");
        hang_up.join().unwrap();
    }
}
