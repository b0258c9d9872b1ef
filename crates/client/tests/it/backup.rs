//! Downloads are there whole or not at all.

use servo_client::{Client, Error, IfExists};

use crate::server::{Reply, Server};

#[tokio::test]
async fn a_backup_is_in_its_place_when_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("servo.backup");
    let bytes = "x".repeat(100_000);
    let server = Server::start(vec![Reply::whole(200, "application/octet-stream", &bytes)]);
    let client = Client::new(&server.url, None).unwrap();
    assert_eq!(client.download_backup(&path, IfExists::Refuse).await.unwrap(), 100_000);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), bytes);
    server.finish();
    // Refused before the server is asked: the script is over, so asking would fail in another way.
    let error = client.download_backup(&path, IfExists::Refuse).await.unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_nothing() {
    for head in ["content-length: 100", "transfer-encoding: chunked"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("servo.backup");
        std::fs::write(&path, "the old one").unwrap();
        let body = if head.contains("chunked") { "5\r\nhello\r\n" } else { "hello" };
        let server = Server::start(vec![Reply::Close(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"))]);
        let client = Client::new(&server.url, None).unwrap();
        let error = client.download_backup(&path, IfExists::Replace).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "the old one");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no partial file stays");
        server.finish();
    }
}

#[tokio::test]
async fn a_refusal_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("servo.backup");
    let server = Server::start(vec![Reply::json(403, r#"{"type":"t","title":"no","status":403,"code":"FORBIDDEN"}"#)]);
    let error = Client::new(&server.url, None).unwrap().download_backup(&path, IfExists::Refuse).await.unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    server.finish();
}
