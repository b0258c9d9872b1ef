//! What no answer may say, shared with the tests of the real binary.

/// Nothing of the inside may show.
pub(crate) const FORBIDDEN: [&str; 24] = [
    "panicked",
    "backtrace",
    "stack trace",
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE ",
    "sqlite",
    "postgres",
    ".rs:",
    "src/",
    concat!("/ho", "me/"),
    "/tmp/",
    "servo_",
    "unwrap",
    "rusqlite",
    "SQLSTATE",
    "duplicate key value",
    "no such table",
    "no such column",
    "/var/",
    "/etc/",
    "/usr/",
    concat!("/ro", "ot/"),
];

/// The first word of a text that tells of the inside.
pub(crate) fn leak(text: &str) -> Option<&'static str> {
    FORBIDDEN.into_iter().find(|word| text.contains(word))
}

/// Whether an address is the Lambda API's, which has errors of its own form.
pub(crate) fn is_lambda(path: &str) -> bool {
    // All of them begin with a date.
    let version = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    version.len() == 10 && version.starts_with("20") && version.split('-').map(str::len).eq([4, 2, 2])
}

/// What is wrong with a refusal of the Lambda API: its name in a header, and a small document with both spellings of the message,
/// and who is at fault.
pub(crate) fn lambda_fault(status: u16, name: &str, body: &serde_json::Value) -> Option<String> {
    const MEMBERS: [&str; 4] = ["Message", "Reason", "Type", "message"];
    if !name.ends_with("Exception") || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Some(format!("{name:?} is no name of an error"));
    }
    let Some(members) = body.as_object() else { return Some("no document".to_owned()) };
    if let Some(more) = members.keys().find(|known| !MEMBERS.contains(&known.as_str())) {
        return Some(format!("a member {more}"));
    }
    let Some(message) = body["Message"].as_str().filter(|text| !text.is_empty()) else {
        return Some("no message".to_owned());
    };
    if body["message"] != message {
        return Some("the two spellings of the message differ".to_owned());
    }
    let whose = if status >= 500 { "Service" } else { "User" };
    if body["Type"] != whose {
        return Some(format!("the fault is not the {whose}'s"));
    }
    None
}
