//! The store: what it is, what verification found, what maintenance did.

use std::path::PathBuf;

use serde::Serialize;
use servo_wire::v1::{Retired, StoreInfo, VerifyReport};

use super::{Style, View};
use crate::output::style::{clean, count, size};
use crate::output::table::{Cell, fields, table};

impl View for StoreInfo {
    fn table(&self, _: &Style) -> String {
        let processes = if self.single_process { "one at a time" } else { "several" };
        let mut rows = vec![
            ("Kind", Some(clean(&format!("{} {}", self.kind, self.engine_version)))),
            ("Schema", Some(self.schema_version.to_string())),
            ("Size", Some(size(self.size_bytes))),
            ("Processes", Some(processes.to_owned())),
        ];
        rows.extend(self.settings.iter().map(|(name, value)| (name.as_str(), Some(clean(value)))));
        fields(&rows)
    }
}

impl View for VerifyReport {
    const ITEMS: Option<&'static str> = None;

    fn table(&self, style: &Style) -> String {
        let mut seen = format!("{} with {}", count(self.runs, "run"), count(self.events, "event"));
        if self.without_checksum > 0 {
            seen.push_str(&format!(" ({} without a checksum)", self.without_checksum));
        }
        if self.is_clean() {
            return format!("{seen}: everything agrees\n");
        }
        let mut rows: Vec<_> =
            self.integrity.iter().map(|found| vec![Cell::new("database"), Cell::new(found)]).collect();
        rows.extend(self.findings.iter().map(|f| vec![Cell::whole(f.run_id.as_str()), Cell::new(&f.problem)]));
        let problems = count(rows.len() as u64, "problem");
        format!("{}\n{seen}: {problems}\n", table(style.paint(), &["WHERE", "PROBLEM"], &rows))
    }

    fn ids(&self) -> Vec<String> {
        self.findings.iter().map(|finding| finding.run_id.to_string()).collect()
    }
}

impl View for Retired {
    fn table(&self, _: &Style) -> String {
        format!("{} removed\n", count(self.runs_removed, "run"))
    }
}

/// A backup that is complete and durable.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupDone {
    pub file: PathBuf,
    pub size_bytes: u64,
}

impl View for BackupDone {
    fn table(&self, _: &Style) -> String {
        format!("{} written, {}\n", clean(&self.file.display().to_string()), size(self.size_bytes))
    }
}

/// A backup that is in its place.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreDone {
    pub data_dir: PathBuf,
    pub runs: u64,
}

impl View for RestoreDone {
    fn table(&self, _: &Style) -> String {
        format!("{} restored to {}\n", count(self.runs, "run"), clean(&self.data_dir.display().to_string()))
    }
}
