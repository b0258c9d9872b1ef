//! The measured handlers as a Restate service in Rust: `Bench/empty` and `Bench/steps`. Ends with its standard input.

#[path = "../../../src/handler/counts.rs"]
mod counts;

use counts::COUNTS;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[derive(Serialize, Deserialize)]
struct Order {
    #[serde(default)]
    number: usize,
    steps: u16,
}

struct Bench;

#[service]
impl Bench {
    #[handler]
    async fn empty(&self, _ctx: Context<'_>) -> Result<(), HandlerError> {
        COUNTS.begin().await;
        COUNTS.end(0);
        Ok(())
    }

    #[handler]
    async fn steps(&self, ctx: Context<'_>, order: Json<Order>) -> Result<u64, HandlerError> {
        let Order { number, steps } = order.into_inner();
        COUNTS.begin().await;
        let mut bytes = 0;
        for step in 0..steps {
            let result: String = ctx.run(move || async move { Ok(COUNTS.step(number, step)) }).name("step").await?;
            COUNTS.recorded(number, step);
            bytes += result.len() as u64;
        }
        COUNTS.end(number);
        Ok(bytes)
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        counts::follow(&address);
        std::process::exit(0);
    });
    let endpoint = HyperEndpoint::new(Endpoint::builder().bind(Bench).build());
    loop {
        let (stream, _) = listener.accept().await?;
        // The SDK's own server leaves Nagle's algorithm on, which costs the peer 40 ms now and then: not what we compare.
        stream.set_nodelay(true)?;
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            let served = hyper::server::conn::http2::Builder::new(TokioExecutor::default());
            // A connection ends with an error when the server at its other end is killed, as it is here.
            let _ = served.serve_connection(TokioIo::new(stream), endpoint).await;
        });
    }
}
