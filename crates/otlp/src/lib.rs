//! Sends the server's own spans to an OpenTelemetry collector: OTLP over HTTP, in protobuf.
//!
//! Nothing waits for it. Spans go into a queue of fixed size, and one task sends them in batches; what finds no room, or is not
//! taken after a few tries, is counted and gone.

mod encode;
mod export;
mod sampler;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use servo_model::TraceContext;
use servo_runtime::{Clock, Shutdown, Span, SpanSink, Tasks};
use tokio::sync::mpsc;

use export::Exporter;
pub use sampler::Sampler;
pub use settings::{Given, Settings, Wrong};

/// The queue's end where spans are put in, and the switch that empties it.
pub struct Otlp {
    queue: mpsc::Sender<Span>,
    sampler: Sampler,
    clock: Arc<dyn Clock>,
    stopping: Shutdown,
    tasks: Tasks,
}

impl std::fmt::Debug for Otlp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Otlp").field("sampler", &self.sampler).finish_non_exhaustive()
    }
}

impl Otlp {
    /// Begins to export, on a task of its own. `instance` tells this process from others of the same service.
    pub fn start(settings: Settings, instance: &str, clock: Arc<dyn Clock>, tasks: &Tasks) -> Result<Arc<Self>, Wrong> {
        let (queue, waiting) = mpsc::channel(settings.queue_max);
        let (sampler, stopping, tasks) = (settings.sampler, Shutdown::default(), tasks.group());
        let exporter = Exporter::new(settings, instance, clock.clone(), stopping.clone())?;
        tasks.spawn("otlp", exporter.run(waiting));
        Ok(Arc::new(Self { queue, sampler, clock, stopping, tasks }))
    }

    /// Sends what is left, for as long as `most`.
    pub async fn stop(&self, most: Duration) {
        self.stopping.trigger();
        tokio::select! {
            biased;
            () = self.tasks.idle() => {}
            () = self.clock.sleep(most) => tracing::warn!("the collector took too long; the last spans are lost"),
        }
    }
}

impl SpanSink for Otlp {
    fn samples(&self, trace: u128, parent: Option<TraceContext>) -> bool {
        self.sampler.samples(trace, parent)
    }

    fn take(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            export::dropped("queue", 1);
        }
    }
}
