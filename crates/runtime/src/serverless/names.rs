//! What a caller means by a name: an entrypoint among those that it sees, at the time of the call.
//!
//! An address is looked up as it stands. A short name means the highest version that is active, for every call and command; what
//! stands beside it and could have been meant is said in a warning. Names of what the caller does not see are not proposed.

use std::cmp::Reverse;
use std::sync::Arc;

use servo_entrypoint::names::{NameVersion, Own, ShortName, near};
use servo_entrypoint::{DefinitionStatus as S, EntrypointStatusAction, RuntimeErrorPayload, errors, status};
use servo_model::invocation::EntrypointKind;
use servo_model::{SecurityContext, limits::PLANS_PER_QUERY_MAX};
use servo_store::entrypoints::{EntrypointQuery, EntrypointRow};

use super::catalog::ENTRYPOINTS_READ;
use super::{Answer, Serverless, internal, no_entrypoint, store_error};
use crate::entrypoints::Loaded;

/// Entrypoints that are looked at for what may have been meant. A refusal must not cost more than an answer.
const LOOKED_AT_MAX: usize = 400;
/// Letters of an id, behind its prefix, that may stand for all of it.
const ID_LETTERS_MIN: usize = 4;
const ID_PREFIX: &str = "ep_";

/// What somebody wants with the entrypoint of a name, which decides between its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Calling,
    Reading,
    Editing,
    Removing,
    Changing(EntrypointStatusAction),
}

/// One version of a name.
struct Found {
    kind: EntrypointKind,
    name: String,
    version: NameVersion,
    status: S,
    row: EntrypointRow,
}

impl Found {
    fn text(&self) -> String {
        format!("{}.{}", self.name, self.version)
    }

    fn told(&self) -> String {
        format!("{} is `{}`", self.version, self.status.as_str())
    }
}

impl Serverless {
    /// The entrypoint that a call means, and what its caller should know about the choice.
    pub(super) async fn called(&self, ctx: &SecurityContext, text: &str) -> Answer<(Arc<Loaded>, Vec<String>)> {
        let loaded = match ShortName::parse(text) {
            None => self.visible(ctx, text).await?,
            Some(name) => {
                let found = self.versions(ctx, &name).await?;
                let Some(chosen) = choose(&name, &found, For::Calling)? else {
                    return Err(self.nothing(ctx, text).await);
                };
                let loaded = self.visible(ctx, &chosen.row.address).await?;
                if name.version.is_none() {
                    return Ok((loaded, warnings(&found, chosen)));
                }
                loaded
            }
        };
        // Who names a version has chosen it, and is only told that it is on its way out.
        let own = Own::of(&loaded.entrypoint.entrypoint_id).filter(|_| loaded.status() == S::Deprecated);
        let Some(own) = own else { return Ok((loaded, Vec::new())) };
        let found = self.versions(ctx, &ShortName { kind: Some(own.kind), name: own.name, version: None }).await?;
        let chosen = found.iter().find(|found| found.row.id == loaded.id);
        let warnings = chosen.map(|chosen| warnings(&found, chosen)).unwrap_or_default();
        Ok((loaded, warnings))
    }

    /// The row that a name other than an address means.
    pub(super) async fn named(&self, ctx: &SecurityContext, text: &str, purpose: For) -> Answer<EntrypointRow> {
        if let Some(row) = self.by_letters(ctx, text).await? {
            return Ok(row);
        }
        if let Some(name) = ShortName::parse(text) {
            let found = self.versions(ctx, &name).await?;
            if let Some(chosen) = choose(&name, &found, purpose)? {
                return Ok(chosen.row.clone());
            }
        }
        Err(self.nothing(ctx, text).await)
    }

    /// The registrations that a condition on an entrypoint is about: one of an address, all versions of a name. An address that
    /// nobody has registered is no run's; a name that nothing has is more likely misspelt.
    pub(super) async fn registrations(&self, ctx: &SecurityContext, text: &str) -> Answer<Vec<String>> {
        let Some(name) = ShortName::parse(text) else {
            let found = self.engine().store().find_entrypoint(&ctx.tenant, text).await.map_err(store_error)?;
            let Some(row) = found else { return Ok(Vec::new()) };
            return Ok(self.shown(ctx, row).await?.map(|row| row.id).into_iter().collect());
        };
        let found = self.versions(ctx, &name).await?;
        if found.is_empty() {
            return Err(self.nothing(ctx, text).await);
        }
        if found.len() > PLANS_PER_QUERY_MAX {
            return Err(errors::bad_request(format!(
                "`{name}` has more than {PLANS_PER_QUERY_MAX} versions; name one of them"
            )));
        }
        Ok(found.into_iter().map(|found| found.row.id).collect())
    }

    /// What the caller sees under a name, highest version first.
    async fn versions(&self, ctx: &SecurityContext, name: &ShortName<'_>) -> Answer<Vec<Found>> {
        let mut all: Vec<Found> = Vec::new();
        for prefix in name.prefixes() {
            let mut query =
                EntrypointQuery { address_prefix: Some(prefix), limit: ENTRYPOINTS_READ, ..EntrypointQuery::default() };
            loop {
                let rows =
                    self.engine().store().list_entrypoints(&Self::scope(ctx), &query).await.map_err(store_error)?;
                let Some(last) = rows.last() else { break };
                query.after = Some(query.order.key(last));
                for row in rows {
                    let Some(own) = Own::of(&row.address).filter(|own| name.is_of(own)) else { continue };
                    let (kind, name, version) = (own.kind, own.name.to_owned(), own.version);
                    let unknown = || internal(&format!("the entrypoint `{}` is `{}`", row.id, row.status));
                    let status = S::parse(&row.status).ok_or_else(unknown)?;
                    let Some(row) = self.shown(ctx, row).await? else { continue };
                    all.push(Found { kind, name, version, status, row });
                }
            }
        }
        all.sort_by_key(|found| Reverse(found.version));
        Ok(all)
    }

    /// An id that is written in part: its first letters, or its last, as long as only one has them.
    async fn by_letters(&self, ctx: &SecurityContext, text: &str) -> Answer<Option<EntrypointRow>> {
        let letters = text.strip_prefix(ID_PREFIX).unwrap_or(text);
        let is_hex = letters.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if !is_hex || letters.len() < ID_LETTERS_MIN {
            return Ok(None);
        }
        let (rows, whole) = self.looked_at(ctx).await?;
        let fits = |row: &&EntrypointRow| match text.starts_with(ID_PREFIX) {
            true => row.id.starts_with(text),
            false => {
                row.id.ends_with(letters) || row.id.strip_prefix(ID_PREFIX).is_some_and(|id| id.starts_with(letters))
            }
        };
        let found: Vec<&EntrypointRow> = rows.iter().filter(fits).collect();
        match found.as_slice() {
            // Among those that were not looked at another may begin so.
            [row] if whole => Ok(Some((*row).clone())),
            [] | [_] => Ok(None),
            several => {
                let ids: Vec<_> = several.iter().take(5).map(|row| format!("`{}`", row.id)).collect();
                Err(errors::bad_request(format!("`{text}` is the beginning or end of several: {}", ids.join(", "))))
            }
        }
    }

    /// The newest that the caller sees, and whether these are all.
    async fn looked_at(&self, ctx: &SecurityContext) -> Answer<(Vec<EntrypointRow>, bool)> {
        let mut query =
            EntrypointQuery { exclude_archived: true, limit: ENTRYPOINTS_READ, ..EntrypointQuery::default() };
        let (mut seen, mut read) = (Vec::new(), 0);
        while read < LOOKED_AT_MAX {
            let rows = self.engine().store().list_entrypoints(&Self::scope(ctx), &query).await.map_err(store_error)?;
            let Some(last) = rows.last() else { return Ok((seen, true)) };
            query.after = Some(query.order.key(last));
            read += rows.len();
            for row in rows {
                seen.extend(self.shown(ctx, row).await?);
            }
        }
        Ok((seen, false))
    }

    /// There is no such entrypoint; names that are near are proposed.
    pub(super) async fn nothing(&self, ctx: &SecurityContext, text: &str) -> RuntimeErrorPayload {
        let failure = no_entrypoint(text);
        let asked = match (Own::of(text), ShortName::parse(text)) {
            (Some(own), _) => own.name.to_owned(),
            (None, Some(name)) if !name.name.is_empty() => name.name.to_owned(),
            (None, _) => return failure,
        };
        // What cannot be read now proposes nothing; the answer is the same.
        let Ok((rows, _)) = self.looked_at(ctx).await else { return failure };
        let owns: Vec<Own<'_>> = rows.iter().filter_map(|row| Own::of(&row.address)).collect();
        let proposed = near(&asked, owns.iter().map(|own| own.name)).into_iter().map(|name| {
            // Where the name is right, its version or its kind was not.
            let newest = owns.iter().filter(|own| own.name == asked && name == asked).max_by_key(|own| own.version);
            newest.map_or_else(|| name.to_owned(), ToString::to_string)
        });
        errors::with_suggestions(failure, proposed.collect())
    }
}

/// The version that is meant; `None` where the name has none at all.
fn choose<'f>(name: &ShortName<'_>, found: &'f [Found], purpose: For) -> Answer<Option<&'f Found>> {
    use EntrypointStatusAction as A;
    // Highest first within each of these, the first that has any.
    let (wanted, only_one): (&[&[S]], bool) = match purpose {
        For::Calling => (&[&[S::Active], &[S::Deprecated]], false),
        For::Reading => (&[&[S::Active], &[S::Deprecated], &[S::Draft, S::Disabled], &[S::Archived]], false),
        For::Changing(A::Deprecate) => (&[&[S::Active]], false),
        For::Changing(A::Disable) => (&[&[S::Active], &[S::Deprecated]], false),
        // What no call means is meant by its name only while there is one of the kind.
        For::Changing(A::Activate) | For::Editing => (&[&[S::Draft]], true),
        For::Changing(A::Enable) => (&[&[S::Disabled]], true),
        For::Changing(A::Archive) => (&[&[S::Deprecated, S::Disabled]], true),
        For::Removing => (&[&[S::Draft, S::Deprecated, S::Disabled]], true),
    };
    let class =
        |statuses: &&[S]| -> Vec<&'f Found> { found.iter().filter(|found| statuses.contains(&found.status)).collect() };
    let candidates = wanted.iter().map(class).find(|class| !class.is_empty()).unwrap_or_default();
    let Some(first) = candidates.first() else {
        return match (purpose, found.first()) {
            (For::Calling, Some(newest)) => {
                let all: Vec<_> = found.iter().map(Found::told).collect();
                let way = status::way_to_be_called(newest.status);
                Err(errors::not_active(format!("no version of `{name}` can be called: {}; {way}", all.join(", "))))
            }
            // Whose status refuses what was asked says why.
            (_, newest) => Ok(newest),
        };
    };
    if candidates.iter().any(|found| found.kind != first.kind) {
        let ways: Vec<_> = candidates.iter().map(|found| found.row.address.clone()).collect();
        let message = format!("`{name}` is a function and a workflow; say which by its address: {}", quoted(&ways));
        return Err(errors::bad_request(message));
    }
    if only_one && candidates.len() > 1 {
        let ways: Vec<_> = candidates.iter().map(|found| found.text()).collect();
        return Err(errors::bad_request(format!("`{name}` stands for several; name one of them: {}", quoted(&ways))));
    }
    Ok(Some(first))
}

fn quoted(texts: &[String]) -> String {
    texts.iter().take(5).map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

/// What the caller of a version should know: that it is on its way out, and that a newer one is there which is not called.
fn warnings(found: &[Found], chosen: &Found) -> Vec<String> {
    let same = || found.iter().filter(|found| found.kind == chosen.kind);
    let mut said = Vec::new();
    if chosen.status == S::Deprecated {
        said.push(match same().find(|found| found.status == S::Active) {
            Some(active) => format!("`{}` is deprecated; `{}` is active", chosen.text(), active.text()),
            None => format!("`{}` is deprecated, and no version of it is active", chosen.text()),
        });
    }
    let newer = |found: &&Found| {
        found.version > chosen.version && matches!(found.status, S::Draft | S::Deprecated | S::Disabled)
    };
    let newer: Vec<_> = same().filter(newer).map(Found::told).collect();
    if !newer.is_empty() {
        said.push(format!("`{}` was called; newer, and not active: {}", chosen.text(), newer.join(", ")));
    }
    said
}
