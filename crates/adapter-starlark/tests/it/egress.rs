//! Requests of user code: where they may go, and what they may take along. Judged by what servers saw.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use servo_adapter::{Claim, HandlerCall, Handlers as _, Right, Standing};
use servo_adapter_starlark::{EgressSettings, Secrets};
use servo_model::TenantId;
use servo_model::invocation::ErrorCategory;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::execution::Execution;
use crate::support::{World, plain, settings};
use crate::vectors::{Trap, Vector, vectors};

/// A server that answers every connection with the same text and keeps what it was sent.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a test's own server, which ends with it")]
    async fn start(ip: &str, answer: String) -> Self {
        let listener = TcpListener::bind((ip.parse::<IpAddr>().unwrap(), 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !is_whole(&request) {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => break,
                        Ok(length) => request.extend_from_slice(&buffer[..length]),
                    }
                }
                kept.lock().unwrap().push(String::from_utf8(request).unwrap());
                drop(stream.write_all(answer.as_bytes()).await);
            }
        });
        Self { address, seen, task }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-a: b\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn allowing(nets: &[&str], hosts: &[&str]) -> EgressSettings {
    EgressSettings {
        allow_nets: nets.iter().map(|net| net.parse().unwrap()).collect(),
        allow_hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        ..EgressSettings::default()
    }
}

struct Vault;

#[async_trait]
impl Secrets for Vault {
    async fn secret(&self, tenant: &TenantId, name: &str) -> Result<String, String> {
        let known = BTreeMap::from([(("acme", "token"), "s3cr3t-canary")]);
        known.get(&(tenant.as_str(), name)).map(|&value| value.to_owned()).ok_or(format!("there is no secret {name:?}"))
    }
}

fn world(egress: EgressSettings) -> World {
    World::from_parts(|parts| {
        parts.settings = servo_adapter_starlark::Settings { egress, ..settings() };
        parts.secrets = Arc::new(Vault);
    })
}

const GET: &str = "def main(ctx, input):\n    r = ctx.http('GET', input)\n    return [r.status, r.body]\n";

/// S7: nothing inside is reached by default, however the address is written.
#[tokio::test]
async fn inner_addresses_are_not_reached() {
    let trap = Trap::set().await;
    let world = world(EgressSettings::default());
    for Vector { url, .. } in vectors(trap.port) {
        let failure = world.failure(GET, &json!(url).to_string()).await;
        assert_eq!(failure.category, ErrorCategory::NonRetryable, "{url:?}: {failure:?}");
    }
    assert_eq!(trap.accepted().await, 0);
    let failure = world.failure(GET, &json!(format!("http://localhost:{}/", trap.port)).to_string()).await;
    assert!(failure.message.contains("not part of the public internet"), "{failure:?}");
    // Where a name leads is nobody's business outside.
    assert!(failure.message.contains("localhost") && !failure.message.contains("127.0.0.1"), "{failure:?}");
    // Not every resolver knows this name; then it leads nowhere, and another try may go better.
    world.failure(GET, &json!(format!("http://localhost.:{}/", trap.port)).to_string()).await;
    assert_eq!(trap.accepted().await, 0);
}

/// S7: a redirect leads inside no more than a first request, whichever of the hops it is and however it is written.
#[tokio::test]
async fn every_hop_is_checked() {
    let trap = Trap::set().await;
    let world = world(allowing(&["127.0.0.3"], &[]));
    let mut all = vectors(trap.port);
    // What is no address by itself may be one beside that of the redirect.
    all.retain(|vector| vector.is_here && vector.url.starts_with("http://") && !vector.url.contains('\t'));
    for (number, Vector { url, .. }) in all.iter().enumerate() {
        // Each of the five hops is the last one for some of them.
        let mut hops = vec![Server::start("127.0.0.3", redirect(302, &location(url))).await];
        for _ in 0..number % 5 {
            let next = format!("http://{}/", hops[0].address);
            hops.insert(0, Server::start("127.0.0.3", redirect(307, &next)).await);
        }
        let first = json!(format!("http://{}/", hops[0].address)).to_string();
        let failure = world.failure(GET, &first).await;
        assert_eq!(failure.category, ErrorCategory::NonRetryable, "{url:?}: {failure:?}");
        assert!(hops.iter().all(|hop| hop.seen().len() == 1), "{url:?}: {failure:?}");
    }
    assert_eq!(trap.accepted().await, 0);
}

/// A header holds bytes of one script.
fn location(url: &str) -> String {
    let escape = |character: char| match character {
        ' '..='~' => character.to_string(),
        _ => character.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect(),
    };
    url.trim().chars().map(escape).collect()
}

#[tokio::test]
async fn what_the_operator_allows_is_reached() {
    let server = Server::start("127.0.0.1", ok("hello")).await;
    for egress in [allowing(&["127.0.0.0/8"], &[]), allowing(&[], &["localhost"])] {
        let by_name = egress.allow_nets.is_empty();
        let host = if by_name { "localhost" } else { "127.0.0.1" };
        let url = json!(format!("http://{host}:{}/path?q=1", server.address.port())).to_string();
        assert_eq!(world(egress).result(GET, &url).await, json!([200, "hello"]));
    }
    assert!(server.seen()[0].starts_with("GET /path?q=1 HTTP/1.1"));
}

/// S7: each hop is checked like a first request.
#[tokio::test]
async fn redirects_are_checked_and_counted() {
    let inside = Server::start("127.0.0.1", ok("inside")).await;
    let to_inside = redirect(302, &format!("http://127.0.0.1:{}/", inside.address.port()));
    let outside = Server::start("127.0.0.1", to_inside).await;
    let world_ = world(allowing(&[], &["localhost"]));
    let url = json!(format!("http://localhost:{}/", outside.address.port())).to_string();
    let failure = world_.failure(GET, &url).await;
    assert!(failure.message.contains("not part of the public internet"), "{failure:?}");
    assert_eq!((outside.seen().len(), inside.seen().len()), (1, 0));

    let looping = Server::start("127.0.0.1", redirect(307, "/again")).await;
    let world_ = world(allowing(&["127.0.0.1"], &[]));
    let url = json!(format!("http://127.0.0.1:{}/", looping.address.port())).to_string();
    let failure = world_.failure(GET, &url).await;
    assert!(failure.message.contains("redirects"), "{failure:?}");
    assert_eq!(looping.seen().len(), 6);
}

/// Held for some calls, then another node's.
struct Until(AtomicUsize);

#[async_trait]
impl Claim for Until {
    fn standing(&self) -> Standing {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { Standing::Held } else { Standing::PassedOn }
    }

    async fn settled(&self) -> bool {
        false
    }
}

/// R14: a node that was paused across its lease makes no more requests for a run, wherever in the run it was paused.
#[tokio::test]
async fn a_run_of_another_node_makes_no_more_requests() {
    const TWICE: &str = "def main(ctx, input):\n    ctx.http('GET', input)\n    return ctx.http('GET', input).status\n";
    let server = Server::start("127.0.0.1", ok("hello")).await;
    let url = json!(format!("http://127.0.0.1:{}/", server.address.port())).to_string();
    let world = world(allowing(&["127.0.0.1"], &[]));
    // Asked before the program begins, and before each request.
    for (held, requests) in [(3, 2), (2, 1), (1, 0), (0, 0)] {
        let before = server.seen().len();
        let right = Right::new(Arc::new(Until(AtomicUsize::new(held))));
        let call = HandlerCall { right, ..plain(TWICE, &url) };
        let answer = world.starlark.call(Box::new(call)).await;
        assert_eq!(server.seen().len() - before, requests, "held {held} times");
        assert_eq!(answer.is_ok(), requests == 2, "{answer:?}");
    }
}

/// A secret reaches the server it is meant for, and nobody else: not another host, not the program, not the record.
#[tokio::test]
async fn secrets_go_only_where_they_are_sent() {
    let other = Server::start("127.0.0.2", ok("other, not s3cr3t-canary")).await;
    let first = Server::start("127.0.0.1", redirect(307, &format!("http://127.0.0.2:{}/", other.address.port()))).await;
    let world = world(allowing(&["127.0.0.0/8"], &[]));
    let source = r#"
def main(ctx, input):
    token = ctx.secret("token")
    ctx.log("the token is " + str(token))
    r = ctx.http("POST", input, headers = {"X-Key": "Bearer " + token, "X-Plain": "p"}, body = {"a": 1}, name = "post")
    return [r.status, str("Bearer " + token), r.body]
"#;
    let url = json!(format!("http://127.0.0.1:{}/", first.address.port())).to_string();
    let execution = Execution::new(&world, source, &url);
    assert_eq!(execution.returns(&world).await, json!([200, "<secret>", "other, not <secret>"]));
    let (first, other) = (first.seen().remove(0), other.seen().remove(0));
    assert!(first.contains("x-key: Bearer s3cr3t-canary") && first.contains("{\"a\":1}"), "{first}");
    assert!(first.contains("content-type: application/json"), "{first}");
    assert!(other.contains("x-plain: p") && !other.contains("canary"), "{other}");
    let kept = format!("{:?} {:?}", execution.updates(), world.lines.texts());
    assert!(!kept.contains("canary"), "{kept}");
    assert_eq!(execution.told(), ["STEP/Step post START", "STEP/Step post SUCCEED"]);
    // On replay the response comes from the record.
    assert_eq!(execution.returns(&world).await, json!([200, "<secret>", "other, not <secret>"]));

    let failure = world
        .failure("def main(ctx, input):\n    ctx.http('GET', input, headers = {'a': ctx.secret('none')})\n", &url)
        .await;
    assert!(failure.message.contains("no secret \"none\""), "{failure:?}");
}

#[tokio::test]
async fn responses_and_requests_have_limits() {
    let large = Server::start("127.0.0.1", ok(&"x".repeat(2_000_000))).await;
    let silent = Server::start("127.0.0.1", String::new()).await;
    let egress = EgressSettings { timeout_max: std::time::Duration::from_millis(200), ..allowing(&["127.0.0.1"], &[]) };
    let world_ = world(allowing(&["127.0.0.1"], &[]));
    let url = json!(format!("http://127.0.0.1:{}/", large.address.port())).to_string();
    let failure = world_.failure(GET, &url).await;
    assert!(failure.message.contains("more than 1048576 bytes"), "{failure:?}");
    for (arguments, word) in [
        ("'GET', input, headers = {'Host': 'x'}", "reserved"),
        ("'GET', input, headers = {'a\\n': 'x'}", "reserved"),
        ("'GET', input, headers = {'a': 'x\\r\\ny: z'}", "reserved"),
        ("'TRACE', input", "method"),
        ("'POST', input, body = 'x' * 1100000", "1048576"),
        ("'GET', input, headers = {'a': 1}", "headers"),
    ] {
        let source = format!("def main(ctx, input):\n    return ctx.http({arguments})\n");
        let failure = world_.failure(&source, &url).await;
        assert!(failure.message.contains(word), "{arguments}: {failure:?}");
    }
    // Nobody listens, or nobody answers: another try may go better.
    let closed = {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        gone.local_addr().unwrap()
    };
    let world_ = world(egress);
    for address in [closed, silent.address] {
        let failure = world_.failure(GET, &json!(format!("http://{address}/")).to_string()).await;
        assert_eq!(failure.category, ErrorCategory::Retryable, "{failure:?}");
    }
}
