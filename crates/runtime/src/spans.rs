//! The server's own spans: what it did for a request or a run, for whoever reads traces.
//!
//! A span tells ids, names, counts and outcomes. Payloads, messages, credentials and anything that is a credential by itself
//! (tokens, callback ids) never enter one. Where spans go is injected (`SpanSink`); without a sink nothing here is done.
//!
//! A run outlives the process that began it, so the ids of what others hang below are derived from ids that are recorded: any
//! node knows the span of a run's start and of each invocation, also after a restart.

use servo_canon::Digest;
use servo_model::event::ExecutionStarted;
use servo_model::operation::ErrorObject;
use servo_model::trace::{state_of, with_state};
use servo_model::{RunId, TenantId, TraceContext};

use crate::engine::Engine;

/// Where spans go that have ended.
pub trait SpanSink: Send + Sync {
    /// Whether something is recorded that begins a trace here, or comes in as part of its caller's.
    fn samples(&self, trace: u128, parent: Option<TraceContext>) -> bool;

    /// Takes a span. Never waits: what finds no room is counted, and gone.
    fn take(&self, span: Span);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Inside this server.
    Internal,
    /// Answers a request.
    Server,
    /// Calls somebody, and waits for the answer.
    Client,
    /// Hands something over that others take when they like.
    Producer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Number(i64::from(number))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

/// Something that has ended. Times are nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The trace, and this span in it.
    pub context: TraceContext,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanKind,
    pub began_at: u64,
    pub ended_at: u64,
    pub attributes: Vec<(&'static str, Value)>,
    pub failed: bool,
}

/// Something under way. Ends when it is dropped, so that what is given up is seen as well.
pub struct OpenSpan {
    engine: Engine,
    span: Option<Span>,
    context: TraceContext,
}

impl std::fmt::Debug for OpenSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OpenSpan").field(&self.span).finish()
    }
}

impl OpenSpan {
    pub fn context(&self) -> TraceContext {
        self.context
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((name, value.into()));
        }
    }

    /// It went wrong; `kind` says how, in one word.
    pub fn fail(&mut self, kind: &str) {
        self.set("error.type", kind);
        if let Some(span) = &mut self.span {
            span.failed = true;
        }
    }

    /// It had begun earlier than somebody knew that it is wanted.
    pub(crate) fn began_at(&mut self, nanos: u64) {
        if let Some(span) = &mut self.span {
            span.began_at = nanos;
        }
    }

    /// It was nothing.
    pub fn discard(mut self) {
        self.span = None;
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let (Some(mut span), Some(sink)) = (self.span.take(), self.engine.spans()) {
            span.ended_at = self.engine.now_nanos().max(span.began_at);
            sink.take(span);
        }
    }
}

impl Engine {
    /// A span that begins a trace here, or goes on with its caller's. `None` where it is not recorded, with the context that goes on
    /// all the same.
    pub fn entry_span(
        &self,
        caller: Option<TraceContext>,
        name: &str,
        kind: SpanKind,
    ) -> (Option<TraceContext>, Option<OpenSpan>) {
        let Some(sink) = self.spans() else { return (caller, None) };
        let trace = caller.map_or_else(|| u128::from_le_bytes(self.ids().secret()), TraceContext::trace);
        if !sink.samples(trace, caller) {
            let parent = caller.map_or_else(|| self.ids().span(), TraceContext::span);
            return (Some(TraceContext::new(trace, parent, false)), None);
        }
        let context = TraceContext::new(trace, self.ids().span(), true);
        let span = self.open_span(context, caller.map(TraceContext::span), name.to_owned(), kind);
        (Some(context), span)
    }

    /// A span with an id that is known. `None` where nobody wants it.
    fn open_span(&self, context: TraceContext, parent: Option<u64>, name: String, kind: SpanKind) -> Option<OpenSpan> {
        self.spans().filter(|_| context.is_sampled())?;
        let began_at = self.now_nanos();
        let attributes = Vec::with_capacity(8);
        let span = Span { context, parent, name, kind, began_at, ended_at: began_at, attributes, failed: false };
        Some(OpenSpan { engine: self.clone(), span: Some(span), context })
    }

    /// The start of a run: what everything else about the run hangs below.
    pub(crate) fn run_span(&self, run_id: &RunId, tenant: &TenantId, start: &ExecutionStarted) -> Option<OpenSpan> {
        self.spans()?;
        let caller = TraceContext::parse(start.trace.as_deref()?)?;
        let pin = start.entrypoint.as_ref();
        let called = pin.map_or(&start.function, |pin| &pin.address);
        let context = caller.child(span_of_run(run_id));
        let mut span = self.open_span(context, Some(caller.span()), format!("start {called}"), SpanKind::Internal)?;
        span.about(run_id, tenant);
        span.set("servo.function", start.function.as_str());
        span.set("servo.function.version", start.version.as_str());
        if let Some(pin) = pin {
            span.set("servo.entrypoint", pin.address.as_str());
            span.set("servo.correlation_id", pin.correlation_id.as_str());
        }
        if let Some(parent) = &start.parent {
            span.set("servo.run.parent", parent.run_id.as_str());
        }
        Some(span)
    }

    /// What else a run leads to is part of its trace.
    pub(crate) fn trace_below_run(&self, run_id: &RunId, trace: Option<&str>) -> Option<String> {
        let (context, state) = (TraceContext::parse(trace?)?, trace.and_then(state_of));
        let recorded = self.spans().is_some() && context.is_sampled();
        let own = if recorded { context.child(span_of_run(run_id)) } else { context };
        Some(with_state(own.traceparent(), state))
    }

    /// Below the start of a run.
    pub(crate) fn span_in_run(
        &self,
        run_id: &RunId,
        tenant: &TenantId,
        trace: Option<&str>,
        name: &str,
    ) -> Option<OpenSpan> {
        self.spans()?;
        let (own, parent) = (self.ids().span(), span_of_run(run_id));
        self.span_of(trace, (own, parent), name.to_owned(), SpanKind::Internal, (run_id, tenant))
    }

    /// One invocation of a run's handler.
    pub(crate) fn invocation_span(
        &self,
        (run_id, invocation): (&RunId, u32),
        tenant: &TenantId,
        trace: Option<&str>,
        function: &str,
    ) -> Option<OpenSpan> {
        self.spans()?;
        let ids = (span_of_invocation(run_id, invocation), span_of_run(run_id));
        let mut span = self.span_of(trace, ids, format!("invoke {function}"), SpanKind::Client, (run_id, tenant))?;
        span.set("servo.invocation", invocation);
        Some(span)
    }

    /// Below one invocation of a run's handler.
    pub(crate) fn span_in_invocation(
        &self,
        (run_id, invocation): (&RunId, u32),
        tenant: &TenantId,
        trace: Option<&str>,
        name: &str,
    ) -> Option<OpenSpan> {
        self.spans()?;
        let ids = (self.ids().span(), span_of_invocation(run_id, invocation));
        let mut span = self.span_of(trace, ids, name.to_owned(), SpanKind::Internal, (run_id, tenant))?;
        span.set("servo.invocation", invocation);
        Some(span)
    }

    /// A span about a run in the run's trace, by its own id and its parent's.
    fn span_of(
        &self,
        trace: Option<&str>,
        (own, parent): (u64, u64),
        name: String,
        kind: SpanKind,
        (run_id, tenant): (&RunId, &TenantId),
    ) -> Option<OpenSpan> {
        let context = TraceContext::parse(trace?)?.child(own);
        let mut span = self.open_span(context, Some(parent), name, kind)?;
        span.about(run_id, tenant);
        Some(span)
    }
}

impl OpenSpan {
    fn about(&mut self, run_id: &RunId, tenant: &TenantId) {
        self.set("servo.tenant", tenant.as_str());
        self.set("servo.run.id", run_id.as_str());
    }
}

fn span_of_run(run_id: &RunId) -> u64 {
    derived(&["span", "run", run_id.as_str()])
}

fn span_of_invocation(run_id: &RunId, invocation: u32) -> u64 {
    derived(&["span", "invocation", run_id.as_str(), &invocation.to_string()])
}

fn derived(parts: &[&str]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *Digest::of_parts(parts, '|').as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1)
}

/// The kind of an error, if it looks like one. User code writes it, so that anything could stand there.
pub(crate) fn kind_of(error: Option<&ErrorObject>) -> &str {
    let named = error.and_then(|error| error.error_type.as_deref()).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'~' | b'-');
    if (1..=128).contains(&named.len()) && named.bytes().all(plain) { named } else { "_OTHER" }
}
