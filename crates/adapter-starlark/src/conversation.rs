//! A call from its first frame to its last: what the child asks for meanwhile is answered here.

pub(crate) mod records;
mod requests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use servo_adapter::{CapturedLine, DurableService, HandlerCall, HandlerFailure, Source};
use servo_canon::Digest;
use servo_model::function::Code;
use servo_model::invocation::Failure;
use servo_model::limits::{LINE_BYTES_MAX, clip};
use servo_model::operation::{ErrorObject, OperationUpdate};
use servo_wire::lambda::{ANSWER_BYTES_MAX, CheckpointRequest, ErrorName, INVALID_TOKEN, Operation, Seconds};
use tokio::sync::OwnedSemaphorePermit;

use crate::child::Child;
use crate::egress::Egress;
use crate::protocol::{CallHead, FromChild, HttpHead, Outcome, ToChild};
use crate::settings::Parts;
use crate::{failure, tasks};
use records::{Records, TooMuch};

/// How long a call has its turn; most are over by then.
const TURN: Duration = Duration::from_millis(2);
const CHECKPOINT_ATTEMPTS: u32 = 5;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(100);
/// Pages of one state. At a page of a hundred operations this is more than an execution may have.
const PAGES_MAX: usize = 10_000;
/// Operations that are kept for a child until it asks.
const HELD_MAX: usize = 100_000;

/// Why a call has no outcome.
pub(crate) enum Broken {
    /// The child is gone or talks nonsense.
    Child(io::Error),
    /// The child did nothing wrong.
    Ours(HandlerFailure),
    /// The program asked for more than it may have.
    Over(Failure),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Child(error)
    }
}

/// The envelope with its operations unread: the child reads them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope<'a> {
    durable_execution_arn: String,
    checkpoint_token: String,
    #[serde(borrow)]
    initial_execution_state: FirstPage<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FirstPage<'a> {
    #[serde(borrow)]
    operations: &'a RawValue,
    #[serde(default)]
    next_marker: Option<String>,
}

pub(crate) struct Conversation<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) egress: &'a Egress,
    pub(crate) service: Option<&'a Arc<dyn DurableService>>,
    pub(crate) call: &'a HandlerCall,
    pub(crate) code: &'a Code,
    pub(crate) cpu_ms: u64,
    /// Until it is over, or the child waits for something else than a processor.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
    /// Of a durable call.
    arn: String,
    token: String,
    /// What came of a record that the child did not wait for; it is told with the next one that it waits for.
    held: Held,
    logged: usize,
    records: Records,
}

/// What the service said to a checkpoint.
enum Recorded {
    State(Vec<Operation<Seconds>>, Option<String>),
    /// It did not take it, in the words for the child.
    Not(ToChild),
}

#[derive(Default)]
struct Held {
    operations: Vec<Operation<Seconds>>,
    not: Option<ToChild>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        parts: &'a Parts,
        egress: &'a Egress,
        service: Option<&'a Arc<dyn DurableService>>,
        (call, code): (&'a HandlerCall, &'a Code),
        (cpu_ms, records): (u64, Records),
    ) -> Self {
        let (arn, token, held) = (String::new(), String::new(), Held::default());
        Self { parts, egress, service, call, code, cpu_ms, turn: None, arn, token, held, logged: 0, records }
    }

    /// What few calls come to is in boxes, so that it makes no other call's future larger.
    pub(crate) async fn run(&mut self, child: &mut Child) -> Result<(Outcome, Vec<u8>), Broken> {
        // It may have waited for a child, and for its turn.
        self.check_right().await?;
        if !child.is_loaded {
            child.send(&ToChild::Load, self.code.source.as_bytes()).await?;
            child.is_loaded = true;
        }
        if self.call.spec.durable {
            Box::pin(self.begin_durable(child)).await?;
        } else {
            let seed = format!("{}/{}/{}", self.call.run_id, self.call.request_id, (self.parts.now)().as_millis());
            child.send(&ToChild::Call(Box::new(self.head(seed, false))), self.call.payload.as_bytes()).await?;
        }
        let turn_ends = tokio::time::Instant::now() + TURN;
        loop {
            if self.turn.is_some() && tokio::time::timeout_at(turn_ends, child.has_more()).await.is_err() {
                self.turn = None;
            }
            let (head, body) = child.receive().await?;
            if matches!(head, FromChild::Http(_) | FromChild::Checkpoint) {
                self.turn = None;
            }
            match head {
                FromChild::Log => self.log(&body),
                FromChild::Now => {
                    let millis = (self.parts.now)().as_millis();
                    child.send(&ToChild::Now { millis }, &[]).await?;
                }
                FromChild::Http(head) => {
                    let (head, body) = Box::pin(self.http(child, *head, body)).await?;
                    child.send(&head, &body).await?;
                }
                FromChild::Checkpoint => Box::pin(self.checkpoint(child, &body)).await?,
                FromChild::Began => Box::pin(self.began(&body)).await?,
                FromChild::Done { outcome, usage } => {
                    child.usage = usage;
                    child.calls += 1;
                    return Ok((outcome, body));
                }
                FromChild::Ready { .. } | FromChild::Checked { .. } => {
                    return Err(io::Error::from(io::ErrorKind::InvalidData).into());
                }
            }
        }
    }

    /// Nothing is begun for a run that another node has taken over.
    async fn check_right(&self) -> Result<(), Broken> {
        if self.call.right.holds().await {
            return Ok(());
        }
        Err(Broken::Ours(failure::crashed("another node has taken the run over")))
    }

    fn head(&self, seed: String, more: bool) -> CallHead {
        let settings = &self.parts.settings;
        CallHead {
            durable: self.call.spec.durable,
            seed,
            retry: self.code.retry.clone(),
            checkpointing: self.code.checkpointing,
            cpu_ms: self.cpu_ms,
            output_bytes_max: settings.output_bytes_max.min(ANSWER_BYTES_MAX),
            log_bytes_max: settings.log_bytes_max,
            step_told_after_ms: u64::try_from(settings.step_told_after.as_millis()).unwrap_or(u64::MAX),
            more,
        }
    }

    async fn begin_durable(&mut self, child: &mut Child) -> Result<(), Broken> {
        let unreadable = |error| Broken::Ours(failure::crashed(format!("the invocation cannot be read: {error}")));
        let envelope: Envelope<'_> = serde_json::from_str(&self.call.payload).map_err(unreadable)?;
        self.arn = envelope.durable_execution_arn;
        self.token = envelope.checkpoint_token;
        let first = envelope.initial_execution_state;
        let marker = first.next_marker.filter(|marker| !marker.is_empty());
        let head = self.head(self.arn.clone(), marker.is_some());
        child.send(&ToChild::Call(Box::new(head)), first.operations.get().as_bytes()).await?;
        self.send_pages(child, marker).await
    }

    /// Passes pages on one by one; this process never holds the whole state.
    async fn send_pages(&self, child: &mut Child, marker: Option<String>) -> Result<(), Broken> {
        let mut marker = marker;
        for _ in 0..PAGES_MAX {
            let Some(at) = marker else { return Ok(()) };
            let (operations, next) = self.page(&at).await?;
            marker = next;
            send_page(child, &operations, marker.is_some()).await?;
        }
        Err(Broken::Ours(failure::crashed(format!("the execution's state has over {PAGES_MAX} pages"))))
    }

    async fn page(&self, at: &str) -> Result<(Vec<Operation<Seconds>>, Option<String>), Broken> {
        let page = self.service()?.state(&self.call.tenant, &self.arn, &self.token, at).await;
        let page = page.map_err(|error| Broken::Ours(failure::crashed(said(&error))))?;
        Ok((page.operations, page.next_marker.filter(|next| !next.is_empty() && next != at)))
    }

    fn service(&self) -> Result<&'a Arc<dyn DurableService>, Broken> {
        self.service.ok_or_else(|| Broken::Ours(failure::crashed("the engine is not there yet; the call comes again")))
    }

    /// Records what the child did, and tells it what came of it.
    async fn checkpoint(&mut self, child: &mut Child, body: &[u8]) -> Result<(), Broken> {
        let recorded = match self.held.not.take() {
            Some(not) => Recorded::Not(not),
            None => self.record(body).await?,
        };
        let (mut operations, marker) = match recorded {
            Recorded::State(operations, marker) => (operations, marker),
            Recorded::Not(not) => return Ok(child.send(&not, &[]).await?),
        };
        if !self.held.operations.is_empty() {
            // The earlier state first: the later one may be about the same operations.
            operations.splice(..0, std::mem::take(&mut self.held.operations));
        }
        send_page(child, &operations, marker.is_some()).await?;
        self.send_pages(child, marker).await
    }

    /// Records that a step runs. The child goes on meanwhile.
    async fn began(&mut self, body: &[u8]) -> Result<(), Broken> {
        if self.held.not.is_some() {
            return Ok(());
        }
        let (operations, mut marker) = match self.record(body).await? {
            Recorded::State(operations, marker) => (operations, marker),
            Recorded::Not(not) => {
                self.held.not = Some(not);
                return Ok(());
            }
        };
        self.held.operations.extend(operations);
        for _ in 0..PAGES_MAX {
            let Some(at) = marker else { break };
            let (operations, next) = self.page(&at).await?;
            self.held.operations.extend(operations);
            marker = next;
        }
        // A child takes them with its next checkpoint; one that only ever tells of steps is none of ours.
        if self.held.operations.len() > HELD_MAX {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        Ok(())
    }

    async fn record(&mut self, body: &[u8]) -> Result<Recorded, Broken> {
        let updates: Vec<OperationUpdate> =
            serde_json::from_slice(body).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        self.records.add(&updates, body.len()).map_err(|too_much| match too_much {
            TooMuch::OfCall(failure) => Broken::Over(failure),
            TooMuch::OfAll => Broken::Ours(failure::no_room_for_records()),
        })?;
        let client_token = Digest::of_parts(&[&self.token, &updates.len().to_string()], '\n').to_string();
        let request = CheckpointRequest {
            checkpoint_token: self.token.clone(),
            updates: Some(updates),
            client_token: Some(client_token),
        };
        let service = self.service()?;
        let mut attempt = 1;
        let response = loop {
            match service.checkpoint(&self.call.tenant, &self.arn, request.clone()).await {
                Ok(response) => break response,
                Err(error) if is_stale(&error) => return Ok(Recorded::Not(ToChild::Withdrawn)),
                Err(error) if !may_pass(&error) => return Ok(Recorded::Not(ToChild::Refused { error })),
                Err(error) if attempt >= CHECKPOINT_ATTEMPTS => {
                    return Err(Broken::Ours(failure::crashed(said(&error))));
                }
                Err(_) => {
                    tasks::sleep(CHECKPOINT_PAUSE * 2_u32.pow(attempt - 1)).await;
                    attempt += 1;
                }
            }
        };
        let Some(token) = response.checkpoint_token else { return Ok(Recorded::Not(ToChild::Withdrawn)) };
        self.token = token;
        let state = response.new_execution_state;
        Ok(Recorded::State(state.operations, state.next_marker.filter(|marker| !marker.is_empty())))
    }

    /// Makes a request for the program. Its step may run for so long that this is told meanwhile.
    async fn http(&mut self, child: &mut Child, head: HttpHead, body: Vec<u8>) -> Result<(ToChild, Vec<u8>), Broken> {
        self.check_right().await?;
        let request = requests::request((self.parts, self.egress), &self.call.tenant, head, body);
        let mut request = std::pin::pin!(request);
        loop {
            tokio::select! {
                biased;
                answer = &mut request => return Ok(answer),
                more = child.has_more() => more?,
            }
            match child.receive().await? {
                (FromChild::Began, body) => self.began(&body).await?,
                _ => return Err(io::Error::from(io::ErrorKind::InvalidData).into()),
            }
        }
    }

    fn log(&mut self, body: &[u8]) {
        self.logged = self.logged.saturating_add(body.len());
        // The child counts too, but it is not to be trusted.
        if self.logged > self.parts.settings.log_bytes_max {
            return;
        }
        let body = &body[..body.len().min(LINE_BYTES_MAX)];
        self.parts.lines.line(CapturedLine {
            tenant: self.call.tenant.clone(),
            function: self.call.function.clone(),
            request_id: Some(self.call.request_id.clone()),
            run_id: Some(self.call.run_id.clone()),
            execution_arn: (!self.arn.is_empty()).then(|| self.arn.clone()),
            source: Source::Stdout,
            text: String::from_utf8_lossy(body).into_owned(),
            at: (self.parts.now)(),
        });
    }
}

async fn send_page(child: &mut Child, operations: &[Operation<Seconds>], more: bool) -> Result<(), Broken> {
    let body = serde_json::to_vec(operations).map_err(io::Error::other)?;
    Ok(child.send(&ToChild::Page { more }, &body).await?)
}

/// Another invocation has taken over. SDKs have compared the text in two spellings.
fn is_stale(error: &ErrorObject) -> bool {
    let message = error.error_message.as_deref().unwrap_or_default();
    message.to_lowercase().starts_with(&INVALID_TOKEN.to_lowercase())
}

fn may_pass(error: &ErrorObject) -> bool {
    let name = error.error_type.as_deref().unwrap_or_default();
    [ErrorName::TooManyRequests, ErrorName::Service].iter().any(|passing| passing.as_str() == name)
}

fn said(error: &ErrorObject) -> String {
    let message = error.error_message.as_deref().unwrap_or("the service gave no reason");
    format!("the execution's state cannot be reached: {}", clip(message))
}
