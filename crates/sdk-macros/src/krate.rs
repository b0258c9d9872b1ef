//! Under which name the crate that uses the macro knows the SDK. Read from its manifest, because a macro is not told.

use std::path::PathBuf;

use proc_macro2::Span;
use syn::Ident;

const PACKAGE: &str = "servo-sdk";
/// The name in the published examples.
const PUBLISHED: [&str; 2] = ["aws_durable_execution_sdk", "aws-durable-execution-sdk"];

pub(crate) fn find() -> Ident {
    let manifest = manifest_path().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let name = name_in(&manifest).unwrap_or_else(|| PACKAGE.to_owned());
    Ident::new(&name.replace('-', "_"), Span::call_site())
}

#[expect(clippy::disallowed_methods, reason = "cargo tells a macro about its user in the environment and nowhere else")]
fn manifest_path() -> Option<PathBuf> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    Some(PathBuf::from(folder).join("Cargo.toml"))
}

/// The key of the dependency on the SDK. Enough of TOML for how dependencies are written; the attribute's argument is there
/// for everything else.
fn name_in(manifest: &str) -> Option<String> {
    let renamed = format!("package=\"{PACKAGE}\"");
    let mut section = String::new();
    let mut published = None;
    for line in manifest.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        let table = section.rsplit_once("dependencies.").map(|(_, key)| key.trim_matches('"').to_owned());
        let key = line.split(['=', '.']).next().unwrap_or_default().trim().trim_matches('"');
        let compact: String = line.chars().filter(|character| !character.is_whitespace()).collect();
        if compact.contains(&renamed) {
            return Some(table.unwrap_or_else(|| key.to_owned()));
        }
        if section.ends_with("dependencies") && PUBLISHED.contains(&key) {
            published = Some(key.to_owned());
        }
    }
    published
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn finds_the_name_in_every_usual_spelling() {
        let cases = [
            ("[dependencies]\nservo-sdk = \"1\"\n", None),
            ("[dependencies]\nsdk = { package = \"servo-sdk\", path = \"x\" }\n", Some("sdk")),
            ("[dependencies]\nsdk = {package=\"servo-sdk\"} # why\n", Some("sdk")),
            ("[dependencies.my-sdk]\npackage = \"servo-sdk\"\n", Some("my-sdk")),
            ("[dependencies]\naws_durable_execution_sdk.workspace = true\n", Some("aws_durable_execution_sdk")),
            (
                "[dev-dependencies]\naws-durable-execution-sdk = { workspace = true }\n",
                Some("aws-durable-execution-sdk"),
            ),
            ("[package]\nname = \"x\"\n", None),
        ];
        for (manifest, name) in cases {
            assert_eq!(name_in(manifest).as_deref(), name, "{manifest}");
        }
    }
}
