//! S7: every spelling of an address inside, by the guard and by what others have taken for one.

use reqwest::{Client, Url};
use servo_egress::{Allowed, Guard};

use crate::vectors::{Trap, Vector, vectors};

/// How requests are sent: the address is looked at, then the client connects.
async fn sends(guard: &Guard, client: &Client, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    guard.check_url(&url).is_ok() && client.get(url).send().await.is_ok()
}

/// What is often written: the host as it stands in the text, by how it begins.
fn looks_harmless(url: &str) -> bool {
    const INSIDE: [&str; 11] =
        ["localhost", "127.", "0.0.0.0", "10.", "172.16.", "192.168.", "169.254.", "[::1]", "[fc", "[fd", "[fe80:"];
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else { return false };
    !INSIDE.iter().any(|prefix| rest.starts_with(prefix))
}

#[tokio::test]
async fn no_spelling_of_an_address_inside_is_connected_to() {
    let trap = Trap::set().await;
    let guard = Guard::new(Allowed::default());
    let client = servo_egress::client(&guard).build().unwrap();
    let all = vectors(trap.port);
    assert!(all.len() >= 80, "{}", all.len());
    for Vector { url, .. } in &all {
        assert!(!sends(&guard, &client, url).await, "{url:?}");
    }
    assert_eq!(trap.accepted().await, 0);
}

/// The control: the same list finds out one that compares how hosts begin. It is asked only for what leads to this machine.
#[tokio::test]
async fn a_comparison_of_texts_lets_many_of_them_in() {
    let trap = Trap::set().await;
    // Whoever makes a guarded client first has the cryptography set up for the other.
    drop(servo_egress::client(&Guard::new(Allowed::default())));
    let unguarded = Client::builder().no_proxy().build().unwrap();
    let here: Vec<String> =
        vectors(trap.port).into_iter().filter(|vector| vector.is_here).map(|vector| vector.url).collect();
    // Nobody's guard stands before this one, so every spelling must get through: one that does not would prove nothing.
    for (number, url) in here.iter().enumerate() {
        drop(unguarded.get(url).send().await);
        assert_eq!(trap.accepted().await, number + 1, "{url:?} leads elsewhere");
    }
    let let_in: Vec<&String> = here.iter().filter(|url| looks_harmless(url)).collect();
    for url in &let_in {
        drop(unguarded.get(url.as_str()).send().await);
    }
    let reached = trap.accepted().await - here.len();
    assert_eq!((here.len(), let_in.len(), reached), (87, 57, 57));
}
