//! Names that lie.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use servo_egress::{Denied, Guard};

use crate::support::{Scripted, Server, outside};

const OUTSIDE: &str = "127.0.0.2";
const INSIDE: &str = "127.0.0.1";

/// A server outside, and one inside on the same port.
async fn servers() -> (Server, Server) {
    loop {
        let outside = Server::start(format!("{OUTSIDE}:0").parse().unwrap()).await;
        let inside = SocketAddr::new(INSIDE.parse().unwrap(), outside.address.port());
        // Somebody else may have the port there.
        if tokio::net::TcpListener::bind(inside).await.is_ok() {
            return (outside, Server::start(inside).await);
        }
    }
}

/// S7: a name that leads outside when it is looked at and inside when it is connected to. It is looked up once for a connection, and
/// each connection's look-up is checked.
#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let (outer, inner) = servers().await;
    let url = format!("http://rebinding.test:{}/", outer.address.port());
    let names = Scripted::new(&[&[OUTSIDE], &[INSIDE]]);
    let client = servo_egress::client(&Guard::over(outside(), names.clone())).build().unwrap();
    assert!(client.get(&url).send().await.is_ok());
    assert_eq!((names.asked.load(Ordering::Relaxed), outer.accepted(), inner.accepted()), (1, 1, 0));
    let refused = client.get(&url).send().await.unwrap_err();
    let denied = Denied::of(&refused).unwrap().to_string();
    assert!(denied.contains("rebinding.test") && !denied.contains(INSIDE), "{denied}");
    assert_eq!((names.asked.load(Ordering::Relaxed), outer.accepted(), inner.accepted()), (2, 1, 0));

    // The control: one that checks a name, and then lets the client look it up again, comes inside.
    let names = Scripted::new(&[&[OUTSIDE], &[INSIDE]]);
    let checked = Guard::over(outside(), names.clone());
    let name = "rebinding.test".parse().unwrap();
    assert!(reqwest::dns::Resolve::resolve(&checked, name).await.is_ok());
    let client = reqwest::Client::builder().no_proxy().dns_resolver(names).build().unwrap();
    assert!(client.get(&url).send().await.is_ok());
    assert_eq!(inner.accepted(), 1);
}

/// S7: one address inside is enough, wherever it stands among others.
#[tokio::test]
async fn an_answer_that_is_partly_inside_is_refused() {
    let (outer, inner) = servers().await;
    let url = format!("http://mixed.test:{}/", outer.address.port());
    for answer in [
        &[OUTSIDE, INSIDE][..],
        &[INSIDE, OUTSIDE],
        &[OUTSIDE, "::1"],
        &["::1", OUTSIDE],
        &[OUTSIDE, "fd00:ec2::254"],
        &[OUTSIDE, OUTSIDE, "::ffff:127.0.0.1"],
        &[OUTSIDE, "169.254.169.254"],
    ] {
        let client = servo_egress::client(&Guard::over(outside(), Scripted::new(&[answer]))).build().unwrap();
        let refused = client.get(&url).send().await.unwrap_err();
        assert!(Denied::of(&refused).is_some(), "{answer:?}: {refused:?}");
    }
    assert_eq!((outer.accepted(), inner.accepted()), (0, 0));
}

/// S7: a name is no better than where it leads, however it is written and whichever kind of record says so.
#[tokio::test]
async fn names_that_lead_inside_are_refused_however_they_are_written() {
    let (outer, inner) = servers().await;
    let port = outer.address.port();
    let addresses = [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.0.1",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
    ];
    let names =
        ["inside.test", "inside.test.", "INSIDE.Test", "127.0.0.1.nip.test", "münchen.test", "xn--mnchen-3ya.test"];
    for address in addresses {
        for answer in [&[address][..], &[OUTSIDE, address], &[address, OUTSIDE]] {
            let client = servo_egress::client(&Guard::over(outside(), Scripted::new(&[answer]))).build().unwrap();
            for name in names {
                let refused = client.get(format!("http://{name}:{port}/")).send().await.unwrap_err();
                assert!(Denied::of(&refused).is_some(), "{name} at {answer:?}: {refused:?}");
            }
        }
    }
    assert_eq!((outer.accepted(), inner.accepted()), (0, 0));
}
