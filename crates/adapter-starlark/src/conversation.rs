//! A call from its first frame to its last: what the child asks for meanwhile is answered here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use servo_adapter::{CapturedLine, DurableService, HandlerCall, HandlerFailure, Source};
use servo_canon::Digest;
use servo_model::function::Code;
use servo_model::limits::{LINE_BYTES_MAX, clip};
use servo_model::operation::{ErrorObject, OperationUpdate};
use servo_wire::lambda::{ANSWER_BYTES_MAX, CheckpointRequest, ErrorName, INVALID_TOKEN, Operation, Seconds};

use crate::child::Child;
use crate::egress::Egress;
use crate::protocol::{CallHead, FromChild, HttpHead, Outcome, Part, ToChild};
use crate::settings::Parts;
use crate::{failure, tasks};

const CHECKPOINT_ATTEMPTS: u32 = 5;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(100);
/// Pages of one state. At a page of a hundred operations this is more than an execution may have.
const PAGES_MAX: usize = 10_000;

/// Why a call has no outcome.
pub(crate) enum Broken {
    /// The child is gone or talks nonsense.
    Child(io::Error),
    /// The child did nothing wrong.
    Ours(HandlerFailure),
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
    /// Of a durable call.
    arn: String,
    token: String,
    logged: usize,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        parts: &'a Parts,
        egress: &'a Egress,
        service: Option<&'a Arc<dyn DurableService>>,
        (call, code): (&'a HandlerCall, &'a Code),
        cpu_ms: u64,
    ) -> Self {
        Self { parts, egress, service, call, code, cpu_ms, arn: String::new(), token: String::new(), logged: 0 }
    }

    pub(crate) async fn run(&mut self, child: &mut Child) -> Result<(Outcome, Vec<u8>), Broken> {
        if !child.is_loaded {
            child.send(&ToChild::Load, self.code.source.as_bytes()).await?;
            child.is_loaded = true;
        }
        if self.call.spec.durable {
            self.begin_durable(child).await?;
        } else {
            let seed = format!("{}/{}/{}", self.call.run_id, self.call.request_id, (self.parts.now)().as_millis());
            child.send(&ToChild::Call(Box::new(self.head(seed, false))), self.call.payload.as_bytes()).await?;
        }
        loop {
            let (head, body) = child.receive().await?;
            match head {
                FromChild::Log => self.log(&body),
                FromChild::Now => {
                    let millis = (self.parts.now)().as_millis();
                    child.send(&ToChild::Now { millis }, &[]).await?;
                }
                FromChild::Http(head) => {
                    let (head, body) = self.http(*head, body).await;
                    child.send(&head, &body).await?;
                }
                FromChild::Checkpoint => self.checkpoint(child, &body).await?,
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
            let service = self.service()?;
            let page = service.state(&self.call.tenant, &self.arn, &self.token, &at).await;
            let page = page.map_err(|error| Broken::Ours(failure::crashed(said(&error))))?;
            marker = page.next_marker.filter(|next| !next.is_empty() && *next != at);
            send_page(child, &page.operations, marker.is_some()).await?;
        }
        Err(Broken::Ours(failure::crashed(format!("the execution's state has over {PAGES_MAX} pages"))))
    }

    fn service(&self) -> Result<&'a Arc<dyn DurableService>, Broken> {
        self.service.ok_or_else(|| Broken::Ours(failure::crashed("the engine is not there yet; the call comes again")))
    }

    async fn checkpoint(&mut self, child: &mut Child, body: &[u8]) -> Result<(), Broken> {
        let updates: Vec<OperationUpdate> =
            serde_json::from_slice(body).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
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
                Err(error) if is_stale(&error) => return Ok(child.send(&ToChild::Withdrawn, &[]).await?),
                Err(error) if !may_pass(&error) => return Ok(child.send(&ToChild::Refused { error }, &[]).await?),
                Err(error) if attempt >= CHECKPOINT_ATTEMPTS => {
                    return Err(Broken::Ours(failure::crashed(said(&error))));
                }
                Err(_) => {
                    tasks::sleep(CHECKPOINT_PAUSE * 2_u32.pow(attempt - 1)).await;
                    attempt += 1;
                }
            }
        };
        let Some(token) = response.checkpoint_token else {
            return Ok(child.send(&ToChild::Withdrawn, &[]).await?);
        };
        self.token = token;
        let state = response.new_execution_state;
        let marker = state.next_marker.filter(|marker| !marker.is_empty());
        send_page(child, &state.operations, marker.is_some()).await?;
        self.send_pages(child, marker).await
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

    async fn http(&self, head: HttpHead, body: Vec<u8>) -> (ToChild, Vec<u8>) {
        let mut headers = Vec::with_capacity(head.headers.len());
        let mut secrets = Vec::new();
        for (name, parts) in head.headers {
            let mut value = String::new();
            let mut is_secret = false;
            for part in parts {
                match part {
                    Part::Text(text) => value.push_str(&text),
                    Part::Secret(secret) => {
                        is_secret = true;
                        match self.parts.secrets.secret(&self.call.tenant, &secret).await {
                            Ok(secret) => {
                                value.push_str(&secret);
                                secrets.push(secret);
                            }
                            Err(message) => return (ToChild::HttpFailed { message, retryable: false }, Vec::new()),
                        }
                    }
                }
            }
            headers.push((name, value, is_secret));
        }
        let timeout = head.timeout_ms.map(Duration::from_millis);
        match self.egress.request(&head.method, &head.url, headers, body, timeout).await {
            Ok(response) => {
                let hidden = |(name, value)| (name, hide(value, &secrets));
                let headers = response.headers.into_iter().map(hidden).collect();
                let body = String::from_utf8_lossy(&response.body).into_owned();
                (ToChild::Http { status: response.status, headers }, hide(body, &secrets).into_bytes())
            }
            Err(refused) => {
                let (message, retryable) = (refused.message, refused.retryable);
                (ToChild::HttpFailed { message, retryable }, Vec::new())
            }
        }
    }
}

/// Servers repeat what they were sent, in errors above all. The program and the record see the name of a secret at most.
fn hide(text: String, secrets: &[String]) -> String {
    let told = secrets.iter().filter(|secret| !secret.is_empty() && text.contains(secret.as_str()));
    let told: Vec<&String> = told.collect();
    told.into_iter().fold(text, |text, secret| text.replace(secret.as_str(), "<secret>"))
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
