//! Servers that let nobody in without credentials, of each kind, and servers with TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

use async_nats::ConnectErrorKind;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use servo_bus_nats::{Config, Login, NatsBus, TlsFiles};

use crate::server::{CONFIGURATION, NatsServer};
use crate::{until_connected, within};

fn configured(text: &str) -> NatsServer {
    begin(text, true)
}

/// An account by JWT has streams only if it says how many.
fn configured_without_streams(text: &str) -> NatsServer {
    begin(text, false)
}

fn begin(text: &str, has_streams: bool) -> NatsServer {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CONFIGURATION), text).unwrap();
    NatsServer::begin(folder, has_streams)
}

/// It is let in; and without the credentials nobody is, so that it is they that count.
async fn is_let_in(server: &NatsServer, login: Login) {
    let refused = within("refusal", async_nats::connect(server.url())).await.unwrap_err();
    assert!(
        matches!(refused.kind(), ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication),
        "{refused:?}"
    );
    let bus = NatsBus::connect(Config { login, ..Config::new(&server.url()) }).await.unwrap();
    within("connection", until_connected(&bus)).await;
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_a_password_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = configured("authorization { user: bob, password: \"p@ss w:rd\" }");
    let (user, password) = ("bob".to_owned(), "p@ss w:rd".to_owned());
    is_let_in(&server, Login::Password { user: user.clone(), password }).await;
    let file = file(folder.path(), "password", "p@ss w:rd\n");
    is_let_in(&server, Login::PasswordFile { user, file }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = configured("authorization { token: \"s3cret\" }");
    is_let_in(&server, Login::Token("s3cret".to_owned())).await;
    is_let_in(&server, Login::TokenFile(file(folder.path(), "token", "s3cret\n"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_nkey_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let user = KeyPair::new_user();
    let server = configured(&format!("authorization {{ users: [ {{ nkey: {} }} ] }}", user.public_key()));
    let text = format!("# of the test\n{}\n", user.seed().unwrap());
    is_let_in(&server, Login::NkeyFile(file(folder.path(), "user.nk", &text))).await;
}

/// What `nsc` makes: an operator signs an account, which signs a user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_with_a_jwt_are_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let (operator, account, user) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
        "leaf": -1});
    let operator_jwt = jwt(&operator, &operator, &json!({"type": "operator", "version": 2}));
    let account_jwt = jwt(&operator, &account, &json!({"type": "account", "version": 2, "limits": limits}));
    let user_jwt = jwt(
        &account,
        &user,
        &json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}),
    );
    let account_id = account.public_key();
    let server = configured_without_streams(&format!(
        "operator: {operator_jwt}\nresolver: MEMORY\nresolver_preload: {{ {account_id}: {account_jwt} }}\n"
    ));
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().unwrap()
    );
    is_let_in(&server, Login::CredentialsFile(file(folder.path(), "user.creds", &text))).await;
}

fn jwt(issuer: &KeyPair, subject: &KeyPair, nats: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"jti": "of-the-test", "iat": 1_767_225_600, "iss": issuer.public_key(), "name": "test",
        "sub": subject.public_key(), "nats": nats});
    let signed = format!("{}.{}", encode(&json!({"typ": "JWT", "alg": "ed25519-nkey"})), encode(&claims));
    let signature = URL_SAFE_NO_PAD.encode(issuer.sign(signed.as_bytes()).unwrap());
    format!("{signed}.{signature}")
}

/// A folder with an authority, and certificates of it for the server on `localhost` and for a client.
fn certificates() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let openssl = |arguments: &str| {
        let made = Command::new("openssl").args(arguments.split(' ')).current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    openssl(&format!(
        "req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=ours -addext basicConstraints=critical,CA:TRUE"
    ));
    for (name, extension) in [("server", "subjectAltName=DNS:localhost"), ("client", "extendedKeyUsage=clientAuth")] {
        openssl(&format!(
            "req -x509 {key} -keyout {name}.key -out {name}.pem -subj /CN={name} -CA ca.pem -CAkey ca.key \
             -addext basicConstraints=critical,CA:FALSE -addext {extension}"
        ));
    }
    folder
}

/// What is trusted is what the file says, and the server's own wish for a certificate is met.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_tls_is_reached_with_its_authority() {
    let folder = certificates();
    let path = |name: &str| folder.path().join(name);
    for verifies in [false, true] {
        let server = configured(&format!(
            "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: {verifies} }}",
            path("server.pem"),
            path("server.key"),
            path("ca.pem")
        ));
        for scheme in ["nats", "tls"] {
            let url = format!("{scheme}://localhost:{}", server.url().rsplit(':').next().unwrap());
            // By the system's roots the server is nobody.
            within("refusal", async_nats::connect(&url)).await.unwrap_err();
            let own = verifies.then(|| (path("client.pem"), path("client.key")));
            let tls = TlsFiles { is_required: false, ca: Some(path("ca.pem")), own };
            let bus = NatsBus::connect(Config { tls, ..Config::new(&url) }).await.unwrap();
            within("connection", until_connected(&bus)).await;
        }
    }
}

/// A server that says it has no TLS is not sent the password: the connection fails before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_not_told_the_password_where_tls_is_wanted() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let folder = certificates();
    let login = || Login::Password { user: "bob".to_owned(), password: "HUNTER2".to_owned() };
    let ca = TlsFiles { ca: Some(folder.path().join("ca.pem")), ..TlsFiles::default() };
    for (scheme, tls, is_told) in
        [("tls", TlsFiles::default(), false), ("nats", ca, false), ("nats", TlsFiles::default(), true)]
    {
        // One each: a client that was refused comes again.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = Config { login: login(), tls, ..Config::new(&format!("{scheme}://{address}")) };
        let _bus = NatsBus::connect(config).await.unwrap();
        let (mut stream, _) = within("a connection", listener.accept()).await.unwrap();
        stream.write_all(b"INFO {\"server_id\":\"x\",\"version\":\"2.10.0\",\"max_payload\":1000}\r\n").await.unwrap();
        let mut said = Vec::new();
        while !said.contains(&b'\n') && !said.starts_with(&[0x16]) {
            let mut buffer = [0; 1_024];
            let length = within("words", stream.read(&mut buffer)).await.unwrap();
            assert!(length > 0, "it says something");
            said.extend_from_slice(&buffer[..length]);
        }
        assert_eq!(String::from_utf8_lossy(&said).contains("HUNTER2"), is_told, "{scheme}");
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = file(folder.path(), "wrong", "HUNTER2\n");
    let empty = file(folder.path(), "empty", "\n");
    let missing = folder.path().join("missing");
    let config = || Config::new("nats://127.0.0.1:4222");
    let login = |login: Login| Config { login, ..config() };
    let tls = |ca: Option<&PathBuf>, own: Option<&PathBuf>| {
        let own = own.map(|file| (file.clone(), file.clone()));
        Config { tls: TlsFiles { is_required: false, ca: ca.cloned(), own }, ..config() }
    };
    for config in [
        login(Login::TokenFile(missing.clone())),
        login(Login::TokenFile(empty)),
        login(Login::NkeyFile(wrong.clone())),
        login(Login::CredentialsFile(wrong.clone())),
        login(Login::PasswordFile { user: "bob".to_owned(), file: missing.clone() }),
        tls(Some(&missing), None),
        tls(Some(&wrong), None),
        tls(None, Some(&wrong)),
        Config::new("nats://bob:HUNTER2@127.0.0.1:4222"),
        Config::new("wss://127.0.0.1:4222"),
    ] {
        let error = NatsBus::connect(config).await.unwrap_err().to_string();
        assert!(!error.contains("HUNTER2"), "{error}");
    }
}
