//! The geometric mean of ratios with its 95 % interval, by Student's distribution over their logarithms.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) ratio: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Two-sided 95 % quantiles for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// Of one ratio or none nothing is known: the interval is everything.
    pub(super) fn of(ratios: &[f64]) -> Self {
        let count = ratios.len();
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let mean = logs.iter().sum::<f64>() / count as f64;
        if count < 2 {
            return Self { ratio: mean.exp(), low: 0.0, high: f64::INFINITY };
        }
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
        // Beyond the table its last value: a little wider than right.
        let quantile = STUDENT.get(count - 2).or(STUDENT.last()).copied().unwrap_or(f64::INFINITY);
        let reach = quantile * (variance / count as f64).sqrt();
        Self { ratio: mean.exp(), low: (mean - reach).exp(), high: (mean + reach).exp() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // Logarithms 0.0, 0.1 and 0.2: mean 0.1, deviation 0.1, reach 4.303 × 0.1 ÷ √3.
        let ratios: Vec<f64> = [0.0f64, 0.1, 0.2].iter().map(|log| log.exp()).collect();
        let interval = Interval::of(&ratios);
        assert!((interval.ratio - 0.1f64.exp()).abs() < 1e-9);
        assert!((interval.high.ln() - (0.1 + 4.303 * 0.1 / 3f64.sqrt())).abs() < 1e-9);
        assert!((interval.low.ln() - (0.1 - 4.303 * 0.1 / 3f64.sqrt())).abs() < 1e-9);
    }

    #[test]
    fn equal_ratios_leave_no_doubt_and_a_single_one_leaves_all() {
        let same = Interval::of(&[1.1; 40]);
        assert!((same.low - 1.1).abs() < 1e-9 && (same.high - 1.1).abs() < 1e-9);
        let single = Interval::of(&[1.1]);
        assert!(single.low <= 0.0 && single.high.is_infinite());
    }
}
