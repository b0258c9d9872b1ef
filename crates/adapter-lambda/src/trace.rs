//! The trace of a call, in the words of W3C and of AWS: handlers read one or the other.

use servo_model::TraceContext;

/// The values of `traceparent` and of AWS's header. A text in neither form goes on as AWS's, as it came.
pub(crate) fn headers(trace: Option<&str>) -> (Option<String>, Option<String>) {
    let Some(text) = trace else { return (None, None) };
    match TraceContext::parse(text) {
        Some(context) if text.contains("Root=") => (Some(context.traceparent()), Some(text.to_owned())),
        Some(context) => (Some(context.traceparent()), Some(context.amazon())),
        None => (None, Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_told_in_both_forms() {
        let w3c = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let amazon = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1";
        let both = (Some(w3c.to_owned()), Some(amazon.to_owned()));
        assert_eq!(headers(Some(w3c)), both);
        assert_eq!(headers(Some(amazon)), both);
        // What AWS writes into it besides is not lost.
        let more = format!("{amazon};Lineage=1:2:3");
        assert_eq!(headers(Some(&more)), (Some(w3c.to_owned()), Some(more.clone())));
        assert_eq!(headers(Some("Root=1")), (None, Some("Root=1".to_owned())));
        assert_eq!(headers(None), (None, None));
    }
}
