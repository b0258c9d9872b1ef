//! Plans by URI: read only from places that the operator has listed. A URI that a caller chose reaches nothing else:
//! files do not escape their folder, redirects are not followed, proxies are not asked, and size and time are limited.

mod file;
mod web;

use std::path::PathBuf;

use reqwest::Url;
use serde_json::value::RawValue;
use servo_model::limits::JSON_DEPTH_MAX;
use servo_model::{Invalid, codes};

use crate::body::check_depth;
use crate::error::{Answer, ApiError};

/// The allow-list.
#[derive(Debug, Default)]
pub struct PlanSources {
    folders: Vec<PathBuf>,
    web: Vec<Url>,
    /// Only there if something on the web is listed: trusted roots take memory.
    client: Option<reqwest::Client>,
    bytes_max: usize,
}

impl PlanSources {
    /// Reads the list: `file:///folder/`, `https://host/prefix/`, `http://…`.
    pub fn new(prefixes: &[String], bytes_max: usize) -> Result<Self, Invalid> {
        let mut sources = Self { bytes_max, ..Self::default() };
        for (index, prefix) in prefixes.iter().enumerate() {
            let refused = |reason: &str| Invalid::new(format!("plan_sources.{index}"), format!("`{prefix}` {reason}"));
            if prefix.starts_with("file:") {
                let folder = file::path_of(prefix).ok_or_else(|| refused("is no file:///folder/"))?;
                sources.folders.push(folder);
                continue;
            }
            let url = Url::parse(prefix).map_err(|_| refused("is no URI prefix"))?;
            if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || !web::is_plain(&url) {
                return Err(refused("is neither file:///folder/ nor http(s)://host/prefix/"));
            }
            sources.web.push(url);
        }
        if !sources.web.is_empty() {
            let client = web::client().map_err(|error| Invalid::new("plan_sources", error.to_string()))?;
            sources.client = Some(client);
        }
        Ok(sources)
    }

    /// The plan at a URI. Its digest is checked by whoever starts the run.
    pub(crate) async fn fetch(&self, uri: &str) -> Answer<Box<RawValue>> {
        let bytes = if uri.starts_with("file:") {
            file::read(&self.folders, uri, self.bytes_max).await?
        } else {
            web::read(self.client.as_ref(), &self.web, uri, self.bytes_max).await?
        };
        let text = String::from_utf8(bytes).map_err(|_| Invalid::new("plan", "is not UTF-8"))?;
        check_depth(&text, JSON_DEPTH_MAX)?;
        RawValue::from_string(text).map_err(|error| Invalid::new("plan", error.to_string()).into())
    }
}

/// The same answer whether a place is not listed or is not there to be listed.
fn not_allowed() -> ApiError {
    let mut error = ApiError::new(codes::PLAN_SOURCE_NOT_ALLOWED);
    let invalid = Invalid::new("planRef/uri", "is not below one of the server's plan_sources");
    error.problem = Box::new(error.problem.field(&invalid));
    error
}

fn unavailable(cause: impl std::fmt::Display) -> ApiError {
    ApiError::new(codes::PLAN_SOURCE_UNAVAILABLE).cause(cause)
}

fn too_large(bytes_max: usize) -> ApiError {
    ApiError::new(codes::LIMIT_EXCEEDED).detail(format!("a plan has at most {bytes_max} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(answer: Answer<T>) -> String {
        answer.err().map_or_else(|| "ok".to_owned(), |error| error.problem.code)
    }

    #[test]
    fn prefixes_that_mean_nothing_are_refused() {
        for bad in
            ["", "plans/", "file:relative", "file://host/x", "ftp://h/", "https://u:p@h/", "https://h/?q", "data:,x"]
        {
            let error = PlanSources::new(&["file:///ok/".to_owned(), bad.to_owned()], 1).unwrap_err();
            assert_eq!(error.field, "plan_sources.1", "{bad}");
        }
    }

    #[tokio::test]
    async fn files_do_not_escape_their_folder() {
        let root = tempfile::tempdir().unwrap();
        let (plans, other) = (root.path().join("plans"), root.path().join("plans-other"));
        for folder in [&plans, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("p.json"), "{}").unwrap();
        }
        std::fs::write(plans.join("big.json"), " ".repeat(100)).unwrap();
        std::fs::write(plans.join("bad.json"), "{").unwrap();
        std::os::unix::fs::symlink(other.join("p.json"), plans.join("link.json")).unwrap();
        let sources = PlanSources::new(&[format!("file://{}/", plans.display())], 64).unwrap();
        let (plans, other) = (plans.display(), other.display());
        for (uri, expected) in [
            (format!("file://{plans}/p.json"), "ok"),
            (format!("file://{plans}/./p.json"), "ok"),
            (format!("file://{plans}/bad.json"), "SCHEMA_VALIDATION_FAILED"),
            (format!("file://{plans}/big.json"), "LIMIT_EXCEEDED"),
            (format!("file://{plans}/missing.json"), "PLAN_SOURCE_NOT_ALLOWED"),
            (format!("file://{plans}/../plans-other/p.json"), "PLAN_SOURCE_NOT_ALLOWED"),
            (format!("file://{plans}/%2e%2e/plans-other/p.json"), "PLAN_SOURCE_NOT_ALLOWED"),
            (format!("file://{other}/p.json"), "PLAN_SOURCE_NOT_ALLOWED"),
            (format!("file://{plans}/link.json"), "PLAN_SOURCE_NOT_ALLOWED"),
            (format!("file://{plans}/"), "PLAN_SOURCE_NOT_ALLOWED"),
            (format!("file://localhost{plans}/p.json"), "PLAN_SOURCE_NOT_ALLOWED"),
            ("file:///etc/passwd".to_owned(), "PLAN_SOURCE_NOT_ALLOWED"),
            ("file:///dev/zero".to_owned(), "PLAN_SOURCE_NOT_ALLOWED"),
            ("https://example.com/p.json".to_owned(), "PLAN_SOURCE_NOT_ALLOWED"),
            ("nonsense".to_owned(), "PLAN_SOURCE_NOT_ALLOWED"),
        ] {
            assert_eq!(code(sources.fetch(&uri).await), expected, "{uri}");
        }
    }
}
