//! The server's own spans, as a collector sees them: OTLP over HTTP, decoded with OpenTelemetry's own messages.

mod collector;
mod found;
mod handlers;
mod lost;
mod tree;
