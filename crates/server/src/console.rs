//! The web console's files: part of the binary, read from the source folder in debug builds so that an edit needs no build.
//!
//! All files are served below one address that has the digest of all of them in it. An address is never used for other
//! content, so browsers keep what they have, and a new version is loaded as a whole.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use servo_canon::Digest;

macro_rules! files {
    ($($path:literal)*) => {
        &[$(($path, include_bytes!(concat!("../../../console/", $path)))),*]
    };
}

const PAGE: &str = include_str!("../../../console/index.html");

/// Every file but the page itself; a test compares the list with the folder.
const FILES: &[(&str, &[u8])] = files! {
    "icon.svg"
    "css/base.css" "css/charts.css" "css/detail.css" "css/layout.css" "css/parts.css"
    "js/main.js"
    "js/core/api.js" "js/core/dom.js" "js/core/fingerprint.js" "js/core/format.js" "js/core/lists.js"
    "js/core/poll.js" "js/core/prefs.js" "js/core/router.js" "js/core/session.js"
    "js/pages/alerts.js" "js/pages/audit.js" "js/pages/entrypoint.js" "js/pages/entrypoints.js" "js/pages/failures.js"
    "js/pages/function.js" "js/pages/functions.js" "js/pages/invocation.js" "js/pages/invocations.js"
    "js/pages/key.js" "js/pages/overview.js" "js/pages/runs.js" "js/pages/waiting.js"
    "js/run/actions.js" "js/run/fold.js" "js/run/lane.js" "js/run/load.js" "js/run/needs.js" "js/run/panels.js"
    "js/run/rows.js" "js/run/summary.js" "js/run/trace.js" "js/run/undone.js" "js/run/waits.js" "js/run/waterfall.js"
    "js/ui/bulk.js" "js/ui/charts.js" "js/ui/dialog.js" "js/ui/form.js" "js/ui/icons.js" "js/ui/json.js"
    "js/ui/keys.js" "js/ui/live.js" "js/ui/palette.js" "js/ui/parts.js" "js/ui/sampler.js" "js/ui/shell.js"
    "js/ui/status.js" "js/ui/table.js" "js/ui/time.js" "js/ui/toast.js"
};

/// One file as it is served.
pub(crate) struct Asset {
    pub body: Cow<'static, [u8]>,
    pub content_type: &'static str,
}

/// A file by its path below the folder.
pub(crate) fn asset(path: &str) -> Option<Asset> {
    let (path, kept) = FILES.iter().find(|(name, _)| *name == path)?;
    let body = on_disk(path).map_or(Cow::Borrowed(*kept), Cow::Owned);
    let content_type = match path.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    };
    Some(Asset { body, content_type })
}

/// The page that loads everything else, with the address where it is.
pub(crate) fn page(base: &str) -> String {
    let page = on_disk("index.html").and_then(|bytes| String::from_utf8(bytes).ok());
    let page = page.map_or(Cow::Borrowed(PAGE), Cow::Owned);
    // Named up front, so that the browser does not find modules one import after the other.
    let modules = FILES.iter().filter(|(path, _)| path.starts_with("js/"));
    let preloads: String =
        modules.map(|(path, _)| format!("<link rel=\"modulepreload\" href=\"{base}/{path}\">\n")).collect();
    page.replace("<!-- modules -->\n", &preloads)
        .replace("{base}", base)
        .replace("{version}", env!("CARGO_PKG_VERSION"))
}

/// What all files are together, as the part of an address. Worked out once; in debug builds once for each state of the folder.
pub(crate) fn edition() -> String {
    static KEPT: Mutex<Option<(Vec<Stamp>, String)>> = Mutex::new(None);
    let now = stamps();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.as_ref() {
        Some((then, edition)) if *then == now => edition.clone(),
        _ => {
            let edition = digest();
            *kept = Some((now, edition.clone()));
            edition
        }
    }
}

/// Tells one state of a file from another; nothing where there are none beside the binary.
type Stamp = Option<(SystemTime, u64)>;

fn stamps() -> Vec<Stamp> {
    if !cfg!(debug_assertions) {
        return Vec::new();
    }
    let stamp = |path: &str| {
        let meta = std::fs::metadata(place(path)).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    FILES.iter().map(|(path, _)| *path).chain(["index.html"]).map(stamp).collect()
}

fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console").join(path)
}

fn digest() -> String {
    let mut all = Vec::new();
    for (path, _) in FILES {
        let body = asset(path).map(|asset| asset.body).unwrap_or_default();
        all.extend(format!("{path} {}\n", Digest::of(&body)).into_bytes());
    }
    // The page itself has no place among the files, and says which version this is.
    let page = on_disk("index.html").map_or(Cow::Borrowed(PAGE.as_bytes()), Cow::Owned);
    all.extend(format!("{} {}", env!("CARGO_PKG_VERSION"), Digest::of(&page)).into_bytes());
    let mut text = Digest::of(&all).to_string();
    text.truncate(16);
    text
}

fn on_disk(path: &str) -> Option<Vec<u8>> {
    if !cfg!(debug_assertions) {
        return None;
    }
    std::fs::read(place(path)).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn collect(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
        let mut found = BTreeSet::new();
        collect(&root, &root, &mut found);
        assert!(found.remove("index.html"));
        assert_eq!(found, FILES.iter().map(|(path, _)| (*path).to_owned()).collect());
    }

    /// What cannot be written at all cannot be written by mistake.
    #[test]
    fn no_script_builds_markup_from_text() {
        for (path, body) in FILES.iter().filter(|(path, _)| path.ends_with(".js")) {
            let source = std::str::from_utf8(body).unwrap();
            for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!source.contains(word), "{path} has {word}");
            }
        }
    }

    #[test]
    fn the_page_names_its_modules_and_nothing_outside() {
        let page = page("/console/assets/0123");
        assert!(page.contains("src=\"/console/assets/0123/js/main.js\""), "{page}");
        assert!(page.contains("modulepreload"), "{page}");
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains('{'), "{page}");
    }
}
