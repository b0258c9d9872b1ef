//! Starting a run, and waiting for its end.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use servo_canon::Digest;
use servo_client::Answer;
use servo_model::codes;
use servo_model::plan::TriggerSource;
use servo_model::{Invalid, PlanId, RunId, RunSnapshot, RunStatus};
use servo_wire::v1::{PlanRefRequest, StartRunRequest};

use crate::args::StartArgs;
use crate::failure::{Failure, exit};
use crate::input;
use crate::output::style::clean;
use crate::run::{Session, interruptible};
use crate::view::{EventLine, OperationNames};

pub(super) async fn start(session: &Session, args: StartArgs) -> Result<u8, Failure> {
    let (wait, timeout) = (args.wait, args.timeout);
    let request = request(&input::read(&args.plan)?, args)?;
    let started = interruptible(async { Ok(session.client.start_run(&request).await?) }).await?;
    let run = started.snapshot.run_id.clone();
    if !wait {
        session.out.data(&*started, started.raw())?;
        return Ok(exit::OK);
    }
    session.out.note(&if started.created { format!("started {run}") } else { format!("{run} was started before") });
    let goes_on = |failure: Failure| failure.hint(format!("the run goes on: `servo runs tail {run}`"));
    let ended = match interruptible(until_end(session, &run, timeout)).await {
        Ok(ended) => ended,
        Err(failure) if failure.exit == exit::INTERRUPTED => return Err(goes_on(failure)),
        Err(failure) => return Err(failure),
    };
    let snapshot = interruptible(async { Ok(session.client.run(&run).await?) }).await?;
    session.out.data(&*snapshot, snapshot.raw())?;
    match ended {
        Ended::TimedOut => Err(goes_on(Failure::new(exit::TIMED_OUT, format!("timed out waiting for {run}")))),
        Ended::Run => verdict(&snapshot),
    }
}

enum Ended {
    Run,
    TimedOut,
}

/// The request for a plan. What a plan must be like is the server's business; only what the request repeats is read here.
fn request(plan: &str, args: StartArgs) -> Result<StartRunRequest, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        plan_id: PlanId,
        plan_version: String,
        schema_version: String,
    }
    let malformed = |reason: String| Failure::invalid(codes::MALFORMED_JSON, &Invalid::new("plan", reason));
    let canonical = servo_canon::canonicalize(plan).map_err(|error| malformed(error.to_string()))?;
    let head: Head = serde_json::from_str(plan)
        .map_err(|error| Failure::invalid(codes::SCHEMA_VALIDATION_FAILED, &Invalid::new("plan", error.to_string())))?;
    let document = RawValue::from_string(plan.trim().to_owned()).map_err(|error| malformed(error.to_string()))?;
    let plan_ref = PlanRefRequest {
        uri: None,
        sha256: Digest::of(canonical.as_bytes()),
        schema_version: head.schema_version,
        plan_id: head.plan_id,
        plan_version: head.plan_version,
    };
    let defaults = StartRunRequest::inline(plan_ref, document);
    Ok(StartRunRequest {
        project_id: args.project.unwrap_or_else(|| defaults.project_id.clone()),
        environment_id: args.environment.unwrap_or_else(|| defaults.environment_id.clone()),
        run_request_id: args.request_id,
        approval_required: args.approval,
        not_before: args.not_before,
        trigger_source: Some(TriggerSource::Manual),
        ..defaults
    })
}

async fn until_end(session: &Session, run: &RunId, timeout: Option<Duration>) -> Result<Ended, Failure> {
    let follow = async {
        let mut follower = session.client.follow_events(run, 0);
        let mut names = OperationNames::default();
        while let Some(event) = follower.next().await? {
            let line = names.name(EventLine::of(event.document.get()));
            session.out.note(&line.text(&session.out.progress_style()));
        }
        Ok(Ended::Run)
    };
    match timeout {
        None => follow.await,
        Some(limit) => tokio::time::timeout(limit, follow).await.unwrap_or(Ok(Ended::TimedOut)),
    }
}

fn verdict(snapshot: &Answer<RunSnapshot>) -> Result<u8, Failure> {
    let run = &snapshot.run_id;
    match snapshot.status {
        RunStatus::Completed => Ok(exit::OK),
        status => {
            let why = match (&snapshot.root_cause, &snapshot.message) {
                (Some(cause), _) => format!(": {} {}", cause.code, cause.message),
                (None, Some(message)) => format!(": {message}"),
                (None, None) => String::new(),
            };
            let ended = match status {
                RunStatus::Failed => "has failed".to_owned(),
                RunStatus::Cancelled => "was cancelled".to_owned(),
                other => format!("is {}", other.as_str()),
            };
            let what = clean(&format!("{run} {ended}{why}"));
            Err(Failure::new(exit::RUN_FAILED, what).hint(format!("`servo runs get {run}` shows its steps")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, RunsCommand};
    use clap::Parser;

    fn args(line: &[&str]) -> StartArgs {
        let line = [&["servo", "runs", "start", "plan.json"][..], line].concat();
        match Cli::try_parse_from(line).unwrap().command {
            Command::Runs(RunsCommand::Start(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    const PLAN: &str = r#"
        {"steps": [{"stepId": "a"}], "planId": "etl/daily", "planVersion": "1.2", "schemaVersion": "1"}
    "#;

    #[test]
    fn the_reference_is_made_from_the_plan() {
        let line = ["--project", "p", "--request-id", "r-1", "--approval", "--not-before", "2026-02-11T10:30:00Z"];
        let request = request(PLAN, args(&line)).unwrap();
        let canonical = r#"{"planId":"etl/daily","planVersion":"1.2","schemaVersion":"1","steps":[{"stepId":"a"}]}"#;
        assert_eq!(request.plan_ref.sha256, Digest::of(canonical.as_bytes()));
        assert_eq!(request.plan_ref.plan_id.as_str(), "etl/daily");
        assert_eq!(request.plan_ref.plan_version, "1.2");
        assert_eq!(request.plan.unwrap().get(), PLAN.trim());
        assert_eq!((request.project_id.as_str(), request.environment_id.as_str()), ("p", "default"));
        assert_eq!(request.run_request_id.as_deref(), Some("r-1"));
        assert!(request.approval_required);
        assert_eq!(request.trigger_source, Some(TriggerSource::Manual));
    }

    #[test]
    fn what_is_no_plan_is_refused_with_the_field() {
        for (text, needle) in [
            ("{", "plan"),
            (r#"{"planId":"p","planId":"q"}"#, "planId"),
            (r#"{"planId":"p","planVersion":"1"}"#, "schemaVersion"),
            (r#"{"planId":"..","planVersion":"1","schemaVersion":"1"}"#, "plan id"),
        ] {
            let failure = request(text, args(&[])).unwrap_err();
            assert_eq!(failure.exit, exit::USAGE, "{text}");
            assert!(failure.to_string().contains(needle), "{failure}");
        }
    }
}
