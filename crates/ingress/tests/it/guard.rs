//! Every decision about a head, with its neighbours.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use servo_ingress::{Ask, Authority, Host, Listener, Pages, Refused, decide};

const OK: Result<(), Refused> = Ok(());
const HOST: Result<(), Refused> = Err(Refused::Host);
const SITE: Result<(), Refused> = Err(Refused::Site);

fn listener(loopback: bool, keyless: bool, hosts: &[&str], pages: Pages) -> Listener {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let address = if loopback { "127.0.0.1" } else { "10.1.2.3" };
    Listener { address: Some(address.parse().unwrap()), loopback, keyless, hosts, pages }
}

/// A server that only this machine reaches, with a console.
fn local() -> Listener {
    listener(true, true, &[], Pages::Own)
}

struct Head {
    method: Method,
    target: String,
    version: Version,
    headers: HeaderMap,
    is_page: bool,
}

/// A head whose lines are `name: value`.
fn head(lines: &str) -> Head {
    let mut headers = HeaderMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.trim().as_bytes()).unwrap());
    }
    Head { method: Method::GET, target: "/v1/runs".to_owned(), version: Version::HTTP_11, headers, is_page: false }
}

impl Head {
    fn decided(&self, listener: &Listener) -> Result<(), Refused> {
        let uri: Uri = self.target.parse().unwrap();
        let (method, version, headers, is_page) = (&self.method, self.version, &self.headers, self.is_page);
        decide(listener, &Ask { method, uri: &uri, version, headers, is_page })
    }
}

fn decided(listener: &Listener, lines: &str) -> Result<(), Refused> {
    head(lines).decided(listener)
}

#[test]
fn hosts_are_read_in_one_spelling() {
    for (one, other) in [
        ("LocalHost", "localhost"),
        ("localhost.", "localhost"),
        ("localhost:", "localhost"),
        ("[::ffff:127.0.0.1]:1", "127.0.0.1:1"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("127.0.0.1.", "127.0.0.1"),
    ] {
        assert_eq!(Authority::parse(one).unwrap(), Authority::parse(other).unwrap(), "{one}");
    }
    assert_eq!(Authority::parse("a.example:80").unwrap().port, Some(80));
    assert_eq!(Authority::parse("a_b.example").unwrap().host, Host::Name("a_b.example".to_owned()));
    for none in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a b",
        "a,b",
        "a/b",
        "u@a",
        "a:b",
        "a:1:2",
        "a:99999",
        "a:-1",
        "::1",
        "[::1",
        "[::1]x",
        "[a]",
        "[127.0.0.1]",
        "a\\b",
        "a%2e",
        "http://a",
        "?",
        "a:+1",
    ] {
        assert_eq!(Authority::parse(none), None, "{none}");
    }
}

#[test]
fn a_server_of_this_machine_answers_to_its_own_names() {
    for good in [
        "localhost",
        "LOCALHOST:8700",
        "localhost.",
        "localhost.:1",
        "127.0.0.1",
        "127.0.0.1:8700",
        "127.8.8.8",
        "[::1]",
        "[::1]:8700",
        "[::ffff:127.0.0.1]:80",
    ] {
        for keyless in [true, false] {
            let lines = format!("host: {good}");
            assert_eq!(decided(&listener(true, keyless, &[], Pages::Own), &lines), OK, "{good}");
            assert_eq!(decided(&listener(true, keyless, &[], Pages::None), &lines), OK, "{good}");
        }
    }
    for bad in [
        "evil.example",
        "evil.example:8700",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "0.0.0.0",
        "[::]",
        "[fe80::1]",
        "localhost, evil.example",
        "user@localhost",
        "localhost@evil.example",
        "null",
        "2130706433",
        "127.1",
        "0x7f.0.0.1",
        "x.localhost",
        "localhost..",
        "",
    ] {
        for keyless in [true, false] {
            let lines = format!("host: {bad}");
            assert_eq!(decided(&listener(true, keyless, &[], Pages::Own), &lines), HOST, "{bad}");
            assert_eq!(decided(&listener(true, keyless, &[], Pages::None), &lines), HOST, "{bad}");
        }
    }
}

#[test]
fn the_address_at_which_it_is_asked_is_a_name_of_its_own() {
    let keyless = listener(false, true, &[], Pages::None);
    for (host, expected) in
        [("10.1.2.3:9001", OK), ("[::ffff:10.1.2.3]", OK), ("10.1.2.4", HOST), ("evil.example", HOST)]
    {
        assert_eq!(decided(&keyless, &format!("host: {host}")), expected, "{host}");
    }
    // Whoever has no key gets nothing from a server with keys, by whatever name it is called.
    let keyed = listener(false, false, &[], Pages::Own);
    assert_eq!(decided(&keyed, "host: servo.example.com"), OK);
    assert_eq!(decided(&keyed, ""), OK);
    assert_eq!(decided(&keyed, "host: a\nhost: a"), HOST, "which one counts would depend on who reads them");
    assert_eq!(decided(&keyed, "host: a b"), HOST);
}

#[test]
fn names_can_be_given() {
    let named = listener(false, false, &["servo.example.com", "10.0.0.9:8443", "[fd00::1]"], Pages::Own);
    for (host, expected) in [
        ("servo.example.com", OK),
        ("SERVO.example.com.:8700", OK),
        ("10.0.0.9:8443", OK),
        ("10.0.0.9", HOST),
        ("10.0.0.9:80", HOST),
        ("[fd00::1]:1", OK),
        ("10.1.2.3", OK),
        ("localhost:8700", OK),
        ("evil.example", HOST),
        ("x.servo.example.com", HOST),
        ("servo.example.com.evil.example", HOST),
    ] {
        assert_eq!(decided(&named, &format!("host: {host}")), expected, "{host}");
    }
    let behind = listener(true, false, &["servo.example.com"], Pages::Own);
    assert_eq!(decided(&behind, "host: servo.example.com\norigin: https://servo.example.com"), OK);
    // A proxy may put an address of its own into `Host`.
    assert_eq!(decided(&behind, "host: 127.0.0.1:8700\norigin: https://servo.example.com"), OK);
    assert_eq!(decided(&behind, "host: 127.0.0.1:8700\norigin: https://servo.example.com:444"), SITE);
    assert_eq!(decided(&behind, "host: 127.0.0.1:8700\norigin: https://other.example.com"), SITE);
}

#[test]
fn a_host_that_is_missing_or_said_twice() {
    let decided_as = |target: &str, version, lines: &str| {
        Head { target: target.to_owned(), version, ..head(lines) }.decided(&local())
    };
    for (target, version, lines, expected) in [
        ("/", Version::HTTP_11, "", HOST),
        ("/", Version::HTTP_2, "", HOST),
        ("/", Version::HTTP_10, "", OK),
        ("/", Version::HTTP_10, "host: evil.example", HOST),
        ("/", Version::HTTP_11, "host: localhost\nhost: localhost", HOST),
        ("/", Version::HTTP_11, "host: localhost\nhost: evil.example", HOST),
        ("http://localhost:1/", Version::HTTP_11, "host: localhost:1", OK),
        ("http://localhost:1/", Version::HTTP_11, "", OK),
        ("http://localhost:1/", Version::HTTP_2, "", OK),
        ("http://evil.example/", Version::HTTP_2, "", HOST),
        ("http://evil.example/", Version::HTTP_11, "host: localhost", HOST),
        ("http://localhost/", Version::HTTP_11, "host: evil.example", HOST),
        ("http://localhost/", Version::HTTP_11, "host: 127.0.0.1", HOST),
        ("http://u:p@localhost/", Version::HTTP_11, "host: localhost", HOST),
    ] {
        assert_eq!(decided_as(target, version, lines), expected, "{target} {version:?} {lines}");
    }
}

#[test]
fn only_pages_of_the_server_itself_ask() {
    for (lines, expected) in [
        ("host: localhost:8700\norigin: http://localhost:8700", OK),
        ("host: LOCALHOST:8700\norigin: http://localhost:8700\nsec-fetch-site: same-origin", OK),
        ("host: localhost\norigin: http://localhost", OK),
        ("host: localhost\norigin: http://localhost:80", OK),
        ("host: localhost\norigin: https://localhost", OK),
        ("host: [::1]:8700\norigin: http://[::1]:8700", OK),
        ("host: localhost:8700\nsec-fetch-site: none", OK),
        ("host: localhost:8700\nsec-fetch-mode: cors", OK),
        ("host: localhost:8700\norigin: http://localhost:3000", SITE),
        ("host: localhost:8700\norigin: http://localhost", SITE),
        ("host: localhost\norigin: http://localhost:8700", SITE),
        ("host: localhost:8700\norigin: http://127.0.0.1:8700", SITE),
        ("host: localhost:8700\norigin: https://evil.example", SITE),
        ("host: localhost:8700\norigin: null", SITE),
        ("host: localhost:8700\norigin:", SITE),
        ("host: localhost:8700\norigin: localhost:8700", SITE),
        ("host: localhost:8700\norigin: file://localhost:8700", SITE),
        ("host: localhost:8700\norigin: chrome-extension://abcdef", SITE),
        ("host: localhost:8700\norigin: http://localhost:8700/", SITE),
        ("host: localhost:8700\norigin: http://localhost:8700 http://evil.example", SITE),
        ("host: localhost:8700\norigin: http://localhost:8700\norigin: http://evil.example", SITE),
        ("host: localhost:8700\norigin: http://user@localhost:8700", SITE),
        ("host: localhost:8700\nsec-fetch-site: cross-site", SITE),
        ("host: localhost:8700\nsec-fetch-site: same-site", SITE),
        ("host: localhost:8700\nsec-fetch-site: Cross-Site", SITE),
        ("host: localhost:8700\nsec-fetch-site:", SITE),
        ("host: localhost:8700\nsec-fetch-site: same-origin\nsec-fetch-site: cross-site", SITE),
        ("host: localhost:8700\norigin: http://localhost:8700\nsec-fetch-site: cross-site", SITE),
        ("host: localhost:8700\nupgrade: websocket\norigin: http://localhost:3000", SITE),
        ("host: localhost:8700\naccept: text/event-stream\nsec-fetch-site: same-site", SITE),
    ] {
        assert_eq!(decided(&local(), lines), expected, "{lines}");
        // With keys and for others to reach it is no different.
        assert_eq!(decided(&listener(false, false, &[], Pages::Own), lines), expected, "{lines}");
    }
    assert_eq!(Head { version: Version::HTTP_10, ..head("origin: http://localhost") }.decided(&local()), SITE);
}

#[test]
fn people_open_pages_from_anywhere() {
    let link = "host: localhost:8700\nsec-fetch-site: cross-site\nsec-fetch-mode: navigate\nsec-fetch-dest: document";
    let opened = |method: Method, is_page, lines: &str| Head { method, is_page, ..head(lines) }.decided(&local());
    assert_eq!(opened(Method::GET, true, link), OK);
    assert_eq!(opened(Method::HEAD, true, link), OK);
    assert_eq!(opened(Method::GET, true, &link.replace("cross-site", "same-site")), OK);
    assert_eq!(opened(Method::GET, true, &link.replace("\nsec-fetch-dest: document", "")), OK);
    for (method, is_page, lines) in [
        (Method::GET, false, link.to_owned()),
        (Method::POST, true, link.to_owned()),
        (Method::GET, true, link.replace("document", "iframe")),
        (Method::GET, true, link.replace("navigate", "no-cors")),
        (Method::GET, true, format!("{link}\norigin: https://evil.example")),
        (Method::GET, true, format!("{link}\norigin: null")),
    ] {
        assert_eq!(opened(method.clone(), is_page, &lines), SITE, "{method} {is_page} {lines}");
    }
    assert_eq!(opened(Method::GET, true, &link.replace("localhost:8700", "evil.example")), HOST);
}

#[test]
fn no_page_asks_where_workers_do() {
    let workers = listener(true, true, &[], Pages::None);
    for (more, expected) in [
        ("", OK),
        ("user-agent: aws-lambda-rust/1.0.0", OK),
        ("user-agent: node\nsec-fetch-mode: cors\naccept-language: *", OK),
        ("content-type: application/x-www-form-urlencoded", OK),
        ("origin: http://localhost:9001", SITE),
        ("origin: null", SITE),
        ("sec-fetch-site: same-origin", SITE),
        ("sec-fetch-site: none", SITE),
        ("sec-fetch-dest: empty", SITE),
        ("referer: http://evil.example/", SITE),
        ("cookie: a=b", SITE),
        ("access-control-request-method: POST", SITE),
        ("user-agent: Mozilla/5.0 (X11; Linux x86_64)", SITE),
    ] {
        assert_eq!(decided(&workers, &format!("host: localhost:9001\n{more}")), expected, "{more}");
    }
}
