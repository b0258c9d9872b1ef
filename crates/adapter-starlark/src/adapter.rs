//! Calls and checks, each in a child of its own.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use servo_adapter::{DurableService, HandlerCall, HandlerFailure, Handlers, Reply, Usage};
use servo_canon::Digest;
use servo_model::TenantId;
use servo_model::function::{Code, Reach};
use servo_sched::{Bounds, Counter};
use servo_wire::lambda::DurableExecutionInvocationOutput;

use crate::SourceIssue;
use crate::child::Child;
use crate::conversation::records::Records;
use crate::conversation::{Broken, Conversation};
use crate::egress::Egress;
use crate::failure;
use crate::pool::{Key, Lease, Pool};
use crate::protocol::{ChildUsage, FromChild, Outcome, ToChild};
use crate::settings::Parts;

/// The language that entrypoints name.
pub const LANGUAGE: &str = "starlark";
/// A fraction of a core for a short time is still enough to load a source.
const CPU_MS_MIN: u64 = 100;
/// How long a check waits for a child while all of them work.
const CHECK_WAIT: Duration = Duration::from_secs(10);

/// Runs Starlark in children. See the crate's documentation.
pub struct Starlark {
    parts: Parts,
    pool: Arc<Pool>,
    egress: Egress,
    /// What programs that run have recorded, in bytes.
    records: Counter<TenantId>,
    service: OnceLock<Arc<dyn DurableService>>,
}

impl fmt::Debug for Starlark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starlark").field("parts", &self.parts).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the thread that starts Starlark's children could not be started")]
    Spawner(#[source] std::io::Error),
    #[error("the HTTP client for ctx.http could not be built; check the TLS set-up of this machine")]
    Client(#[source] reqwest::Error),
}

impl Starlark {
    pub fn new(parts: Parts) -> Result<Self, Error> {
        let pool = Pool::new(parts.settings.clone()).map_err(Error::Spawner)?;
        let egress = Egress::new(parts.settings.egress.clone()).map_err(Error::Client)?;
        let records = Counter::new(Bounds::shared(parts.settings.records_bytes_max));
        Ok(Self { parts, pool, egress, records, service: OnceLock::new() })
    }

    /// The service side of durable executions. The engine needs handlers to exist, so it comes later; the first one stays.
    pub fn bind(&self, service: Arc<dyn DurableService>) {
        // A second one would be the same engine.
        drop(self.service.set(service));
    }

    /// Starts the spare children, so that a first call is fast.
    pub fn warm_up(&self) {
        self.pool.refill();
    }

    /// Parses and evaluates a source, in a child with limits of its own.
    pub async fn check(&self, source: &str) -> Result<(), Vec<SourceIssue>> {
        if let Some(issue) = self.too_long(source) {
            return Err(vec![issue]);
        }
        let settings = &self.parts.settings;
        let (memory_mb, timeout) = (settings.check_memory_mb, settings.check_timeout);
        let cpu_ms = u64::try_from(settings.check_cpu.as_millis()).unwrap_or(u64::MAX);
        let later = || vec![SourceIssue::whole("the source could not be checked just now; try again", None)];
        let mut lease = match tokio::time::timeout(CHECK_WAIT, self.pool.take_fresh()).await {
            Ok(Ok(lease)) => lease,
            Ok(Err(error)) => {
                tracing::warn!(%error, "no child for a check");
                return Err(later());
            }
            Err(_) => return Err(later()),
        };
        let checked = tokio::time::timeout(timeout, check_in(&mut lease.child, source, memory_mb, cpu_ms)).await;
        let too_slow = || SourceIssue::whole(failure::timed_out(timeout).message, Some(SIMPLER));
        match checked {
            Ok(Ok(issues)) if issues.is_empty() => Ok(()),
            Ok(Ok(issues)) => Err(issues),
            Err(_) => Err(vec![too_slow()]),
            Ok(Err(_)) => {
                let ended = Box::pin(lease.child.end()).await;
                let limit = failure::limit_of(&ended, memory_mb, cpu_ms);
                let message = match limit {
                    Some(failure) => failure.message,
                    None => "the source ended the process that checked it".to_owned(),
                };
                Err(vec![SourceIssue::whole(message, Some(SIMPLER))])
            }
        }
    }

    fn too_long(&self, source: &str) -> Option<SourceIssue> {
        let max = self.parts.settings.source_bytes_max;
        let message = format!("the source has {} bytes, the limit source_bytes is {max}", source.len());
        (source.len() > max).then(|| SourceIssue::whole(message, Some("split it into several entrypoints")))
    }

    async fn run(&self, call: &HandlerCall, code: &Code) -> Result<Reply, HandlerFailure> {
        let durable = call.spec.durable;
        if let Some(issue) = self.too_long(&code.source) {
            let max = self.parts.settings.source_bytes_max as u64;
            let failure = failure::limit("source_bytes", max, &issue.message);
            return failure::of_user(failure.to_error(), durable, Usage::default());
        }
        let key = (call.tenant.clone(), Digest::of(code.source.as_bytes()));
        let asked = tokio::time::Instant::now();
        // A place in the line is not the program's time, which begins with the child.
        let lease = match tokio::time::timeout(call.timeout, self.pool.take(&key, call.is_awaited)).await {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(error)) => Err(failure::crashed(format!("no child could be started: {error}"))),
            Err(_) => Err(failure::busy(self.parts.settings.children_max)),
        };
        let waited_ms = u32::try_from(asked.elapsed().as_millis()).unwrap_or(u32::MAX);
        let with_wait = |usage: Usage| Usage { waited_ms, ..usage };
        let answer = match lease {
            Ok(lease) => self.run_in(lease, key, call, code).await,
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(reply) => Ok(Reply { usage: with_wait(reply.usage), ..reply }),
            Err(failure) => Err(HandlerFailure { usage: with_wait(failure.usage), ..failure }),
        }
    }

    async fn run_in(
        &self,
        mut lease: Lease,
        key: Key,
        call: &HandlerCall,
        code: &Code,
    ) -> Result<Reply, HandlerFailure> {
        let durable = call.spec.durable;
        let deadline = tokio::time::Instant::now() + call.timeout;
        let cpu_ms = cpu_ms(code.cpu_milli, call.timeout);
        let cannot = |error| failure::crashed(format!("a child could not be limited: {error}"));
        lease.child.limit(code.memory_mb, cpu_ms).map_err(cannot)?;
        let talk = (call, code);
        let records = Records::new(&self.records, &call.tenant, code.memory_mb);
        let mut conversation =
            Conversation::new(&self.parts, &self.egress, self.service.get(), talk, (cpu_ms, records));
        conversation.turn = lease.turn.take();
        match tokio::time::timeout_at(deadline, conversation.run(&mut lease.child)).await {
            Ok(Ok((outcome, body))) => {
                let usage = usage_of(lease.child.usage);
                lease.turn = conversation.turn.take();
                if !matches!(outcome, Outcome::Panicked { .. }) {
                    self.pool.give_back(key, lease, code.memory_mb);
                }
                conclude(outcome, body, (call, code), usage)
            }
            Ok(Err(Broken::Ours(failure))) => Err(failure),
            Ok(Err(Broken::Over(failure))) => {
                let usage = lease.child.used_so_far();
                failure::of_user(failure.to_error(), durable, usage)
            }
            Ok(Err(Broken::Child(error))) => {
                conversation.turn = None;
                let ended = Box::pin(lease.child.end()).await;
                let Some(limit) = failure::limit_of(&ended, code.memory_mb, cpu_ms) else {
                    tracing::warn!(%error, ?ended, function = call.function, "a Starlark child ended unexpectedly");
                    let how =
                        ended.signal.map_or("ended".to_owned(), |signal| format!("was killed by signal {signal}"));
                    let crashed = failure::crashed(format!("the process that ran the program {how}"));
                    return Err(HandlerFailure { usage: ended.usage, ..crashed });
                };
                // It used all that it was given of what ended it, also where it was not given as much as it asked for.
                let all = |name: &str, value: u64| {
                    let is_it = limit.details.get("limit").is_some_and(|limit| limit == name);
                    u32::try_from(value).ok().filter(|_| is_it)
                };
                let usage = Usage {
                    cpu_ms: ended.usage.cpu_ms.max(all("cpu_ms", cpu_ms)),
                    memory_mb: ended.usage.memory_mb.max(all("memory_mb", code.memory_mb)),
                    ..Usage::default()
                };
                failure::of_user(limit.to_error(), durable, usage)
            }
            Err(_) => {
                let usage = lease.child.used_so_far();
                failure::of_user(failure::timed_out(call.timeout).to_error(), durable, usage)
            }
        }
    }
}

const SIMPLER: &str = "write a shorter and flatter source, and compute inside main";

async fn check_in(child: &mut Child, source: &str, memory_mb: u64, cpu_ms: u64) -> std::io::Result<Vec<SourceIssue>> {
    child.limit(memory_mb, cpu_ms)?;
    child.send(&ToChild::Load, source.as_bytes()).await?;
    child.send(&ToChild::Check { cpu_ms }, &[]).await?;
    match child.receive().await? {
        (FromChild::Checked { issues }, _) => Ok(issues),
        _ => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

/// `cpu` of a core for the time that the call may take.
fn cpu_ms(cpu_milli: u64, timeout: Duration) -> u64 {
    let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    (millis.saturating_mul(cpu_milli) / 1_000).max(CPU_MS_MIN)
}

fn usage_of(usage: ChildUsage) -> Usage {
    let up = |value: u64, unit: u64| u32::try_from(value.div_ceil(unit)).ok();
    Usage { cpu_ms: up(usage.cpu_us, 1_000), memory_mb: up(usage.peak_kb, 1_024), ..Usage::default() }
}

fn conclude(
    outcome: Outcome,
    body: Vec<u8>,
    (call, code): (&HandlerCall, &Code),
    usage: Usage,
) -> Result<Reply, HandlerFailure> {
    let durable = call.spec.durable;
    match outcome {
        Outcome::Returned => {
            let text = String::from_utf8(body).map_err(|_| failure::crashed("the result is no UTF-8"))?;
            if durable {
                return failure::reply(&DurableExecutionInvocationOutput::succeeded(Some(text)), usage);
            }
            Ok(Reply { text, usage })
        }
        Outcome::Suspended if durable => failure::reply(&DurableExecutionInvocationOutput::pending(), usage),
        Outcome::Suspended => Err(failure::crashed("a function cannot wait")),
        Outcome::Failed { error } => failure::of_user(error, durable, usage),
        Outcome::Panicked { message } if failure::is_about_memory(&message) => {
            failure::of_user(failure::out_of_memory(code.memory_mb).to_error(), durable, usage)
        }
        Outcome::Panicked { message } => {
            tracing::warn!(message, function = call.function, "the Starlark interpreter panicked");
            Err(failure::crashed("the interpreter failed on the program"))
        }
    }
}

#[async_trait]
impl Handlers for Starlark {
    async fn call(&self, call: Box<HandlerCall>) -> Result<Reply, HandlerFailure> {
        match &call.spec.reach {
            Reach::Code(code) if code.language == LANGUAGE => self.run(&call, code).await,
            Reach::Code(code) => {
                let message = format!("nothing here runs {}", code.language);
                Err(HandlerFailure::unreachable("ResourceNotFoundException", message))
            }
            Reach::Push { .. } | Reach::Pull | Reach::InProcess => {
                let message = format!("`{}` brings no source", call.function);
                Err(HandlerFailure::unreachable("ResourceNotFoundException", message))
            }
        }
    }
}
