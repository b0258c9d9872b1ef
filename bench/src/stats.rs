//! Medians.

/// Of an even number of values the middle of the two in the middle: taking one of them would favour a side.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

pub(crate) fn percentile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index into a short list")]
    let index = ((sorted.len() as f64 - 1.0) * at).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_favours_no_side() {
        assert!(median(&[]).is_nan());
        for (values, expected) in
            [(vec![3.0], 3.0), (vec![4.0, 3.0], 3.5), (vec![9.0, 1.0, 4.0], 4.0), (vec![1.0, 8.0, 2.0, 4.0], 3.0)]
        {
            assert!((median(&values) - expected).abs() < 1e-9, "{values:?}");
        }
    }
}
