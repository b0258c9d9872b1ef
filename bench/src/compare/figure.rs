//! One figure beside a peer's, its ratio and its goal; and the table and the document of all of them.

use serde_json::{Value, json};

use crate::stats::median;

/// What is asked of Servo's value divided by the peer's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) peer: String,
    /// One value per round; the same rounds for both.
    pub(crate) servo: Vec<f64>,
    pub(crate) other: Vec<f64>,
    pub(crate) goal: Goal,
}

impl Figure {
    /// The median of the rounds' ratios: both sides of a round met the same machine.
    pub(crate) fn ratio(&self) -> f64 {
        let ratios: Vec<f64> = self.servo.iter().zip(&self.other).map(|(servo, other)| servo / other).collect();
        median(&ratios)
    }

    fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::AtLeast(goal) => Some(self.ratio() >= goal),
            Goal::AtMost(goal) => Some(self.ratio() <= goal),
            Goal::None => None,
        }
    }

    fn row(&self) -> String {
        let goal = match self.goal {
            Goal::AtLeast(goal) => format!("≥ {goal:.2}"),
            Goal::AtMost(goal) => format!("≤ {goal:.2}"),
            Goal::None => String::new(),
        };
        let met = match self.met() {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "",
        };
        let (servo, other) = (number(median(&self.servo)), number(median(&self.other)));
        let Self { name, unit, peer, .. } = self;
        format!("| {:.2} | {goal} | {met} | {name}, {unit} | {servo} | {other} | {peer} |", self.ratio())
    }

    fn json(&self) -> Value {
        let goal = match self.goal {
            Goal::AtLeast(goal) => json!({"atLeast": goal}),
            Goal::AtMost(goal) => json!({"atMost": goal}),
            Goal::None => Value::Null,
        };
        json!({"name": self.name, "unit": self.unit, "peer": self.peer, "ratio": self.ratio(), "goal": goal,
            "met": self.met(), "servo": self.servo, "other": self.other})
    }
}

/// Three digits that count, and commas between thousands.
fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A fact beside the figures: no peer, no ratio.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) figures: Vec<Figure>,
    pub(crate) facts: Vec<Fact>,
}

impl Report {
    pub(crate) fn fact(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.facts.push(Fact { name: name.into(), value, unit });
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = vec![
            "| servo ÷ peer | goal | | what | servo | peer | the peer |".to_owned(),
            "|---|---|---|---|---|---|---|".to_owned(),
        ];
        lines.extend(self.figures.iter().map(Figure::row));
        lines.extend(["", "| beside them | | |", "|---|---|---|"].map(str::to_owned));
        lines.extend(
            self.facts.iter().map(|fact| format!("| {} | {} | {} |", fact.name, number(fact.value), fact.unit)),
        );
        lines.join("\n")
    }

    pub(crate) fn json(&self) -> Value {
        let facts = self.facts.iter().map(|fact| json!({"name": fact.name, "value": fact.value, "unit": fact.unit}));
        json!({"figures": self.figures.iter().map(Figure::json).collect::<Vec<_>>(), "facts": facts.collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(servo: &[f64], other: &[f64], goal: Goal) -> Figure {
        let (servo, other) = (servo.to_vec(), other.to_vec());
        Figure { name: "ten steps".to_owned(), unit: "executions/s", peer: "peer 1".to_owned(), servo, other, goal }
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        // The machine was twice as slow in the last round; neither side is to gain by it.
        let figure = figure(&[400.0, 440.0, 200.0], &[100.0, 110.0, 50.0], Goal::AtLeast(4.0));
        assert!((figure.ratio() - 4.0).abs() < 1e-9);
        assert_eq!(figure.met(), Some(true));
    }

    #[test]
    fn a_goal_is_met_or_not() {
        assert_eq!(figure(&[3.9], &[1.0], Goal::AtLeast(4.0)).met(), Some(false));
        assert_eq!(figure(&[1.0], &[3.0], Goal::AtMost(0.34)).met(), Some(true));
        assert_eq!(figure(&[1.0], &[2.0], Goal::AtMost(0.34)).met(), Some(false));
        assert_eq!(figure(&[1.0], &[2.0], Goal::None).met(), None);
    }

    #[test]
    fn the_table_begins_each_row_with_the_ratio() {
        let mut report = Report::default();
        report.figures.push(figure(&[8_000.0], &[1_000.0], Goal::AtLeast(4.0)));
        report.fact("fdatasync", 200.4, "µs");
        let table = report.table();
        assert!(
            table.contains("| 8.00 | ≥ 4.00 | met | ten steps, executions/s | 8,000 | 1,000 | peer 1 |"),
            "{table}"
        );
        assert!(table.contains("| fdatasync | 200 | µs |"), "{table}");
        let json = report.json();
        assert_eq!((&json["figures"][0]["met"], &json["facts"][0]["value"]), (&json!(true), &json!(200.4)));
    }

    #[test]
    fn a_side_without_a_value_meets_nothing() {
        let figure = figure(&[], &[], Goal::AtLeast(4.0));
        assert_eq!(figure.met(), Some(false));
        assert!(figure.row().contains("NaN"), "{}", figure.row());
    }
}
