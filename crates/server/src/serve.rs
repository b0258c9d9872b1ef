//! Connections: accepted up to a limit, served with timeouts, and at the end given time to finish.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use servo_ingress::Arrived;
use servo_runtime::Tasks;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tower_http::add_extension::AddExtension;

use crate::app::App;
use crate::identity::keys::note_uses;
use crate::link::{Ending, Link};
use crate::request::Peer;
use crate::tls::Tls;

/// Bytes of a request's head; also what one idle connection may hold.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const HEADERS_MAX: usize = 64;
/// Requests at once on one HTTP/2 connection.
const HTTP2_STREAMS_MAX: u32 = 128;
const UPKEEP_EVERY: Duration = Duration::from_secs(10);
/// After an error of `accept` (usually: no file descriptors), the next try needs a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the app's shutdown is triggered, then waits for requests under way, up to the runtime's grace period.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, app: App, tasks: &Tasks) {
    let header_timeout = Duration::from_millis(app.config.header_timeout_ms);
    let server = Server {
        router: app.router(),
        http1: builder(header_timeout).http1_only(),
        http2: builder(header_timeout).http2_only(),
        first_request: Duration::from_millis(app.config.first_request_timeout_ms).min(header_timeout),
        app: app.clone(),
        tls,
    };
    let server = Arc::new(server);
    let clock = app.runtime.engine().clock().clone();
    tasks.spawn("metrics-upkeep", upkeep(app.clone()));
    tasks.spawn("series", crate::series::run(app.clone()));
    if let Some(work) = app.recorder.work(clock.clone()) {
        tasks.spawn("audit", work.run());
    }
    if let Some(uses) = app.key_uses.lock().await.take() {
        tasks.spawn("key-uses", note_uses(app.runtime.engine().store().clone(), uses));
    }
    app.acts.run_on(tasks);
    app.serves(server.tls.is_some());
    // Closed when the last connection is gone.
    let (open, mut all_gone) = mpsc::channel::<()>(1);
    while let Some((stream, peer)) = next(&listener, &app).await {
        let ending = Arc::new(Ending::default());
        // Without room for it nothing can be said to it either.
        let Some(Arrived { place, ended }) = app.connections.arrive(ending.clone()) else { continue };
        if let Some(ended) = ended {
            ended.tell();
        }
        let local = stream.local_addr().map(|address| address.ip()).ok();
        let link = Arc::new(Link::new(local, place, ending));
        let (server, open, end) = (server.clone(), open.clone(), app.acts.end().clone());
        tasks.spawn("connection", async move {
            tokio::select! {
                biased;
                () = server.connection(stream, Peer(peer.ip()), &link) => {}
                () = end.triggered() => {}
            }
            drop(open);
        });
    }
    drop((listener, open));
    let engine = app.runtime.engine();
    let finished = async {
        let _ = all_gone.recv().await;
        // Those whose callers have gone have no connection.
        app.acts.idle().await;
    };
    tokio::select! {
        biased;
        () = finished => {}
        // Also where handlers have used up the time for work: what they answered last is on its way.
        () = clock.sleep(engine.work_left().max(engine.stop_left() / 3)) => tracing::warn!("requests were still under way when the grace period ended"),
    }
    // What could not be finished says so in its entry, which is written with the others.
    app.acts.cut();
    tokio::select! {
        biased;
        () = app.acts.idle() => {}
        () = clock.sleep(engine.stop_left() / 3) => tracing::error!("requests did not end when they were told to"),
    }
    tokio::select! {
        biased;
        () = app.recorder.flush() => {}
        () = clock.sleep(engine.stop_left() / 2) => tracing::error!("audit entries were still waiting when the grace period ended"),
    }
}

/// The next connection; `None` when the server stops.
async fn next(listener: &TcpListener, app: &App) -> Option<(TcpStream, SocketAddr)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    app.runtime.engine().clock().sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = app.shutdown.triggered() => None,
        accepted = accept => Some(accepted),
    }
}

async fn upkeep(app: App) {
    let clock = app.runtime.engine().clock().clone();
    loop {
        tokio::select! {
            biased;
            () = app.shutdown.triggered() => return,
            () = clock.sleep(UPKEEP_EVERY) => app.metrics.upkeep(),
        }
    }
}

fn builder(header_timeout: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(header_timeout)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_concurrent_streams(HTTP2_STREAMS_MAX);
    builder
}

/// The version is agreed on by TLS or is 1.1. It is not guessed from the first bytes: that would wait for them without a
/// limit.
struct Server {
    app: App,
    router: Router,
    http1: Builder<TokioExecutor>,
    http2: Builder<TokioExecutor>,
    /// How long a connection may take until its first request has come.
    first_request: Duration,
    tls: Option<Tls>,
}

impl Server {
    async fn connection(&self, stream: TcpStream, peer: Peer, link: &Arc<Link>) {
        // Answers are small: waiting to fill a packet would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "connection without TCP_NODELAY");
        }
        let clock = self.app.runtime.engine().clock();
        let mut first = pin!(clock.sleep(self.first_request));
        let Some(Tls(acceptor)) = &self.tls else {
            return self.requests(&self.http1, stream, (peer, link), first.as_mut()).await;
        };
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept(stream) => accepted,
            () = link.ending.told() => return,
            () = self.app.shutdown.triggered() => return,
            () = first.as_mut() => return tracing::debug!("TLS handshake took too long"),
        };
        match accepted {
            Ok(stream) => {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let builder = if is_http2 { &self.http2 } else { &self.http1 };
                self.requests(builder, stream, (peer, link), first.as_mut()).await;
            }
            Err(error) => tracing::debug!(%error, "TLS handshake refused"),
        }
    }

    /// Serves the requests of one connection, of which the first must come while `first` is not ready.
    async fn requests<S>(
        &self,
        builder: &Builder<TokioExecutor>,
        stream: S,
        (peer, link): (Peer, &Arc<Link>),
        mut first: Pin<&mut impl Future<Output = ()>>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = AddExtension::new(AddExtension::new(self.router.clone(), peer), link.clone());
        let mut requests = pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
        let (mut is_ending, mut is_first) = (false, true);
        loop {
            tokio::select! {
                biased;
                ended = requests.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(error, "connection ended");
                    }
                    return;
                }
                () = link.ending.told(), if !is_ending => is_ending = true,
                () = self.app.shutdown.triggered(), if !is_ending => is_ending = true,
                () = first.as_mut(), if is_first => is_first = false,
            }
            if (is_ending || !is_first) && !link.was_heard() {
                return tracing::debug!("connection without a request closed");
            }
            if is_ending {
                // What it has begun is answered.
                requests.as_mut().graceful_shutdown();
            }
        }
    }
}
