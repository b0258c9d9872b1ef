//! TLS of the listener.

use std::path::{Path, PathBuf};

use servo_server::Tls;

use crate::harness::{Options, Server};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

#[tokio::test]
async fn a_server_with_a_certificate_speaks_tls_only() {
    let tls = Tls::load(&file("cert.pem"), &file("key.pem")).unwrap();
    let server = Server::with(Options { tls: Some(tls), ..Options::default() }).await;
    let certificate = reqwest::Certificate::from_pem(&std::fs::read(file("cert.pem")).unwrap()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate]).build().unwrap();
    let url = format!("https://localhost:{}/livez", server.address.port());
    assert_eq!(client.get(url).send().await.unwrap().text().await.unwrap(), "ok\n");
    assert!(client.get(server.url("/livez")).send().await.is_err(), "plain text is not answered");
}

#[test]
fn files_that_are_no_certificate_are_named() {
    for (cert, key, named) in [
        ("missing.pem", "key.pem", "missing.pem"),
        ("cert.pem", "missing.pem", "missing.pem"),
        ("key.pem", "key.pem", "holds no certificate"),
        ("cert.pem", "cert.pem", "cert.pem"),
    ] {
        let error = Tls::load(&file(cert), &file(key)).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
