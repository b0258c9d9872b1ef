//! Where the server's own spans go: by its configuration, and by OpenTelemetry's variables.

use std::sync::Arc;

use servo_cli::Failure;
use servo_otlp::{Given, Otlp, Settings};
use servo_runtime::{Ids, SystemClock, Tasks};
use servo_server::config::TelemetryConfig;

/// `None` when nobody has said where.
pub(crate) fn start(config: &TelemetryConfig, ids: &Ids, tasks: &Tasks) -> Result<Option<Arc<Otlp>>, Failure> {
    let given = Given {
        endpoint: config.otlp_endpoint.clone(),
        service_name: config.service_name.clone(),
        sample_ratio: config.sample_ratio,
    };
    // Names that are not text are nobody's here.
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let variables: Vec<_> = variables.filter(|(name, _)| name.starts_with("OTEL_")).collect();
    let (settings, wrong) = Settings::read(&given, &variables);
    for wrong in wrong {
        tracing::warn!("{wrong}");
    }
    let Some(settings) = settings else { return Ok(None) };
    // Collectors read the real time, also where this server's may jump.
    let started = Otlp::start(settings, &ids.node_name(), Arc::new(SystemClock), tasks);
    started.map(Some).map_err(|wrong| Failure::usage(wrong.to_string()).hint("[telemetry] in servo.toml.example"))
}
