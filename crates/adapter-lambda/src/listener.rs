//! Connections of workers to one port: accepted up to a limit, and known by their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use servo_adapter::HandlerFailure;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::port::PortId;
use crate::pull::Hub;
use crate::{failure, runtime_api, tasks};

const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 64;
/// After an error of `accept` (usually: no file descriptors), the next try needs a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static NEWEST: AtomicU64 = AtomicU64::new(0);

/// One connection, as requests on it see it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    heard: AtomicBool,
}

impl Connection {
    fn new() -> Self {
        Self { id: NEWEST.fetch_add(1, Ordering::Relaxed) + 1, heard: AtomicBool::new(false) }
    }

    /// The id of the newest one of this process.
    pub(crate) fn newest() -> u64 {
        NEWEST.load(Ordering::Relaxed)
    }

    pub(crate) fn hear(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }
}

/// Serves the Runtime API at one port until it is stopped.
pub(crate) async fn serve(
    listener: TcpListener,
    hub: Arc<Hub>,
    port: PortId,
    stop: CancellationToken,
    tracker: TaskTracker,
) {
    let router = runtime_api::router(hub.clone(), port);
    let slots = Arc::new(Semaphore::new(hub.settings.connections_max));
    while let Some(Ok(slot)) = stop.run_until_cancelled(slots.clone().acquire_owned()).await {
        let Some(accepted) = stop.run_until_cancelled(listener.accept()).await else { return };
        match accepted {
            Ok((stream, _)) => {
                let (hub, router, stop) = (hub.clone(), router.clone(), stop.clone());
                tasks::spawn(&tracker, async move {
                    connection(stream, &hub, router, stop).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, function = hub.function, "connection of a worker not accepted");
                tasks::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, hub: &Hub, router: Router, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection without TCP_NODELAY");
    }
    let connection = Arc::new(Connection::new());
    let service = TowerToHyperService::new(router.layer(Extension(connection.clone())));
    // No header timeout: hyper's also runs between requests, and a handler may work for minutes between two of them.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    {
        let mut requests = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let silence = async {
            tasks::sleep(hub.settings.first_request).await;
            if connection.heard.load(Ordering::Relaxed) {
                std::future::pending().await
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            ended = &mut requests => if let Err(error) = ended {
                tracing::debug!(error, function = hub.function, "connection of a worker ended");
            },
            () = silence => tracing::debug!(function = hub.function, "connection without a request closed"),
        }
    }
    let lost = hub.outstanding_on(connection.id);
    if lost.is_empty() {
        return;
    }
    // It may have another connection, or make one.
    stop.run_until_cancelled(tasks::sleep(hub.settings.connection_grace)).await;
    let message = format!("the worker of `{}` closed its connection before it answered", hub.function);
    hub.give_up(&lost, &HandlerFailure::crashed(failure::EXIT, message));
}
