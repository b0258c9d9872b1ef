//! Who may ask, over real connections: every kind of address, with every kind of head that a page of another site can have.

use reqwest::Method;
use servo_server::config::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Answer, Options, Server, keys, one_step, start};

/// Every kind of address, each of which answers something else than 403 to whoever may ask.
const ADDRESSES: [(&str, &str); 14] = [
    ("GET", "/"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/version"),
    ("GET", "/openapi.json"),
    ("GET", "/console/"),
    ("GET", "/v1/whoami"),
    ("POST", "/v1/keys"),
    ("POST", "/v1/channel"),
    ("GET", "/runtime/snapshot"),
    ("POST", "/api/serverless-runtime/v1/invocations"),
    ("POST", "/2015-03-31/functions/f/invocations"),
    ("GET", "/no/such/address"),
];

/// The status of the answer to a head of these lines, and the answer.
async fn asked(server: &Server, first: &str, lines: &[&str]) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!("{first}\r\n{}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", lines.join("\r\n"));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Some answers do not end by themselves.
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{head}: {}", String::from_utf8_lossy(&answer));
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_everywhere() {
    let local = Server::start().await;
    let keyed = Server::with(Options { auth: keys(), loopback: false, ..Options::default() }).await;
    for (server, key) in [(&local, "x-none: 1"), (&keyed, "authorization: Bearer acme-platform-admin")] {
        let port = server.address.port();
        let host = &*format!("host: localhost:{port}");
        let own = &*format!("origin: http://localhost:{port}");
        let other = &*format!("origin: http://localhost:{}", port - 1);
        for (method, path) in ADDRESSES {
            let first = format!("{method} {path} HTTP/1.1");
            for lines in [
                vec![host],
                vec![host, own],
                vec![host, own, "sec-fetch-site: same-origin", "sec-fetch-mode: cors"],
                vec![host, "sec-fetch-site: none", "sec-fetch-mode: navigate"],
            ] {
                let (status, answer) = asked(server, &first, &[&lines[..], &[key]].concat()).await;
                assert_ne!(status, 403, "{first} {lines:?}: {answer}");
            }
            for lines in [
                vec![host, other],
                vec![host, "origin: https://evil.example"],
                vec![host, "origin: null"],
                vec![host, own, other],
                vec![host, "sec-fetch-site: cross-site"],
                vec![host, "sec-fetch-site: same-site", "sec-fetch-mode: no-cors"],
                vec![host, own, "sec-fetch-site: cross-site"],
                vec![host, "host: evil.example"],
                vec![host, other, "upgrade: websocket", "accept: text/event-stream"],
            ] {
                let (status, answer) = asked(server, &first, &[&lines[..], &[key]].concat()).await;
                assert_eq!(status, 403, "{first} {lines:?}: {answer}");
            }
        }
        let preflight = ["access-control-request-method: POST", "origin: http://localhost:1", host, key];
        assert_eq!(asked(server, "OPTIONS /v1/keys HTTP/1.1", &preflight).await.0, 403);
    }
}

/// By a name of its own that leads here, a page would be of the same site as the server.
#[tokio::test]
async fn a_server_on_loopback_is_called_by_its_names_alone() {
    let local = Server::start().await;
    let keyed = Server::with(Options { auth: keys(), ..Options::default() }).await;
    for (server, key) in [(&local, "x-none: 1"), (&keyed, "authorization: Bearer acme-platform-admin")] {
        for (method, path) in ADDRESSES {
            let first = format!("{method} {path} HTTP/1.1");
            for host in ["host: LOCALHOST.", "host: 127.0.0.1:1", "host: [::1]:8700"] {
                assert_ne!(asked(server, &first, &[host, key]).await.0, 403, "{first} {host}");
            }
            for host in [
                "host: evil.example",
                "host: localhost.evil.example",
                "host: 10.0.0.1",
                "host: a@localhost",
                "x-no: host",
            ] {
                let lines = [host, "origin: http://evil.example", "sec-fetch-site: same-origin", key];
                assert_eq!(asked(server, &first, &lines).await.0, 403, "{first} {host}");
                assert_eq!(asked(server, &first, &[host, key]).await.0, 403, "{first} {host}");
            }
            let absolute = format!("{method} http://evil.example{path} HTTP/1.1");
            assert_eq!(asked(server, &absolute, &["host: localhost", key]).await.0, 403, "{absolute}");
        }
        assert_eq!(asked(server, "GET /livez HTTP/1.0", &[key]).await.0, 200, "from before there were names");
    }
}

#[tokio::test]
async fn names_can_be_given() {
    let config = ServerConfig { hosts: vec!["servo.example.com".to_owned()], ..ServerConfig::default() };
    for loopback in [true, false] {
        let server =
            Server::with(Options { auth: keys(), server: config.clone(), loopback, ..Options::default() }).await;
        let whoami = async |lines: &[&str]| {
            let key = "authorization: Bearer acme-viewer";
            asked(&server, "GET /v1/whoami HTTP/1.1", &[lines, &[key]].concat()).await.0
        };
        assert_eq!(whoami(&["host: servo.example.com", "origin: https://servo.example.com"]).await, 200);
        assert_eq!(whoami(&["host: localhost:1", "origin: https://servo.example.com"]).await, 200, "a proxy between");
        assert_eq!(whoami(&["host: evil.example"]).await, 403);
        assert_eq!(whoami(&["host: servo.example.com", "origin: https://evil.example"]).await, 403);
    }
}

/// A link on any page leads to the console, and to nothing else.
#[tokio::test]
async fn people_come_to_the_console_from_anywhere() {
    let server = Server::start().await;
    let link =
        ["host: localhost", "sec-fetch-site: cross-site", "sec-fetch-mode: navigate", "sec-fetch-dest: document"];
    let page = asked(&server, "GET /console/ HTTP/1.1", &["host: localhost"]).await;
    assert_eq!(page.0, 200);
    for (path, status) in
        [("/console/", 200), ("/console/runs/run_1", 200), ("/console", 308), ("/v1/whoami", 403), ("/metrics", 403)]
    {
        assert_eq!(asked(&server, &format!("GET {path} HTTP/1.1"), &link).await.0, status, "{path}");
    }
    let front = [&link[..], &["accept: text/html"]].concat();
    assert_eq!(asked(&server, "GET / HTTP/1.1", &front).await.0, 303);
    assert_eq!(asked(&server, "POST /console/ HTTP/1.1", &link).await.0, 403);
    let framed: Vec<&str> =
        link.iter().map(|line| if line.contains("dest") { "sec-fetch-dest: iframe" } else { *line }).collect();
    assert_eq!(asked(&server, "GET /console/ HTTP/1.1", &framed).await.0, 403);
    assert_eq!(asked(&server, "GET /console/assets/0/js/main.js HTTP/1.1", &link).await.0, 403);
}

/// A refusal is told in the words of the API that was asked.
#[tokio::test]
async fn each_api_refuses_in_its_own_words() {
    let server = Server::start().await;
    let ask = |method, path: &str| server.request(method, path).header("origin", "https://evil.example");
    Answer::of(ask(Method::GET, "/v1/runs")).await.is_problem("FORBIDDEN");
    let lambda = ask(Method::POST, "/2015-03-31/functions/f/invocations").body("{}").send().await.unwrap();
    assert_eq!(lambda.headers()["x-amzn-errortype"], "AccessDeniedException");
    let rest = Answer::of(ask(Method::GET, "/api/serverless-runtime/v1/invocations")).await;
    assert_eq!(rest.status, 403, "{}", rest.text);
}

/// What a page can send without being asked first is no JSON, and JSON is what our own API takes. AWS's runtimes send forms.
#[tokio::test]
async fn a_body_says_that_it_is_json() {
    let server = Server::start().await;
    let client = crate::harness::client();
    let body = start(one_step()).to_string();
    for (path, kind, status) in [
        ("/v1/runs", Some("application/json"), 201),
        ("/v1/runs", Some("application/json; charset=utf-8"), 201),
        ("/v1/runs", Some("text/plain"), 400),
        ("/v1/runs", Some("application/x-www-form-urlencoded"), 400),
        ("/v1/runs", Some("multipart/form-data"), 400),
        ("/v1/runs", None, 400),
        ("/v1/keys", Some("text/plain"), 400),
        ("/v1/runs/import", Some("text/plain"), 400),
        ("/runtime/commands", Some("text/plain"), 400),
        ("/v1/dead-letters/redrive", Some("text/plain"), 400),
        ("/api/serverless-runtime/v1/invocations", Some("text/plain"), 400),
        ("/api/serverless-runtime/v1/entrypoints:validate", Some("text/plain"), 400),
        ("/2015-03-31/functions/f/invocations", Some("application/x-www-form-urlencoded"), 404),
        ("/2015-03-31/functions/f/invocations", None, 404),
    ] {
        let request = client.post(server.url(path)).body(body.clone());
        let request = match kind {
            Some(kind) => request.header("content-type", kind),
            None => request,
        };
        let answer = request.send().await.unwrap();
        let (answered, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(answered, status, "{path} {kind:?}: {text}");
    }
    // Nothing needs no kind.
    assert_eq!(client.post(server.url("/v1/dead-letters/redrive")).send().await.unwrap().status(), 200);
    assert_eq!(server.get("/v1/runs").await.json["items"].as_array().unwrap().len(), 2);
}

/// Two readers of one document must not believe two different things.
#[tokio::test]
async fn a_member_stands_once() {
    let server = Server::start().await;
    let rest = "/api/serverless-runtime/v1";
    for (path, body) in [
        (format!("{rest}/invocations"), r#"{"entrypoint_id":"a","mode":"sync","mode":"async"}"#),
        (format!("{rest}/invocations"), r#"{"entrypoint_id":"a","params":{"a":1,"\u0061":2}}"#),
        (format!("{rest}/invocations:bulk"), r#"{"action":"cancel","filter":"a","filter":"b"}"#),
        (format!("{rest}/entrypoints"), r#"{"id":"a","id":"b"}"#),
        (format!("{rest}/entrypoints:validate"), r#"{"id":"a","id":"b"}"#),
        ("/v1/keys".to_owned(), r#"{"name":"a","name":"b","roles":["viewer"]}"#),
        ("/v1/runs".to_owned(), r#"{"plan":{},"plan":{}}"#),
        ("/v1/dead-letters/redrive".to_owned(), r#"{"position":"cursor-7","position":"cursor-8"}"#),
        ("/runtime/commands".to_owned(), r#"{"command":"Recover","command":"Resync"}"#),
    ] {
        let answer = server.post_text(&path, body).await;
        assert!(matches!(answer.status.as_u16(), 400 | 422), "{path} {body}: {} {}", answer.status, answer.text);
    }
    let mut twice = start(one_step()).to_string();
    twice = twice.replacen(r#""stepId":"a""#, r#""stepId":"a","with":{"sleepMs":1,"sleepMs":2}"#, 1);
    let answer = server.post_text("/v1/runs", &twice).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    answer.names("/plan/steps/0/with/sleepMs");
}
