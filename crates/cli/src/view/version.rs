//! Versions of this program and of the server that was asked.

use serde::Serialize;
use servo_wire::v1::Version;

use super::{Style, View};
use crate::output::style::clean;

#[derive(Debug, Clone, Serialize)]
pub struct VersionReport {
    #[serde(flatten)]
    pub client: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Version>,
}

impl View for VersionReport {
    fn table(&self, _: &Style) -> String {
        let line = |version: &Version| clean(&format!("{} {}", version.name, version.version));
        match &self.server {
            None => line(&self.client) + "\n",
            Some(server) => format!("{}\nserver: {}\n", line(&self.client), line(server)),
        }
    }
}
