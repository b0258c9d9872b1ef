//! Proxies of the environment. Variables are the process's, so the requests are made by another one.

use servo_egress::Guard;

use crate::support::{Server, outside};

const TARGET: &str = "SERVO_TEST_EGRESS_TARGET";

/// S7: a proxy would connect in place of the guarded client, and past its guard.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this is how the test tells its own other process what to call")]
async fn proxies_of_the_environment_are_not_used() {
    if let Ok(target) = std::env::var(TARGET) {
        return requests(&target).await;
    }
    let target = Server::start("127.0.0.2:0".parse().unwrap()).await;
    let proxy = Server::start("127.0.0.1:0".parse().unwrap()).await;
    let mut again = tokio::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "proxy::proxies_of_the_environment_are_not_used"]);
    again.env(TARGET, format!("http://{}/", target.address)).env_remove("NO_PROXY").env_remove("no_proxy");
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(variable, format!("http://{}", proxy.address));
    }
    let output = again.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    // The control went through the proxy, the guarded request did not.
    assert_eq!((target.accepted(), proxy.accepted()), (1, 1));
}

async fn requests(target: &str) {
    let guarded = servo_egress::client(&Guard::new(outside())).build().unwrap();
    assert!(guarded.get(target).send().await.unwrap().status().is_success());
    let control = reqwest::Client::new();
    assert!(control.get(target).send().await.unwrap().status().is_success());
}
