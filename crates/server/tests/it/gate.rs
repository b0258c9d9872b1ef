//! Requests that are under way until a test lets them go: they wait for a plan from a server that waits for the test.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use reqwest::Method;
use serde_json::json;
use servo_runtime::Tasks;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::harness::{Server, one_step, plan, plan_ref};

pub(crate) struct Gate {
    address: String,
    open: Arc<Semaphore>,
    asked: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
}

impl Gate {
    /// A gate, and the source of plans that servers are to allow.
    pub(crate) async fn new() -> (Self, Vec<String>) {
        let (open, (asks, asked)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
        let opened = open.clone();
        let wait = move || {
            let (opened, asks) = (opened.clone(), asks.clone());
            async move {
                asks.send(()).unwrap();
                opened.acquire().await.unwrap().forget();
                plan(one_step()).to_string()
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/plans/", listener.local_addr().unwrap());
        let router = Router::new().route("/plans/demo.json", get(wait));
        Tasks::on_tokio().spawn("gate", async move { axum::serve(listener, router).await.unwrap() });
        let sources = vec![address.clone()];
        (Self { address, open, asked: asked.into() }, sources)
    }

    /// Requests that are under way when this is ready. What it gives are their statuses, when they are answered.
    pub(crate) async fn hold(&self, server: &Arc<Server>, key: &str, count: usize) -> impl Future<Output = Vec<u16>> {
        let mut reference = plan_ref(&plan(one_step()));
        reference["uri"] = json!(format!("{}demo.json", self.address));
        let mut answers = Vec::new();
        for _ in 0..count {
            let (tell, told) = oneshot::channel();
            let (server, key, body) = (server.clone(), key.to_owned(), json!({"planRef": reference}));
            Tasks::on_tokio().spawn("held", async move {
                let answer = server.send(Method::POST, "/v1/runs", &key, Some(&body)).await;
                let _ = tell.send(answer.status.as_u16());
            });
            answers.push(told);
            self.asked.lock().await.recv().await.unwrap();
        }
        async move {
            let mut statuses = Vec::new();
            for told in answers {
                statuses.push(told.await.unwrap());
            }
            statuses
        }
    }

    pub(crate) fn open(&self) {
        self.open.add_permits(1_000);
    }
}
