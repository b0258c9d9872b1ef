//! Where the server's own spans go.

use serde::{Deserialize, Serialize};

use super::ConfigError;

/// What is left out here, OpenTelemetry's variables may say (`OTEL_EXPORTER_OTLP_ENDPOINT` and others).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// `http://host:4318`, a collector that takes OTLP over HTTP; absent means that no spans are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<String>,
    /// The server's name in traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// The part of the traces that begin here that is recorded, from 0 to 1. Callers decide about theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_ratio: Option<f64>,
}

impl TelemetryConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { otlp_endpoint, service_name, sample_ratio } = self;
        let is_address = |text: &String| {
            let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        };
        if !otlp_endpoint.as_ref().is_none_or(is_address) {
            return Err(ConfigError::new("telemetry.otlp_endpoint", "is an address such as http://127.0.0.1:4318"));
        }
        if service_name.as_ref().is_some_and(|name| name.is_empty() || name.len() > 256) {
            return Err(ConfigError::new("telemetry.service_name", "has 1 to 256 characters"));
        }
        if sample_ratio.is_some_and(|ratio| !(0.0..=1.0).contains(&ratio)) {
            return Err(ConfigError::new("telemetry.sample_ratio", "is a number from 0 to 1"));
        }
        Ok(())
    }
}
