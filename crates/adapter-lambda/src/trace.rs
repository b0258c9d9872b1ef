//! The trace of a call, in the words of W3C and of AWS: handlers read one or the other.

use servo_model::TraceContext;
use servo_model::trace::{is_amazon, state_of};

/// The values of the headers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) traceparent: Option<String>,
    pub(crate) tracestate: Option<String>,
    pub(crate) amazon: Option<String>,
}

/// A text in no known form goes on as AWS's, as it came.
pub(crate) fn headers(trace: Option<&str>) -> Headers {
    let Some(text) = trace else { return Headers::default() };
    let tracestate = state_of(text).map(str::to_owned);
    match TraceContext::parse(text) {
        Some(context) => {
            let amazon = if is_amazon(text) { text.to_owned() } else { context.amazon() };
            Headers { traceparent: Some(context.traceparent()), tracestate, amazon: Some(amazon) }
        }
        None => Headers { amazon: Some(text.to_owned()), ..Headers::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_told_in_both_forms() {
        let w3c = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let amazon = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1";
        let told = |amazon: &str, state: Option<&str>| Headers {
            traceparent: Some(w3c.to_owned()),
            tracestate: state.map(str::to_owned),
            amazon: Some(amazon.to_owned()),
        };
        assert_eq!(headers(Some(w3c)), told(amazon, None));
        assert_eq!(headers(Some(amazon)), told(amazon, None));
        assert_eq!(headers(Some(&format!("{w3c} congo=t61"))), told(amazon, Some("congo=t61")));
        // What AWS writes into it besides is not lost.
        let more = format!("{amazon};Lineage=1:2:3");
        assert_eq!(headers(Some(&more)), told(&more, None));
        assert_eq!(headers(Some("Root=1")), Headers { amazon: Some("Root=1".to_owned()), ..Headers::default() });
        assert_eq!(headers(None), Headers::default());
    }
}
