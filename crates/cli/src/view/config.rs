//! Configurations: that one is good, and what is in effect.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Style, View};

/// A configuration that was read without a fault. What is wrong with another one is a failure.
#[derive(Debug, Clone, Serialize)]
pub struct GoodConfig {
    /// Without it, the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub good: bool,
}

impl View for GoodConfig {
    fn table(&self, _: &Style) -> String {
        "the configuration is good\n".to_owned()
    }
}

/// What is in effect: a file for people, which can be used as one, and the same as a document.
#[derive(Debug, Clone)]
pub struct PrintedConfig {
    pub toml: String,
    pub document: Value,
}

impl Serialize for PrintedConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

impl View for PrintedConfig {
    fn table(&self, _: &Style) -> String {
        self.toml.clone()
    }
}
