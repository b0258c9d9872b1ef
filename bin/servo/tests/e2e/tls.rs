//! A server with a certificate, and the command line as its client.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::process::{Servo, binary};

/// The certificate of the server's own tests: for localhost and 127.0.0.1, signed by itself.
fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/server/tests/it/tls").join(name)
}

fn configuration(folder: &Path, cert: &Path, key: &Path) -> PathBuf {
    let file = folder.join("servo.toml");
    let text = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[server.tls]\ncert = {cert:?}\nkey = {key:?}\n\
         [store]\nkind = \"sqlite\"\npath = {:?}\n[engines]\nmock = true\n",
        folder.join("data")
    );
    std::fs::write(&file, text).expect("a file");
    file
}

fn list(arguments: &[&str]) -> (Output, String) {
    let output = binary().args(["runs", "list"]).args(arguments).output().expect("servo runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn a_server_with_a_certificate_answers_those_who_trust_it_and_nobody_in_the_clear() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path(), &pem("cert.pem"), &pem("key.pem"));
    let server = Servo::server(&config, &[]).expect("it starts");
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let authority = pem("cert.pem");
    let authority = authority.to_str().expect("utf-8");
    let (trusting, said) = list(&["--server", &server.url, "--ca-file", authority]);
    assert!(trusting.status.success(), "{said}");
    let (trusting, said) = list(&["--server", &server.url.replace("127.0.0.1", "localhost"), "--ca-file", authority]);
    assert!(trusting.status.success(), "{said}");

    let (wary, said) = list(&["--server", &server.url]);
    assert_eq!(wary.status.code(), Some(9), "without the certificate there is no reason to trust it: {said}");
    assert!(said.to_lowercase().contains("certificate"), "{said}");
    let (plain, said) = list(&["--server", &server.url.replace("https://", "http://")]);
    assert_eq!(plain.status.code(), Some(9), "plain text is not answered: {said}");
    let (misled, said) = list(&["--server", &server.url, "--ca-file", pem("key.pem").to_str().expect("utf-8")]);
    assert!(!misled.status.success(), "a key is no certificate: {said}");
    assert!(server.stop().success());
}

#[test]
fn a_wrong_certificate_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let garbage = folder.path().join("garbage.pem");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n").expect("a file");
    let missing = folder.path().join("missing.pem");
    for (cert, key, named) in [
        (missing.clone(), pem("key.pem"), "missing.pem"),
        (garbage.clone(), pem("key.pem"), "garbage.pem"),
        (pem("key.pem"), pem("key.pem"), "key.pem"),
        (pem("cert.pem"), missing, "missing.pem"),
        (pem("cert.pem"), pem("cert.pem"), "cert.pem"),
    ] {
        let config = configuration(folder.path(), &cert, &key);
        let output = binary().args(["server", "--config"]).arg(&config).output().expect("servo runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(named) && said.contains("server.tls"), "{named}: {said}");
    }
}
