//! Profiles from outside: the file, the precedence, and that a key stays with its server.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::Value;

use super::said;
use crate::support::process::{Servo, binary};

#[test]
fn a_profile_names_a_server_and_whoami_says_where_each_setting_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let servo = Servo::dev(&folder.path().join("data"), &[]).expect("it starts");
    let run = |words: &[&str], variables: &[(&str, &str)]| -> Output {
        let mut command = binary();
        command.env("XDG_CONFIG_HOME", folder.path()).envs(variables.iter().copied()).args(words);
        command.output().expect("servo runs")
    };
    let origin = |words: &[&str], variables: &[(&str, &str)], setting: &str| -> Value {
        let output = run(&[words, &["whoami", "-o", "json"]].concat(), variables);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
        assert_eq!(document["tenantId"], "default", "the server's own words stay: {document}");
        assert!(!document.to_string().contains("s3cret"), "{document}");
        document["settings"][setting]["from"].clone()
    };

    let added = run(&["profiles", "add", "here", "--server", &servo.url], &[("SERVO_TOKEN", "s3cret")]);
    assert!(added.status.success(), "{}", said(&added));
    let added = run(&["profiles", "add", "gone", "--server", "http://127.0.0.1:1"], &[]);
    assert!(added.status.success(), "{}", said(&added));
    let again = run(&["profiles", "add", "here", "--server", "http://127.0.0.1:1"], &[]);
    assert_eq!(again.status.code(), Some(5), "{}", said(&again));
    let file = folder.path().join("servo").join("config.toml");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let listed = run(&["profiles", "list"], &[]);
    assert!(said(&listed).contains("in use") && !said(&listed).contains("s3cret"), "{}", said(&listed));

    // Nothing said: the first profile. Then a profile, a variable and an option, each over what is before it.
    assert_eq!(origin(&[], &[], "server"), "profile here");
    assert_eq!(origin(&[], &[], "token"), "profile here");
    assert!(run(&["profiles", "use", "gone"], &[]).status.success());
    assert_eq!(run(&["whoami"], &[]).status.code(), Some(9), "nobody is there");
    assert_eq!(origin(&[], &[("SERVO_PROFILE", "here")], "profile"), "SERVO_PROFILE");
    assert_eq!(origin(&["--profile", "here"], &[("SERVO_PROFILE", "gone")], "profile"), "--profile");
    assert_eq!(origin(&[], &[("SERVO_SERVER", &servo.url)], "server"), "SERVO_SERVER");
    assert_eq!(origin(&["--server", &servo.url], &[("SERVO_SERVER", "http://127.0.0.1:1")], "server"), "--server");
    assert_eq!(origin(&["--server", &servo.url], &[], "token"), Value::Null);

    assert!(run(&["profiles", "remove", "gone"], &[]).status.success());
    assert_eq!(run(&["profiles", "use", "gone"], &[]).status.code(), Some(4));
    assert_eq!(run(&["whoami", "--profile", "gone"], &[]).status.code(), Some(4));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("ours");
    let warned = run(&["runs", "list", "--profile", "here"], &[]);
    assert!(said(&warned).contains("chmod 600"), "{}", said(&warned));
}

#[test]
fn a_key_is_read_from_stdin_and_colour_is_off_on_demand() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, "s3cret\n").expect("a file");
    let mut command = binary();
    command.env("XDG_CONFIG_HOME", folder.path()).stdin(std::fs::File::open(&key).expect("the file"));
    command.args(["profiles", "add", "a", "--server", "http://127.0.0.1:1", "--token", "-"]);
    let added = command.output().expect("servo runs");
    assert!(added.status.success(), "{}", said(&added));
    let stored = std::fs::read_to_string(folder.path().join("servo").join("config.toml")).expect("a file");
    assert!(stored.contains("token = \"s3cret\"\n"), "{stored}");

    let listed = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = binary();
        command.env("XDG_CONFIG_HOME", folder.path()).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(variables.iter().copied()).args(["profiles", "list"]).args(words).output();
        String::from_utf8_lossy(&output.expect("servo runs").stdout).contains('\u{1b}')
    };
    assert!(!listed(&[], &[]), "not on a terminal");
    assert!(listed(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!listed(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]));
    assert!(listed(&[("NO_COLOR", "1")], &["--color", "always"]));
}
