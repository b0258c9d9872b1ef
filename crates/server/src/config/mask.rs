//! Printing a configuration that people may paste into a bug report.

use toml::{Table, Value};

use super::Config;

const MASK: &str = "***";

/// All of it, with secrets replaced.
pub(super) fn masked(config: &Config) -> Table {
    let mut table = Table::try_from(config).expect("a configuration of strings, numbers and lists serialises");
    for (section, key) in [("store", "url"), ("bus", "nats_url"), ("telemetry", "otlp_endpoint")] {
        let url = table.get_mut(section).and_then(Value::as_table_mut).and_then(|section| section.get_mut(key));
        if let Some(Value::String(url)) = url {
            *url = mask_url(url);
        }
    }
    let keys = table.get_mut("auth").and_then(|auth| auth.get_mut("keys")).and_then(Value::as_array_mut);
    for key in keys.into_iter().flatten().filter_map(Value::as_table_mut) {
        // A digest of a short key can be guessed.
        key.insert("sha256".to_owned(), Value::String(MASK.to_owned()));
    }
    let keys = table.get_mut("auth").and_then(|auth| auth.get_mut("access_keys")).and_then(Value::as_array_mut);
    for key in keys.into_iter().flatten().filter_map(Value::as_table_mut) {
        key.insert("secret".to_owned(), Value::String(MASK.to_owned()));
    }
    table
}

/// Hides the password of `scheme://user:password@host/…?password=…`.
fn mask_url(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let base = match base.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (credentials, rest))) => match credentials.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:{MASK}@{rest}"),
            // A token alone, as some servers have it.
            None if scheme == "nats" || scheme == "tls" => format!("{scheme}://{MASK}@{rest}"),
            None => base.to_owned(),
        },
        None => base.to_owned(),
    };
    let Some(query) = query else { return base };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{base}?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests {
    use super::mask_url;

    #[test]
    fn passwords_do_not_print() {
        for (url, masked) in [
            ("postgres://u:hunter2@db:5432/servo", "postgres://u:***@db:5432/servo"),
            ("postgres://u:p@ss:w@db/servo?sslmode=require", "postgres://u:***@db/servo?sslmode=require"),
            ("postgres://db/servo?user=u&password=hunter2", "postgres://db/servo?user=u&password=***"),
            ("postgres://u@db/servo", "postgres://u@db/servo"),
            ("nats://token@bus:4222", "nats://***@bus:4222"),
            ("nats://bus:4222", "nats://bus:4222"),
        ] {
            assert_eq!(mask_url(url), masked);
        }
    }
}
