//! What `servo doctor` found: one line per check, and what to do where something is wrong.

use serde::Serialize;

use super::{Style, View};
use crate::output::style::{clean, status_color};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    pub name: String,
    pub status: CheckStatus,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Check {
    pub fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status: CheckStatus::Ok, detail: detail.into(), next: None }
    }

    pub fn warn(name: &str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: CheckStatus::Warn, next: Some(next.into()), ..Self::ok(name, detail) }
    }

    pub fn fail(name: &str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { status: CheckStatus::Fail, next: Some(next.into()), ..Self::ok(name, detail) }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Diagnosis {
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// 1 if a check failed; warnings do not count.
    pub fn exit_code(&self) -> u8 {
        u8::from(self.checks.iter().any(|check| check.status == CheckStatus::Fail))
    }
}

impl View for Diagnosis {
    const ITEMS: Option<&'static str> = Some("checks");

    fn table(&self, style: &Style) -> String {
        let width = self.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for check in &self.checks {
            let word = match check.status {
                CheckStatus::Ok => "ok",
                CheckStatus::Warn => "warn",
                CheckStatus::Fail => "fail",
            };
            let padding = " ".repeat(4 - word.len());
            let painted = style.paint().apply(status_color(word), word);
            text.push_str(&format!("{painted}{padding}  {:width$}  {}\n", check.name, clean(&check.detail)));
            if let Some(next) = &check.next {
                text.push_str(&format!("      {:width$}  next: {}\n", "", clean(next)));
            }
        }
        text
    }
}
