//! The eight named workloads, each measured on one server: how much in a second, and how much of the processor for each call.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde_json::json;

use crate::compare::load::{self, Call, Until};
use crate::compare::process::until;
use crate::compare::subject::Subject;
use crate::stats::median;

const LANES: usize = 64;
const WARM_UP: f64 = 0.3;
const DRAINED_WITHIN: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(200);
/// What an idle server may use between two looks, in seconds: two ticks.
const IDLE: f64 = 0.021;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Workload {
    /// Executions of ten steps, 64 callers.
    Steps,
    /// The same, one caller.
    StepsOne,
    /// Calls of a function that does nothing, 64 callers.
    Empty,
    /// The same, one caller.
    EmptyOne,
    /// The same, only accepted, 64 callers; until all of them have run.
    Accepted,
    /// Calls of an empty function in Starlark, 64 callers.
    Starlark,
    /// The same, one caller.
    StarlarkOne,
    /// Plans of two steps, 64 callers; until all of them have run.
    Plans,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Calls in a second; of one caller, by the median of their times.
    pub(super) speed: f64,
    /// Microseconds of the processor for a call, of the server, its children and the handlers.
    pub(super) cpu: f64,
}

impl Workload {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Steps => "ten steps, c=64",
            Self::StepsOne => "ten steps, c=1",
            Self::Empty => "empty calls, c=64",
            Self::EmptyOne => "empty call, c=1",
            Self::Accepted => "accepted, c=64",
            Self::Starlark => "empty calls in Starlark, c=64",
            Self::StarlarkOne => "empty call in Starlark, c=1",
            Self::Plans => "plans of two steps, accepted, c=64",
        }
    }

    fn lanes(self) -> usize {
        match self {
            Self::StepsOne | Self::EmptyOne | Self::StarlarkOne => 1,
            Self::Steps | Self::Empty | Self::Accepted | Self::Starlark | Self::Plans => LANES,
        }
    }

    fn call(self, subject: &Subject) -> Result<Call> {
        let calls = &subject.calls;
        Ok(match self {
            Self::Steps | Self::StepsOne => calls.steps.clone(),
            Self::Empty | Self::EmptyOne => calls.empty.clone(),
            Self::Accepted => calls.empty_send.clone(),
            Self::Starlark | Self::StarlarkOne => calls.script.clone().context("the server has no script")?,
            Self::Plans => return plan(),
        })
    }

    pub(super) async fn measure(self, subject: &mut Subject, seconds: f64) -> Result<Sample> {
        let (call, lanes) = (self.call(subject)?, self.lanes());
        load::run(subject.address, &call, lanes, Until::Seconds(WARM_UP)).await?;
        idle(subject).await?;
        let before = used(subject)?;
        let loaded = load::run(subject.address, &call, lanes, Until::Seconds(seconds)).await?;
        // What was only accepted belongs to its cost, and must not run beside the other build.
        idle(subject).await?;
        let cpu = (used(subject)? - before) * 1e6 / loaded.calls as f64;
        let speed = if lanes == 1 { 1e6 / median(&loaded.times) } else { loaded.per_second };
        Ok(Sample { speed, cpu })
    }
}

fn plan() -> Result<Call> {
    let steps = json!([{"stepId": "first"}, {"stepId": "second", "dependsOn": ["first"]}]);
    let plan = json!({"planId": "pair", "planVersion": "1", "schemaVersion": "v1", "steps": steps});
    let sha256 = servo_canon::fingerprint(&plan)?;
    let reference = json!({"sha256": sha256, "schemaVersion": "v1", "planId": "pair", "planVersion": "1"});
    let body = json!({"plan": plan, "planRef": reference}).to_string();
    Ok(Call { path: "/v1/runs".to_owned(), headers: Vec::new(), body })
}

fn used(subject: &Subject) -> Result<f64> {
    let (server, handlers) = subject.cpu()?;
    Ok(server + handlers)
}

/// Waits until the server has nothing left to do.
async fn idle(subject: &Subject) -> Result<()> {
    let mut last = used(subject)?;
    let look = async || {
        tokio::time::sleep(LOOK).await;
        let now = used(subject)?;
        let quiet = now - last < IDLE;
        last = now;
        Ok(quiet.then_some(()))
    };
    until("the server is idle", DRAINED_WITHIN, look).await
}
