//! One request on a socket, and the answer to it.

use std::sync::Arc;

use servo_sdk::{AwsLambdaClient, DurableServiceClient, ServoClient};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{SECRET, keys};

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Own,
    Aws,
}

/// Sends these bytes to whoever asks once, and returns what was asked together with what the client made of the answer.
pub(super) async fn exchange<T>(
    kind: Kind,
    answer: &str,
    call: impl AsyncFnOnce(Arc<dyn DurableServiceClient>) -> T,
) -> (String, T) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let client: Arc<dyn DurableServiceClient> = match kind {
        Kind::Own => Arc::new(ServoClient::signed(&base, keys(SECRET)).unwrap()),
        Kind::Aws => Arc::new(AwsLambdaClient::signed(Some(&base), keys(SECRET)).unwrap()),
    };
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        request
    };
    tokio::join!(serve, call(client))
}

/// A request is over when its announced length is there; without one, the head is all.
async fn read(socket: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = socket.read(&mut chunk).await.unwrap();
        assert!(count > 0, "the request broke off");
        request.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return String::from_utf8(request).unwrap();
        }
    }
}
