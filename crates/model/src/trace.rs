//! Where in a distributed trace something happens. Callers say it in W3C's words (`traceparent`, `tracestate`) or in AWS's
//! (`X-Amzn-Trace-Id`); handlers are told in both. What is recorded is one text: AWS's, or W3C's `traceparent` with the `tracestate`
//! behind a space, if there is one.

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
        if is_amazon(text) { Self::parse_amazon(text) } else { Self::parse_w3c(parent_of(text)) }
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

/// Whether a text is meant to be AWS's.
pub fn is_amazon(text: &str) -> bool {
    state_of(text).is_none() && text.contains("Root=")
}

/// The text without the `tracestate`, for those who want an id alone.
pub fn parent_of(text: &str) -> &str {
    state_of(text).map_or(text, |state| text[..text.len() - state.len()].trim_end())
}

/// The `tracestate` in a text. Only W3C's form has one: it begins with two digits and a hyphen, AWS's with a name.
pub fn state_of(text: &str) -> Option<&str> {
    let is_w3c = text.as_bytes().get(2) == Some(&b'-');
    text.split_once(' ').map(|(_, state)| state).filter(|state| is_w3c && !state.is_empty())
}

/// The text of a `traceparent` with its `tracestate`.
pub fn with_state(traceparent: String, state: Option<&str>) -> String {
    match state {
        Some(state) => format!("{traceparent} {state}"),
        None => traceparent,
    }
}

const STATE_CHARS_MAX: usize = 512;
const STATE_MEMBERS_MAX: usize = 32;

/// What a caller's `tracestate` headers say together, in the published form. `None` when they say nothing, or what is no `tracestate`:
/// then all of it counts for nothing. What is too long loses its last members, which are the oldest.
pub fn state_from<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let members: Vec<&str> = headers
        .into_iter()
        .flat_map(|header| header.split(','))
        .map(|member| member.trim_matches([' ', '\t']))
        .filter(|member| !member.is_empty())
        .collect();
    if !members.iter().all(|member| is_member(member)) {
        return None;
    }
    let mut state = String::new();
    for member in members.into_iter().take(STATE_MEMBERS_MAX) {
        if state.len() + member.len() + 1 > STATE_CHARS_MAX {
            break;
        }
        if !state.is_empty() {
            state.push(',');
        }
        state.push_str(member);
    }
    (!state.is_empty()).then_some(state)
}

/// `key=value`: a key of at most 256 small letters, digits and `_-*/@`, a value of at most 256 printable characters.
fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let is_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_value = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=' && byte != b',';
    let first = key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let lengths = (1..=256).contains(&key.len()) && (1..=256).contains(&value.len());
    first && lengths && key.bytes().all(is_key) && value.bytes().all(is_value)
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
    fn a_state_goes_behind_its_parent() {
        let text = with_state(W3C.to_owned(), Some("congo=t61,rojo=00f0 67;Root=1"));
        assert_eq!((parent_of(&text), state_of(&text)), (W3C, Some("congo=t61,rojo=00f0 67;Root=1")));
        assert_eq!(TraceContext::parse(&text), TraceContext::parse(W3C));
        assert_eq!((parent_of(W3C), state_of(W3C)), (W3C, None));
        assert_eq!(with_state(W3C.to_owned(), None), W3C);
        // Spaces of AWS's form are its own.
        let amazon = AMAZON.replace(';', "; ");
        assert_eq!((parent_of(&amazon), state_of(&amazon), is_amazon(&amazon)), (amazon.as_str(), None, true));
        assert_eq!(TraceContext::parse(&amazon), TraceContext::parse(W3C));
    }

    #[test]
    fn a_state_has_the_published_limits() {
        let of = |headers: &[&str]| state_from(headers.iter().copied());
        assert_eq!(of(&["congo=t61 ,\trojo=00f067", "", "a@b=c"]).as_deref(), Some("congo=t61,rojo=00f067,a@b=c"));
        for nothing in [&[][..], &[""], &["congo"], &["Congo=1"], &["a=b,=c"], &["a=b,c="], &["a=\u{7f}"], &["a=b=c"]] {
            assert_eq!(of(nothing), None, "{nothing:?}");
        }
        let many: Vec<String> = (0..40).map(|number| format!("k{number}=v")).collect();
        let kept = of(&[many.join(",").as_str()]).unwrap();
        assert_eq!(kept.split(',').count(), 32);
        assert!(kept.starts_with("k0=v,") && kept.ends_with("k31=v"));
        let long = format!("a={},b={},c=d", "x".repeat(256), "y".repeat(256));
        assert_eq!(of(&[&long]), Some(format!("a={}", "x".repeat(256))), "whole members only");
        assert!(of(&[&long]).unwrap().len() <= 512);
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
