//! Waiting until other programs leave the machine alone, within a budget for the whole run, and remembering how far they
//! did: figures taken beside other work say little, and the report has to show it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::figure::Report;
use crate::stats::median;

/// The share of the processor that others may use.
const CALM: f64 = 0.10;
const LOOK: Duration = Duration::from_millis(400);

#[derive(Debug)]
pub(crate) struct Calm {
    budget: Duration,
    /// What others used before each measurement.
    shares: Vec<f64>,
}

impl Calm {
    pub(crate) fn new(budget: Duration) -> Self {
        Self { budget, shares: Vec::new() }
    }

    /// To be called while nothing of ours runs.
    pub(crate) async fn wait(&mut self) -> Result<()> {
        loop {
            let from = Instant::now();
            let before = ticks()?;
            tokio::time::sleep(LOOK).await;
            let share = share(before, ticks()?);
            if share <= CALM || self.budget.is_zero() {
                self.shares.push(share);
                return Ok(());
            }
            self.budget = self.budget.saturating_sub(from.elapsed());
        }
    }

    /// For people, in one sentence.
    pub(crate) fn told(&self) -> String {
        let most = self.shares.iter().copied().fold(0.0, f64::max);
        format!(
            "Other programs used {:.1} % of the processor before a round in the median, {:.1} % at most.",
            median(&self.shares) * 100.0,
            most * 100.0
        )
    }

    pub(crate) fn tell(&self, report: &mut Report) {
        if self.shares.is_empty() {
            return;
        }
        let most = self.shares.iter().copied().fold(0.0, f64::max);
        report.fact(
            "used by other programs before a measurement, median",
            median(&self.shares) * 100.0,
            "% of the processor",
        );
        report.fact("the same, at most", most * 100.0, "% of the processor");
    }
}

/// Busy and all ticks of all cores since the start of the machine.
fn ticks() -> Result<(u64, u64)> {
    read(&std::fs::read_to_string("/proc/stat")?).context("/proc/stat has no line for all cores")
}

/// user nice system idle iowait irq softirq steal
fn read(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = fields.take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let (all, idle) = (ticks.iter().sum::<u64>(), ticks.get(3)? + ticks.get(4)?);
    Some((all - idle, all))
}

fn share(before: (u64, u64), after: (u64, u64)) -> f64 {
    let all = after.1.saturating_sub(before.1);
    if all == 0 { 0.0 } else { after.0.saturating_sub(before.0) as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_disk_is_not_work() {
        let before = read("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        let after = read("cpu  130 0 60 840 70 0 0 0 0 0\n").unwrap();
        assert!((share(before, after) - 0.4).abs() < 1e-9);
        assert!(share(before, before).abs() < 1e-9);
        assert_eq!(read("nonsense"), None);
    }
}
