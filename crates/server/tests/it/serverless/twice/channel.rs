//! A channel's calls are no members of a document: each frame names an execution and has a token inside.

use reqwest::Method;
use serde_json::json;
use servo_wire::channel::{ALIVE, Frames, PATH, put_call};

use super::rows::pairs;
use super::world::World;

fn body(token: &str) -> String {
    let update = json!({"Id": "7", "Type": "STEP", "Action": "START", "Name": "mine"});
    json!({"CheckpointToken": token, "Updates": [update]}).to_string()
}

/// The status of one call over a channel of its own.
async fn call(world: &World, key: &str, arn: &str, token: &str) -> u16 {
    let mut frame = Vec::new();
    assert!(put_call(&mut frame, 1, arn, body(token).as_bytes()));
    let opened = world.api.server.request(Method::POST, PATH).bearer_auth(key).body(frame).send().await.unwrap();
    assert_eq!(opened.status(), 200);
    let mut frames = Frames::new(1 << 20);
    frames.push(&opened.bytes().await.unwrap());
    loop {
        let frame = frames.next_frame().unwrap().unwrap_or_else(|| panic!("no answer"));
        if frame.call != ALIVE {
            return frame.as_answer().unwrap().status;
        }
    }
}

pub(super) async fn what_says_two_things_is_refused_in_a_channel() {
    let world = World::new().await;
    let before = world.state().await;
    for (what, key, arn, token) in pairs(&world) {
        let status = call(&world, key, arn, token).await;
        assert!((400..500).contains(&status), "{what}: {status}");
    }
    assert_eq!(world.state().await, before);
    // The control: what belongs together is taken.
    let own = &world.executions[0];
    assert_eq!(call(&world, "acme-operator", &own.arn, &own.token).await, 200);
}
