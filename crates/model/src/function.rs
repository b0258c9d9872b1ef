//! Functions as they are registered and referred to.

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// The longest execution that the API knows: a year and a day.
pub const EXECUTION_SECONDS_MAX: u64 = 31_622_400;
pub const INVOCATION_SECONDS_MAX: u64 = 900;

/// What is registered under a function's name, version by version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FunctionSpec {
    pub reach: Reach,
    /// Durable functions checkpoint and may wait; plain ones get their input and answer.
    #[serde(default = "yes")]
    pub durable: bool,
    #[serde(default = "execution_seconds")]
    pub execution_timeout_seconds: u64,
    /// How long one invocation may take before it counts as lost.
    #[serde(default = "invocation_seconds")]
    pub invocation_timeout_seconds: u64,
    /// Invocations at the same time, if fewer than the node allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
}

/// How the handler is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", from = "Read")]
pub enum Reach {
    /// We call it: a URL that speaks Lambda's Invoke.
    Push { url: String },
    /// It asks us: a process that speaks Lambda's Runtime API.
    Pull,
    /// It runs in this process.
    InProcess,
    /// A sandbox of this node runs its source. Only entrypoints bring it; it is not registered as a function.
    #[serde(skip)]
    Code(Code),
}

/// A [`Reach`] as it is read. Variants without members are written with braces here: without them serde takes members that it does
/// not know.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
enum Read {
    Push { url: String },
    Pull {},
    InProcess {},
}

impl From<Read> for Reach {
    fn from(read: Read) -> Self {
        match read {
            Read::Push { url } => Self::Push { url },
            Read::Pull {} => Self::Pull,
            Read::InProcess {} => Self::InProcess,
        }
    }
}

/// Source text with what it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    pub language: String,
    pub source: std::sync::Arc<str>,
    pub memory_mb: u64,
    /// Thousandths of a core.
    pub cpu_milli: u64,
    /// How steps are tried again unless they say so themselves.
    pub retry: crate::invocation::RetryRule,
    /// Where the steps of a workflow are recorded.
    pub checkpointing: crate::invocation::Checkpointing,
}

fn yes() -> bool {
    true
}

fn execution_seconds() -> u64 {
    EXECUTION_SECONDS_MAX
}

fn invocation_seconds() -> u64 {
    60
}

impl FunctionSpec {
    pub fn new(reach: Reach) -> Self {
        Self {
            reach,
            durable: true,
            execution_timeout_seconds: execution_seconds(),
            invocation_timeout_seconds: invocation_seconds(),
            max_concurrent: None,
        }
    }

    pub fn check(&self) -> Result<(), Invalid> {
        within("executionTimeoutSeconds", self.execution_timeout_seconds, EXECUTION_SECONDS_MAX)?;
        within("invocationTimeoutSeconds", self.invocation_timeout_seconds, INVOCATION_SECONDS_MAX)?;
        if let Some(most) = self.max_concurrent {
            within("maxConcurrent", most.into(), 100_000)?;
        }
        if let Reach::Push { url } = &self.reach {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#', ':'])) {
                return Err(Invalid::new("reach/url", "is a http:// or https:// address with a host"));
            }
        }
        Ok(())
    }
}

fn within(field: &str, value: u64, max: u64) -> Result<(), Invalid> {
    if (1..=max).contains(&value) { Ok(()) } else { Err(Invalid::new(field, format!("is from 1 to {max}"))) }
}

/// A function as callers name it: `name`, `name:qualifier`, a partial ARN or a whole one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionRef {
    pub name: String,
    pub qualifier: Option<String>,
    /// Where it is, as far as the name says so.
    pub region: Option<String>,
    pub account: Option<String>,
}

impl FunctionRef {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new(
                "FunctionName",
                "is a name, name:qualifier, or an ARN of a function such as arn:aws:lambda:us-east-1:123456789012:function:name",
            )
        };
        // A whole ARN has six parts before the name, a partial one `account:function`.
        let (place, rest) = match text.split_once(":function:") {
            Some((place, rest)) => (Some(place), rest),
            None if text.starts_with("arn:") => return Err(wrong()),
            None => (None, text.strip_prefix("function:").unwrap_or(text)),
        };
        let (region, account) = match place.map(|place| place.split(':').collect::<Vec<_>>()).as_deref() {
            None => (None, None),
            Some([account]) => (None, Some(*account)),
            Some([region, account]) => (Some(*region), Some(*account)),
            Some(["arn", partition, "lambda", region, account])
                if partition.starts_with("aws") && plain(partition, 32) =>
            {
                (Some(*region), Some(*account))
            }
            Some(_) => return Err(wrong()),
        };
        if region.into_iter().chain(account).any(|part| !plain(part, 64)) {
            return Err(wrong());
        }
        let (name, qualifier) = match rest.split_once(':') {
            Some((name, qualifier)) => (name, Some(qualifier)),
            None => (rest, None),
        };
        if !plain(name, 64) || qualifier.is_some_and(|qualifier| !is_qualifier(qualifier)) {
            return Err(wrong());
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (region, account) = (owned(region), owned(account));
        Ok(Self { name: name.to_owned(), qualifier: owned(qualifier), region, account })
    }
}

fn plain(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Qualifiers that mean the newest version.
pub fn is_latest(qualifier: &str) -> bool {
    matches!(qualifier, "$LATEST" | "$LATEST.PUBLISHED")
}

/// The number of a version, the name of an alias, or the newest.
pub fn is_qualifier(text: &str) -> bool {
    is_latest(text) || plain(text, 128)
}

/// Whether the published API knows such a tenant id (`X-Amz-Tenant-Id`, `TenantId`): the caller's, not one of ours.
pub fn is_tenant_id(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/=+-@ ".contains(&byte);
    (1..=256).contains(&text.len()) && text.bytes().all(known)
}

/// Why a function is not ours, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    Account,
    Region,
}

/// Where ARNs say that we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Place {
    pub region: String,
    pub account: String,
}

impl Default for Place {
    fn default() -> Self {
        Self { region: "us-east-1".to_owned(), account: "000000000000".to_owned() }
    }
}

impl Place {
    /// Whether a function's name says that it is somewhere else. A name that says nothing is ours.
    pub fn foreign(&self, function: &FunctionRef) -> Option<Foreign> {
        if function.account.as_ref().is_some_and(|account| *account != self.account) {
            return Some(Foreign::Account);
        }
        function.region.as_ref().is_some_and(|region| *region != self.region).then_some(Foreign::Region)
    }

    pub fn function_arn(&self, name: &str, version: &str) -> String {
        format!("arn:aws:lambda:{}:{}:function:{name}:{version}", self.region, self.account)
    }

    /// The last part is also the id of the EXECUTION operation, by which SDKs look it up.
    pub fn execution_arn(&self, function: &str, version: &str, name: &str, run_id: &str) -> String {
        format!("{}/durable-execution/{name}/{run_id}", self.function_arn(function, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_in_four_ways() {
        let parsed = |text: &str| FunctionRef::parse(text).map(|f| (f.name, f.qualifier));
        let plain = Ok(("f".to_owned(), None));
        let latest = Ok(("f".to_owned(), Some("$LATEST".to_owned())));
        assert_eq!(parsed("f"), plain);
        assert_eq!(parsed("f:$LATEST"), latest);
        assert_eq!(parsed("123456789012:function:f"), plain);
        assert_eq!(parsed("arn:aws:lambda:us-east-1:123456789012:function:f:$LATEST"), latest);
        assert_eq!(parsed("function:f"), plain);
        assert_eq!(parsed("f:$LATEST.PUBLISHED"), Ok(("f".to_owned(), Some("$LATEST.PUBLISHED".to_owned()))));
        for wrong in [
            "",
            "f g",
            "arn:aws:s3:::x",
            "f:",
            ":1",
            "a/b",
            "f:$LATESTfoo",
            "f:1:2",
            "garbage%%:function:f",
            ":function:f",
            "arn:aws:lambda:us-east-1:function:f",
            "arn:aws:lambda:us-east-1::function:f",
            "arn:aws:sqs:us-east-1:123456789012:function:f",
            "arn:gcp:lambda:us-east-1:123456789012:function:f",
            "x:arn:aws:lambda:us-east-1:123456789012:function:f",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_says_where_its_function_is() {
        let place = Place::default();
        let foreign = |text: &str| place.foreign(&FunctionRef::parse(text).unwrap());
        let own = place.function_arn("f", "1");
        for ours in
            ["f", "f:1", "function:f", "000000000000:function:f", "us-east-1:000000000000:function:f", own.as_str()]
        {
            assert_eq!(foreign(ours), None, "{ours}");
        }
        assert_eq!(foreign("999999999999:function:f"), Some(Foreign::Account));
        assert_eq!(foreign("arn:aws:lambda:eu-west-1:999999999999:function:f"), Some(Foreign::Account));
        assert_eq!(foreign("arn:aws:lambda:eu-west-1:000000000000:function:f:1"), Some(Foreign::Region));
    }

    #[test]
    fn tenant_ids_are_the_published_ones() {
        let long = "x".repeat(256);
        for good in ["a", "a.b_c:d/e=f+g-h@i j", long.as_str()] {
            assert!(is_tenant_id(good), "{good}");
        }
        let longer = "x".repeat(257);
        for wrong in ["", "a!b#", "tab\there", "line\n", "ä", longer.as_str()] {
            assert!(!is_tenant_id(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_registration_is_checked() {
        let spec: FunctionSpec = serde_json::from_str(r#"{"reach":{"kind":"pull"}}"#).unwrap();
        assert!(spec.durable && spec.check().is_ok());
        for kind in ["pull", "inProcess"] {
            let text = format!(r#"{{"reach":{{"kind":"{kind}","url":"http://x"}}}}"#);
            assert!(serde_json::from_str::<FunctionSpec>(&text).is_err(), "{text}");
        }
        let wrong = FunctionSpec { execution_timeout_seconds: 0, ..spec.clone() };
        assert_eq!(wrong.check().unwrap_err().field, "executionTimeoutSeconds");
        for url in ["http://", "https:///path", "http://?q", "http://:80"] {
            let wrong = FunctionSpec { reach: Reach::Push { url: url.to_owned() }, ..spec.clone() };
            assert_eq!(wrong.check().unwrap_err().field, "reach/url", "{url}");
        }
        let wrong = FunctionSpec { reach: Reach::Push { url: "ftp://x".to_owned() }, ..spec };
        assert_eq!(wrong.check().unwrap_err().field, "reach/url");
    }
}
