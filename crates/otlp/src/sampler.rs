//! Which traces are recorded, by the rules and names of OpenTelemetry's specification.

use servo_model::TraceContext;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// What a caller has decided is kept to.
    pub follows_parent: bool,
    /// The part of the other traces that is recorded, from 0 to 1.
    pub ratio: f64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { follows_parent: true, ratio: 1.0 }
    }
}

impl Sampler {
    /// By the names that `OTEL_TRACES_SAMPLER` may have. `None` for those that this server does not have.
    pub(crate) fn named(name: &str, ratio: f64) -> Option<Self> {
        let (follows_parent, rule) = match name.strip_prefix("parentbased_") {
            Some(rule) => (true, rule),
            None => (false, name),
        };
        let ratio = match rule {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => ratio,
            _ => return None,
        };
        Some(Self { follows_parent, ratio })
    }

    pub(crate) fn samples(self, trace: u128, parent: Option<TraceContext>) -> bool {
        match parent {
            Some(parent) if self.follows_parent => parent.is_sampled(),
            _ => self.takes(trace),
        }
    }

    /// By the trace's own id, so that every process that sees it decides alike.
    fn takes(self, trace: u128) -> bool {
        let low = u64::try_from(trace & u128::from(u64::MAX)).unwrap_or(u64::MAX) >> 1;
        // 63 bits; the whole range at a ratio of one, which the comparison of floats would just miss.
        self.ratio >= 1.0 || (low as f64) < self.ratio * (1_u64 << 63) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_decides_unless_it_is_not_asked() {
        let parent = |sampled| Some(TraceContext::new(1, 2, sampled));
        for (name, none, yes, no) in [
            ("always_on", true, true, true),
            ("always_off", false, false, false),
            ("parentbased_always_on", true, true, false),
            ("parentbased_always_off", false, true, false),
        ] {
            let sampler = Sampler::named(name, 0.5).unwrap();
            let seen = [None, parent(true), parent(false)].map(|parent| sampler.samples(7, parent));
            assert_eq!(seen, [none, yes, no], "{name}");
        }
        assert_eq!(Sampler::named("xray", 1.0), None);
    }

    #[test]
    fn a_ratio_takes_that_part_of_the_traces() {
        let sampler = Sampler::named("traceidratio", 0.25).unwrap();
        let step = u64::MAX / 1_000;
        let taken = (0..1_000_u64).filter(|number| sampler.takes(u128::from(number * step))).count();
        assert_eq!(taken, 250);
        assert!(Sampler { ratio: 1.0, ..sampler }.takes(u128::MAX));
        assert!(!Sampler { ratio: 0.0, ..sampler }.takes(0));
    }
}
