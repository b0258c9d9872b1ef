//! The file's table with variables put over it.

use toml::{Table, Value};

use super::{Config, ConfigError};

const PREFIX: &str = "SERVO__";

/// The merged table, not yet checked against the configuration's types.
pub(super) fn table(text: &str, variables: impl IntoIterator<Item = (String, String)>) -> Result<Table, ConfigError> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        // Its own words would quote the line, which may hold a password.
        let place = error.span().map_or(0, |span| span.start).min(text.len());
        let line = 1 + text.as_bytes()[..place].iter().filter(|byte| **byte == b'\n').count();
        ConfigError::new("", format!("line {line}: {}", error.message().trim()))
    })?;
    let known = Table::try_from(Config::default()).unwrap_or_default();
    for (name, value) in variables {
        let Some(path) = name.strip_prefix(PREFIX) else { continue };
        let parts: Vec<&str> = path.split("__").collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(ConfigError::new(name, "is not of the form SERVO__SECTION__KEY"));
        }
        put(&mut table, Some(&known), &parts, value).map_err(|reason| ConfigError::new(name, reason))?;
    }
    // The kind may be left out where it is the usual one.
    if let Some(Value::Table(store)) = table.get_mut("store")
        && !store.contains_key("kind")
    {
        store.insert("kind".to_owned(), Value::String("sqlite".to_owned()));
    }
    Ok(table)
}

fn put(table: &mut Table, known: Option<&Table>, parts: &[&str], value: String) -> Result<(), &'static str> {
    let [first, rest @ ..] = parts else { return Ok(()) };
    let key = spelled(first, table, known);
    if rest.is_empty() {
        table.insert(key, read(value));
        return Ok(());
    }
    let below = known.and_then(|known| known.get(&key)).and_then(Value::as_table);
    match table.entry(key).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => put(inner, below, rest, value),
        _ => Err("names a key inside of something that is no section"),
    }
}

/// Variables are written in capitals; keys are written as the configuration has them.
fn spelled(part: &str, table: &Table, known: Option<&Table>) -> String {
    let keys = known.into_iter().flat_map(Table::keys).chain(table.keys());
    let same = keys.into_iter().find(|key| key.eq_ignore_ascii_case(part));
    same.cloned().unwrap_or_else(|| part.to_ascii_lowercase())
}

/// Numbers, booleans, lists, tables and quoted strings as TOML has them; everything else is a string.
fn read(value: String) -> Value {
    let typed = value.parse::<i64>().is_ok()
        || matches!(value.as_str(), "true" | "false")
        || value.starts_with(['[', '{', '"', '\'']);
    let parsed = if typed { format!("value = {value}").parse::<Table>().ok() } else { None };
    parsed.and_then(|mut table| table.remove("value")).unwrap_or(Value::String(value))
}
