//! Reads just enough of a `Cargo.toml` for the layer check: sections, keys and raw values.
//!
//! `cargo metadata` shows dependencies after inheritance, so it cannot tell what a member itself declared. This is no
//! TOML parser: it knows the subset that our manifests use (no multi-line strings, no dotted keys with quotes).

/// One `key = value` with the section it stands in; the value is raw text on one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) section: String,
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) entries: Vec<Entry>,
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let mut section = String::new();
        let mut open_brackets = 0;
        for (index, raw) in text.lines().enumerate() {
            let line = without_comment(raw).trim();
            if line.is_empty() {
                continue;
            }
            if open_brackets > 0 {
                let entry = entries.last_mut().expect("a bracket is only opened by an entry");
                entry.value.push(' ');
                entry.value.push_str(line);
                open_brackets += bracket_balance(line);
            } else if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).trim().to_owned();
            } else if let Some((key, value)) = line.split_once('=') {
                open_brackets = bracket_balance(value);
                let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                entries.push(Entry { section: section.clone(), key, value, line: index + 1 });
            }
        }
        Self { entries }
    }

    pub(crate) fn inherits_lints(&self) -> bool {
        self.entries.iter().any(|entry| {
            let place = (entry.section.as_str(), entry.key.as_str());
            entry.value == "true" && (place == ("lints", "workspace") || place == ("", "lints.workspace"))
        })
    }

    /// Every dependency declaration that says more than it may: versions, sources and features belong in the root
    /// manifest. `is_own` tells our crates, whose features a member may choose.
    pub(crate) fn misplaced_dependencies(&self, is_own: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for entry in &self.entries {
            let Some(rest) = dependency_table(&entry.section) else { continue };
            let (name, attributes) = match rest {
                // [dependencies.name] with one attribute per line
                Some(name) => (name, vec![(entry.key.as_str(), entry.value.as_str())]),
                None => match entry.key.split_once('.') {
                    // name.attribute = value
                    Some((name, attribute)) => (name, vec![(attribute, entry.value.as_str())]),
                    // name = "1.0" or name = { … }
                    None => (entry.key.as_str(), attributes(&entry.value)),
                },
            };
            for (attribute, _) in attributes {
                let allowed = match attribute {
                    "workspace" | "optional" => true,
                    "features" | "default-features" => is_own(name),
                    _ => false,
                };
                if !allowed {
                    found.push((entry.line, format!("{name}: `{attribute}` belongs in the root manifest")));
                }
            }
        }
        found
    }
}

/// `Some(None)` for `[dependencies]` and its kin, `Some(Some(name))` for `[dependencies.name]`.
fn dependency_table(section: &str) -> Option<Option<&str>> {
    for kind in ["dev-dependencies", "build-dependencies", "dependencies"] {
        let tail = match section.strip_prefix(kind) {
            Some(tail) => tail,
            None if section.starts_with("target.") => match section.rsplit_once(&format!(".{kind}")) {
                Some((_, tail)) => tail,
                None => continue,
            },
            None => continue,
        };
        return if tail.is_empty() { Some(None) } else { tail.strip_prefix('.').map(Some) };
    }
    None
}

/// The top-level attributes of an inline table; a bare string is a version.
fn attributes(value: &str) -> Vec<(&str, &str)> {
    let Some(inside) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return vec![("version", value)];
    };
    let mut found = Vec::new();
    let (mut depth, mut quoted, mut from) = (0, false, 0);
    for (at, character) in inside.char_indices().chain([(inside.len(), ',')]) {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                if let Some((key, value)) = inside[from..at].split_once('=') {
                    found.push((key.trim(), value.trim()));
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    found
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

fn bracket_balance(text: &str) -> i32 {
    let mut quoted = false;
    let mut balance = 0;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => balance += 1,
            ']' | '}' if !quoted => balance -= 1,
            _ => {}
        }
    }
    balance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misplaced(text: &str) -> Vec<String> {
        let found = Manifest::parse(text).misplaced_dependencies(|name| name.starts_with("servo-"));
        found.into_iter().map(|(line, message)| format!("{line}: {message}")).collect()
    }

    #[test]
    fn inherited_dependencies_are_in_place() {
        let text = r#"
[dependencies]
serde.workspace = true
uuid = { workspace = true, optional = true }
[dev-dependencies]
servo-store = { workspace = true, features = ["testkit"] }
[features]
extra = ["dep:uuid"]
"#;
        assert_eq!(misplaced(text), [""; 0]);
    }

    #[test]
    fn versions_and_features_outside_the_root_are_found_in_every_spelling() {
        let text = r#"
[dependencies]
serde = "1" # a comment with = and {
tokio = { workspace = true, features = [
    "rt",
] }
[target.'cfg(unix)'.dependencies]
libc = { version = "0.2", path = "x" }
[build-dependencies.cc]
version = "1"
[dev-dependencies]
rand.features = ["std"]
"#;
        let expected = [
            "3: serde: `version` belongs in the root manifest",
            "4: tokio: `features` belongs in the root manifest",
            "8: libc: `version` belongs in the root manifest",
            "8: libc: `path` belongs in the root manifest",
            "10: cc: `version` belongs in the root manifest",
            "12: rand: `features` belongs in the root manifest",
        ];
        assert_eq!(misplaced(text), expected);
    }

    #[test]
    fn lints_are_inherited_in_either_spelling() {
        assert!(Manifest::parse("[lints]\nworkspace = true\n").inherits_lints());
        assert!(Manifest::parse("lints.workspace = true\n[package]\n").inherits_lints());
        assert!(!Manifest::parse("[lints.rust]\nunsafe_code = \"deny\"\n").inherits_lints());
        assert!(!Manifest::parse("# [lints]\n# workspace = true\n").inherits_lints());
    }
}
