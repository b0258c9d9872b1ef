//! Requests that a program asks for. Secrets are put in here and taken out again: a child never sees one.

use std::time::Duration;

use servo_model::TenantId;

use crate::egress::Egress;
use crate::protocol::{HttpHead, Part, ToChild};
use crate::settings::Parts;

/// Makes a request for the program, and words the answer for the child.
pub(super) async fn request(
    (parts, egress): (&Parts, &Egress),
    tenant: &TenantId,
    head: HttpHead,
    body: Vec<u8>,
) -> (ToChild, Vec<u8>) {
    let mut headers = Vec::with_capacity(head.headers.len());
    let mut secrets = Vec::new();
    for (name, value_parts) in head.headers {
        let mut value = String::new();
        let mut is_secret = false;
        for part in value_parts {
            match part {
                Part::Text(text) => value.push_str(&text),
                Part::Secret(secret) => {
                    is_secret = true;
                    match parts.secrets.secret(tenant, &secret).await {
                        Ok(secret) => {
                            value.push_str(&secret);
                            secrets.push(secret);
                        }
                        Err(message) => return (ToChild::HttpFailed { message, retryable: false }, Vec::new()),
                    }
                }
            }
        }
        headers.push((name, value, is_secret));
    }
    let timeout = head.timeout_ms.map(Duration::from_millis);
    match egress.request(&head.method, &head.url, headers, body, timeout).await {
        Ok(response) => {
            let hidden = |(name, value)| (name, hide(value, &secrets));
            let headers = response.headers.into_iter().map(hidden).collect();
            let body = String::from_utf8_lossy(&response.body).into_owned();
            (ToChild::Http { status: response.status, headers }, hide(body, &secrets).into_bytes())
        }
        Err(refused) => {
            let (message, retryable) = (refused.message, refused.retryable);
            (ToChild::HttpFailed { message, retryable }, Vec::new())
        }
    }
}

/// Servers repeat what they were sent, in errors above all. The program and the record see the name of a secret at most.
fn hide(text: String, secrets: &[String]) -> String {
    let told = secrets.iter().filter(|secret| !secret.is_empty() && text.contains(secret.as_str()));
    let told: Vec<&String> = told.collect();
    told.into_iter().fold(text, |text, secret| text.replace(secret.as_str(), "<secret>"))
}
