//! The key that `servo dev` gives itself, so that clients can be tried with one: kept beside the data, readable by its
//! owner only, and used again after a restart. No other server takes it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use servo_cli::{Failure, exit};
use servo_model::{AuditEntry, AuditOutcome, Role, SecurityContext, TenantId};
use servo_runtime::Runtime;
use servo_server::identity::{DEV_KEY_NAME, NewKey, StoredKeys};

pub(crate) const FILE: &str = "dev.key";

pub(crate) struct DevKey {
    pub(crate) text: String,
    pub(crate) file: PathBuf,
    /// Made by this start; an old one is not shown to people again.
    pub(crate) is_new: bool,
}

/// The key of this data folder. Called only by a server on loopback.
pub(crate) async fn ensure(runtime: &Runtime, folder: &Path) -> Result<DevKey, Failure> {
    let file = folder.join(FILE);
    let refused = |error| crate::stores::refused("the store", error);
    let engine = runtime.engine();
    let (keys, _) = StoredKeys::new(engine.store().clone()).await.map_err(refused)?;
    let keys = keys.with_dev_key();
    let now = engine.clock().now();
    if let Ok(kept) = fs::read_to_string(&file)
        && keys.is_live(kept.trim(), now).await.map_err(refused)?
    {
        narrow(&file);
        return Ok(DevKey { text: kept.trim().to_owned(), file, is_new: false });
    }
    let maker = SecurityContext::development(engine.ids().event_id(now).to_string());
    let new = NewKey {
        tenant: TenantId::default_tenant(),
        name: DEV_KEY_NAME.to_owned(),
        roles: vec![Role::Admin],
        created_by: maker.subject.clone(),
        expires_at: None,
        access: false,
    };
    let (row, text) = keys.create(engine.ids(), now, new).await.map_err(refused)?;
    let made = AuditEntry {
        id: engine.ids().event_id(now),
        at: now,
        tenant_id: row.tenant,
        actor: maker.subject,
        roles: maker.roles,
        action: "key.create".to_owned(),
        object_kind: "key".to_owned(),
        object_id: row.id.to_string(),
        outcome: AuditOutcome::Allowed,
        correlation_id: maker.correlation_id,
        reason: None,
        source: None,
        count: 1,
    };
    engine.store().put_audit(vec![made.into()]).await.map_err(refused)?;
    write(&file, &text).map_err(|error| Failure::new(exit::ERROR, format!("{}: {error}", file.display())))?;
    Ok(DevKey { text, file, is_new: true })
}

/// For its owner alone, also if somebody has copied it here.
fn narrow(file: &Path) {
    let narrowed = match fs::symlink_metadata(file) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o077 != 0 => {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600))
        }
        _ => Ok(()),
    };
    if let Err(error) = narrowed {
        tracing::warn!(path = %file.display(), %error, "others can read the key");
    }
}

/// A new file, so that neither the rights nor the target of an old one matter.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(out, "{text}")?;
    out.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_reads_it_whatever_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join(FILE), folder.path().join("other"));
        fs::write(&other, "untouched").unwrap();
        std::os::unix::fs::symlink(&other, &file).unwrap();
        for text in ["one", "two"] {
            write(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap().trim(), text);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        narrow(&file);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&other).unwrap(), "untouched");
    }
}
