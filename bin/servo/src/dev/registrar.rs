//! Registering what a file defines: a new version if anything changed, and a diff that says what. Runs keep the version that they
//! began with; the one before stays callable and is marked deprecated.

use std::sync::Arc;

use serde_json::Value;
use servo_entrypoint::{
    DefinitionStatus as S, Entrypoint, EntrypointListFilter, EntrypointStatusAction as A, PageQuery, RestRuntime,
    RuntimeErrorPayload, ValidationError,
};
use servo_model::SecurityContext;
use servo_runtime::Engine;

use super::definition::{self, Definition};
use super::diff;
use super::line::short_address;
use super::printer::{Colour, Printer, clean};

pub(super) struct Registrar {
    pub(super) engine: Engine,
    pub(super) serverless: Arc<dyn RestRuntime>,
    pub(super) printer: Printer,
}

/// What became of a file.
pub(super) enum Outcome {
    /// The address that now stands for it, and lines that say what happened.
    Done { address: String, lines: Vec<String> },
    /// What is wrong, one line for each fault.
    Refused(Vec<String>),
}

impl Registrar {
    fn ctx(&self) -> SecurityContext {
        let now = self.engine.clock().now();
        SecurityContext::development(self.engine.ids().event_id(now).to_string())
    }

    pub(super) async fn register(&self, file: &str, definition: &Definition) -> Outcome {
        match self.try_register(file, definition).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Refused(faults(file, &error)),
        }
    }

    async fn try_register(&self, file: &str, definition: &Definition) -> Result<Outcome, RuntimeErrorPayload> {
        let ctx = self.ctx();
        let latest = self.latest(&ctx, &definition.prefix()).await?;
        let next = latest.as_ref().map_or(1, |(version, _)| version + 1);
        let document = definition.document(next);
        let candidate = self.serverless.validate_document(&ctx, document.clone()).await?;
        let act =
            async |address: &String, action| self.serverless.update_entrypoint_status(&ctx, address, action).await;
        let mut lines = Vec::new();
        if let Some((_, old)) = &latest
            && content(old) == content(&candidate)
        {
            let (again, word) = match old.definition.status {
                S::Active => (None, "unchanged"),
                S::Draft => (Some(A::Activate), "active"),
                S::Disabled => (Some(A::Enable), "enabled again"),
                S::Deprecated | S::Archived => (None, ""),
            };
            if let Some(action) = again {
                act(&old.entrypoint_id, action).await?;
            }
            if !word.is_empty() {
                lines.push(self.said(file, word, &old.entrypoint_id, Colour::Dim));
                return Ok(Outcome::Done { address: old.entrypoint_id.clone(), lines });
            }
        }
        let registered = self.serverless.register_document(&ctx, document).await?;
        let address = registered.entrypoint_id;
        act(&address, A::Activate).await?;
        lines.push(self.said(file, "registered", &address, Colour::Green));
        lines.push(self.printer.paint(Colour::Dim, &format!("  {}", definition.call(next))));
        if let Some((_, old)) = &latest {
            if old.definition.status == S::Active {
                act(&old.entrypoint_id, A::Deprecate).await?;
            }
            lines.extend(self.changes(old, &candidate, definition));
        }
        Ok(Outcome::Done { address, lines })
    }

    /// Takes a file's entrypoint out of use.
    pub(super) async fn withdraw(&self, file: &str, address: &str) -> String {
        let address = address.to_owned();
        match self.serverless.update_entrypoint_status(&self.ctx(), &address, A::Disable).await {
            Ok(_) => {
                let line = self.said(file, "no longer defines it: disabled", &address, Colour::Yellow);
                format!("{line}; runs under way go on")
            }
            Err(error) => self.printer.paint(Colour::Red, &format!("{file}: {}", clean(&error.message))),
        }
    }

    /// What earlier starts registered from a folder, and is still in use.
    pub(super) async fn tagged(&self) -> Result<Vec<String>, RuntimeErrorPayload> {
        let page = PageQuery { limit: Some(servo_entrypoint::LIMIT_MAX), ..PageQuery::default() };
        let tags = vec![definition::TAG.to_owned()];
        let filter = EntrypointListFilter { status: Some(S::Active), tags, page, ..EntrypointListFilter::default() };
        let found = self.serverless.page_entrypoints(&self.ctx(), filter).await?;
        Ok(found.items.into_iter().map(|entrypoint| entrypoint.entrypoint_id).collect())
    }

    /// The newest version, archived ones included: their addresses are taken, too.
    async fn latest(
        &self,
        ctx: &SecurityContext,
        prefix: &str,
    ) -> Result<Option<(u32, Entrypoint)>, RuntimeErrorPayload> {
        let mut latest: Option<(u32, Entrypoint)> = None;
        for status in [None, Some(S::Archived)] {
            let page = PageQuery { limit: Some(servo_entrypoint::LIMIT_MAX), ..PageQuery::default() };
            let filter = EntrypointListFilter {
                entrypoint_id_prefix: Some(format!("{prefix}*")),
                status,
                page,
                ..EntrypointListFilter::default()
            };
            for entrypoint in self.serverless.page_entrypoints(ctx, filter).await?.items {
                let version = entrypoint.entrypoint_id.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('~'));
                let Some(version) = version.and_then(|text| text.parse().ok()) else { continue };
                if latest.as_ref().is_none_or(|(known, _)| *known < version) {
                    latest = Some((version, entrypoint));
                }
            }
        }
        Ok(latest)
    }

    fn changes(&self, old: &Entrypoint, new: &Entrypoint, definition: &Definition) -> Vec<String> {
        let names = (short_address(&old.entrypoint_id), short_address(&new.entrypoint_id));
        let before = source(old).unwrap_or_default();
        let mut lines = diff::unified(names.0, names.1, before, definition.source());
        let rest =
            |entrypoint: &Entrypoint| serde_json::to_string_pretty(&without_source(entrypoint)).unwrap_or_default();
        let described = (format!("{} (definition)", names.0), format!("{} (definition)", names.1));
        lines.extend(diff::unified(&described.0, &described.1, &rest(old), &rest(new)));
        let paint = |line: String| match line.as_bytes().first() {
            Some(b'+') => self.printer.paint(Colour::Green, &line),
            Some(b'-') => self.printer.paint(Colour::Red, &line),
            Some(b'@') => self.printer.paint(Colour::Blue, &line),
            _ => line,
        };
        lines.into_iter().map(|line| paint(visible(&line))).collect()
    }

    fn said(&self, file: &str, what: &str, address: &str, colour: Colour) -> String {
        format!("{file}  {}  {}", self.printer.paint(colour, what), short_address(address))
    }
}

/// Control characters of a source must not drive the terminal; indentation stays.
fn visible(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn source(entrypoint: &Entrypoint) -> Option<&str> {
    match &entrypoint.definition.implementation.payload {
        servo_entrypoint::ImplementationPayload::Code { source, .. } => Some(source),
        _ => None,
    }
}

/// What a version is apart from its number and its fate.
fn content(entrypoint: &Entrypoint) -> Value {
    let mut value = serde_json::to_value(entrypoint).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        for field in ["id", "entrypoint_id", "version", "status", "created_at", "updated_at"] {
            fields.remove(field);
        }
    }
    value
}

fn without_source(entrypoint: &Entrypoint) -> Value {
    let mut value = content(entrypoint);
    if let Some(implementation) = value.get_mut("implementation").and_then(Value::as_object_mut) {
        implementation.remove("code");
    }
    value
}

/// Faults as compilers write them, so that editors find the place.
fn faults(file: &str, error: &RuntimeErrorPayload) -> Vec<String> {
    let Some(invalid) = ValidationError::of(error) else { return vec![format!("{file}: {}", clean(&error.message))] };
    let fault = |issue: &servo_entrypoint::ValidationIssue| {
        let place = match (issue.location.line, issue.location.column) {
            (Some(line), column) => format!("{file}:{line}:{}", column.unwrap_or(1)),
            (None, _) => format!("{}: {}", definition::beside(file), issue.location.path),
        };
        let hint = issue.suggestion.as_ref().map(|hint| format!(" ({})", clean(hint))).unwrap_or_default();
        format!("{place}: {}{hint}", clean(&issue.message))
    };
    invalid.issues.iter().map(fault).collect()
}
