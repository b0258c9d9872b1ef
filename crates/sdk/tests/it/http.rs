//! The client of a server: paths, credentials, answers and refusals on a socket.

use servo_sdk::{CheckpointRequest, DurableServiceClient as _, ServiceError, ServoClient};
use servo_wire::channel::{put_alive, put_answer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers one request with this text, and returns what was asked together with what the client made of it. Knows of no
/// channels.
fn exchange<T>(
    (head, body): (&str, &str),
    call: impl AsyncFnOnce(ServoClient) -> Result<T, ServiceError>,
) -> (String, Result<T, ServiceError>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = ServoClient::new(&format!("http://{}", listener.local_addr().unwrap()), Some("key")).unwrap();
        let serve = async {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read(&mut socket).await;
                let is_channel = request.starts_with("POST /v1/channel ");
                let (head, body) = if is_channel { ("404 Not Found", "") } else { (head, body) };
                let answer = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                socket.write_all(answer.as_bytes()).await.unwrap();
                socket.shutdown().await.unwrap();
                if !is_channel {
                    return request;
                }
            }
        };
        tokio::join!(serve, call(client))
    })
}

/// A request. Its body is over when its announced length is there; without one, the head is all.
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

const ARN: &str = "arn:aws:lambda:eu-west-1:1:function:f:1/durable-execution/n/exec-1";

fn request() -> CheckpointRequest {
    CheckpointRequest { checkpoint_token: "t".into(), updates: None, client_token: Some("c".into()) }
}

/// DX-044: the ARN is one segment of the path, and the key goes with the request.
#[test]
fn a_checkpoint_is_posted() {
    let answer = ("200 OK", "{\"CheckpointToken\":\"next\",\"NewExecutionState\":{\"Operations\":[]}}");
    let (asked, answer) = exchange(answer, async |client| client.checkpoint(ARN, request()).await);
    let arn = "arn%3Aaws%3Alambda%3Aeu-west-1%3A1%3Afunction%3Af%3A1%2Fdurable-execution%2Fn%2Fexec-1";
    let path = format!("/2025-12-01/durable-executions/{arn}/checkpoint");
    assert!(asked.starts_with(&format!("POST {path} ")), "{asked}");
    assert!(asked.contains("authorization: Bearer key"), "{asked}");
    assert!(asked.ends_with("{\"CheckpointToken\":\"t\",\"ClientToken\":\"c\"}"), "{asked}");
    assert_eq!(answer.unwrap().checkpoint_token.as_deref(), Some("next"));
}

/// A refusal keeps its status, its name and its message, in either spelling.
#[test]
fn a_refusal_is_read() {
    let answer = (
        "400 Bad Request\r\nX-Amzn-ErrorType: InvalidParameterValueException:http://x",
        "{\"message\":\"Invalid checkpoint token\"}",
    );
    let (asked, answer) = exchange(answer, async |client| client.get_state(ARN, "t+/=", "m").await);
    assert!(asked.starts_with("GET ") && asked.contains("/state?CheckpointToken=t%2B%2F%3D&Marker=m "), "{asked}");
    let expected = ServiceError::Refused {
        status: 400,
        code: "InvalidParameterValueException".into(),
        message: "Invalid checkpoint token".into(),
    };
    assert_eq!(answer.unwrap_err(), expected);
}

/// A status that this version does not know is not taken for a live one.
#[test]
fn an_unknown_status_is_unreadable() {
    let answer = (
        "200 OK",
        "{\"NewExecutionState\":{\"Operations\":[{\"Id\":\"a\",\"Type\":\"STEP\",\"Status\":\"PAUSED\",\"StartTimestamp\":1.0}]}}",
    );
    let (_, answer) = exchange(answer, async |client| client.checkpoint(ARN, request()).await);
    let error = answer.unwrap_err();
    assert!(matches!(&error, ServiceError::Unreadable(reason) if reason.contains("PAUSED")), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_unreachable() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async {
        // Bound and closed again, so that nobody listens there.
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        ServoClient::new(&format!("http://{address}"), None).unwrap().checkpoint(ARN, request()).await.unwrap_err()
    });
    assert!(matches!(error, ServiceError::Unreachable(_)), "{error}");
    assert!(ServoClient::new("not an address", None).is_err());
}

/// The frames of a channel: calls of one process share a request, answers come in any order, and a channel that ends leaves its
/// callers without an answer, never with a wrong one.
#[test]
fn checkpoints_share_a_channel() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = ServoClient::new(&format!("http://{}", listener.local_addr().unwrap()), Some("key")).unwrap();
        let serve = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let head = read(&mut socket).await;
            assert!(head.starts_with("POST /v1/channel ") && head.contains("authorization: Bearer key"), "{head}");
            let kind = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.servo.channel\r\n\r\n";
            socket.write_all(kind.as_bytes()).await.unwrap();
            // Three calls, in chunks of an unknown size: their frames end with their documents.
            let mut seen = Vec::new();
            while seen.windows(11).filter(|bytes| bytes == b"ClientToken").count() < 3 {
                let mut piece = [0; 4096];
                let count = socket.read(&mut piece).await.unwrap();
                seen.extend_from_slice(&piece[..count]);
            }
            let mut out = Vec::new();
            let body = b"{\"CheckpointToken\":\"second\",\"NewExecutionState\":{}}";
            assert!(put_answer(&mut out, 2, 200, "", body));
            put_alive(&mut out);
            assert!(put_answer(&mut out, 1, 429, "TooManyRequestsException", b"{\"message\":\"later\"}"));
            socket.write_all(&out).await.unwrap();
            // The third is never answered.
            socket.shutdown().await.unwrap();
        };
        let call = || client.checkpoint(ARN, request());
        let ((), first, second, third) = tokio::join!(serve, call(), call(), call());
        let refused = first.unwrap_err();
        assert!(
            matches!(&refused, ServiceError::Refused { status: 429, message, .. } if message == "later"),
            "{refused}"
        );
        assert_eq!(second.unwrap().checkpoint_token.as_deref(), Some("second"));
        let lost = third.unwrap_err();
        assert!(matches!(lost, ServiceError::Unreachable(_)), "{lost}");
    });
}

/// DX-044: a signed request has the three headers that AWS looks for, and no secret.
#[test]
fn requests_can_be_signed() {
    let keys = servo_sdk::AwsCredentials {
        access_key_id: "AKID".into(),
        secret_access_key: "secret".into(),
        session_token: Some("session".into()),
        region: "eu-west-1".into(),
    };
    let body = "{\"NewExecutionState\":{}}";
    let (asked, _) = exchange(("200 OK", body), async |client| {
        ServoClient::signed(client.endpoint(), keys.clone())?.checkpoint(ARN, request()).await
    });
    assert!(asked.contains("authorization: AWS4-HMAC-SHA256 Credential=AKID/2"), "{asked}");
    assert!(
        asked.contains(
            "/eu-west-1/lambda/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token"
        ),
        "{asked}"
    );
    assert!(asked.contains("x-amz-security-token: session") && asked.contains("x-amz-date: 2"), "{asked}");
    assert!(!asked.contains("secret\r"), "{asked}");
}
