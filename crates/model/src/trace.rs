//! Where in a distributed trace something happens. Callers say it in W3C's words (`traceparent`) or in AWS's
//! (`X-Amzn-Trace-Id`); handlers are told in both.

use std::fmt::Write as _;

/// What a call belongs to: the trace, and the span that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    sampled: bool,
}

impl TraceContext {
    /// Of either form. `None` when it is neither, or when the ids are the invalid ones of only zeros.
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains("Root=") { Self::parse_amazon(text) } else { Self::parse_w3c(text) }
    }

    fn parse_w3c(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let known = version == "00";
        // Later versions may say more behind what this one knows.
        if hex(version, 2)? == 0xff || (known && parts.next().is_some()) {
            return None;
        }
        Self::of(hex(trace, 32)?, hex(span, 16)?, hex(flags, 2)? & 1 == 1)
    }

    /// `Root=1-<8 digits>-<24 digits>;Parent=<16 digits>;Sampled=1`, in any order and with more between them.
    fn parse_amazon(text: &str) -> Option<Self> {
        let field =
            |name: &str| text.split(';').filter_map(|part| part.trim().split_once('=')).find(|(n, _)| *n == name);
        let (_, root) = field("Root")?;
        let mut parts = root.split('-');
        let (version, seconds, rest) = (parts.next()?, parts.next()?, parts.next()?);
        if version != "1" || seconds.len() != 8 || rest.len() != 24 || parts.next().is_some() {
            return None;
        }
        let span = field("Parent").and_then(|(_, span)| hex(span, 16))?;
        let sampled = field("Sampled").is_some_and(|(_, sampled)| sampled == "1");
        Self::of(hex(&format!("{seconds}{rest}"), 32)?, span, sampled)
    }

    fn of(trace: u128, span: u128, sampled: bool) -> Option<Self> {
        let span = u64::try_from(span).ok()?;
        (trace != 0 && span != 0).then_some(Self { trace, span, sampled })
    }

    /// Of ids that were drawn. Zero is no id, so it becomes one.
    pub fn new(trace: u128, span: u64, sampled: bool) -> Self {
        Self { trace: trace.max(1), span: span.max(1), sampled }
    }

    pub fn trace(self) -> u128 {
        self.trace
    }

    pub fn span(self) -> u64 {
        self.span
    }

    /// Whether whoever began the trace wants it recorded.
    pub fn is_sampled(self) -> bool {
        self.sampled
    }

    /// The same trace, from another span. Zero is no span, so it becomes one.
    #[must_use]
    pub fn child(self, span: u64) -> Self {
        Self { span: span.max(1), ..self }
    }

    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    pub fn span_id(self) -> String {
        format!("{:016x}", self.span)
    }

    pub fn traceparent(self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }

    pub fn amazon(self) -> String {
        let trace = self.trace_id();
        let (seconds, rest) = trace.split_at(8);
        let mut text = format!("Root=1-{seconds}-{rest}");
        let _ = write!(text, ";Parent={:016x};Sampled={}", self.span, u8::from(self.sampled));
        text
    }
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(lower)).then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const W3C: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const AMAZON: &str = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1";

    #[test]
    fn both_forms_say_the_same() {
        let context = TraceContext::parse(W3C).unwrap();
        assert_eq!(TraceContext::parse(AMAZON), Some(context));
        assert_eq!((context.traceparent().as_str(), context.amazon().as_str()), (W3C, AMAZON));
        let other_order = "Self=1-1-1;Sampled=0;Parent=00f067aa0ba902b7; Root=1-4bf92f35-77b34da6a3ce929d0e0e4736";
        let unsampled = TraceContext::parse(other_order).unwrap();
        assert_eq!(unsampled.traceparent(), W3C.replace("-01", "-00"));
    }

    #[test]
    fn a_child_stays_in_the_trace() {
        let child = TraceContext::parse(W3C).unwrap().child(0xab);
        assert_eq!(child.traceparent(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000ab-01");
        assert_eq!(child.child(0).span_id(), "0000000000000001");
    }

    #[test]
    fn later_versions_are_understood_and_nonsense_is_not() {
        assert!(TraceContext::parse(&W3C.replacen("00", "01", 1)).is_some());
        assert!(TraceContext::parse(&(W3C.replacen("00", "01", 1) + "-more")).is_some());
        let wrong = [
            "",
            "trace-1",
            "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736",
            "Root=2-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        for text in wrong {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }
}
