//! Profiles: servers and keys under names, in one file of the user's. The file is as secret as the keys in it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use servo_client::{AtomicFile, IfExists};

use crate::failure::{Failure, exit};

/// A longer file was not written by us.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const PROFILES_MAX: usize = 1_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profiles {
    /// The one in use where nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) profiles: BTreeMap<String, Profile>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// Without the key: a profile may end up in a message about something else.
impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("server", &self.server).finish_non_exhaustive()
    }
}

/// `servo/config.toml` in the user's configuration folder, as the XDG rules have it.
pub(crate) fn path(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |text: String| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let folder = variable("XDG_CONFIG_HOME").and_then(absolute);
    let folder = folder.or_else(|| variable("HOME").and_then(absolute).map(|home| home.join(".config")))?;
    Some(folder.join("servo").join("config.toml"))
}

impl Profiles {
    /// What the file says; without a file there are none.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |reason: String| {
            Failure::usage(format!("{}: {reason}", path.display())).hint("mend the file, or remove it and begin again")
        };
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Ok(found) if found.len() > FILE_BYTES_MAX => return Err(wrong("too long for a list of profiles".into())),
            _ => {}
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        // Not the whole message: it quotes the line, and the line may be a key.
        toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))
    }

    /// Replaces the file. It is its owner's alone from the first byte on.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        if self.profiles.len() > PROFILES_MAX {
            return Err(Failure::usage(format!("there are {PROFILES_MAX} profiles already")).hint("remove some first"));
        }
        let text = toml::to_string(self).map_err(|error| Failure::new(exit::ERROR, error.to_string()))?;
        if let Some(folder) = path.parent() {
            let made = make_folder(folder);
            made.map_err(|error| Failure::new(exit::ERROR, format!("{}: {error}", folder.display())))?;
        }
        let mut file = AtomicFile::create(path, IfExists::Replace)?;
        file.write(text.as_bytes())?;
        Ok(file.commit()?)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Profile, Failure> {
        self.profiles.get(name).ok_or_else(|| {
            let known: Vec<_> = self.profiles.keys().map(String::as_str).collect();
            let hint = match known.as_slice() {
                [] => "`servo profiles add NAME --server URL` makes one".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            Failure::new(exit::NOT_FOUND, format!("no such profile: {name}")).hint(hint)
        })
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Whether others than the owner can read the file.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    return std::fs::metadata(path)
        .is_ok_and(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0);
    #[cfg(not(unix))]
    return false;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Profiles {
        let profile = Profile { server: "https://h".into(), token: Some("secret".into()), ca_file: None };
        Profiles { current: Some("prod".into()), profiles: [("prod".to_owned(), profile)].into() }
    }

    #[test]
    fn the_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servo").join("config.toml");
        assert_eq!(Profiles::read(&path).unwrap(), Profiles::default());
        some().write(&path).unwrap();
        assert_eq!(Profiles::read(&path).unwrap(), some());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!is_open_to_others(&path));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(is_open_to_others(&path));
        some().write(&path).unwrap();
        assert!(!is_open_to_others(&path), "the next write mends it");
    }

    #[test]
    fn a_broken_file_is_named_without_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        for text in ["[profiles.a]\nserver = \"s\"\ntoken = s3cr3t\n", "[profiles.a]\ntoken = \"s3cr3t\"\n", "cur = 1"]
        {
            std::fs::write(&path, text).unwrap();
            let failure = Profiles::read(&path).unwrap_err();
            assert_eq!(failure.exit, exit::USAGE);
            assert!(
                failure.to_string().contains("config.toml") && !failure.to_string().contains("s3cr3t"),
                "{failure}"
            );
        }
        assert!(!format!("{:?}", some()).contains("secret"));
    }

    #[test]
    fn the_place_follows_the_xdg_rules() {
        let at = |pairs: &[(&str, &str)]| {
            path(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(at(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), Some("/x/servo/config.toml".into()));
        assert_eq!(at(&[("XDG_CONFIG_HOME", "x"), ("HOME", "/h")]), Some("/h/.config/servo/config.toml".into()));
        assert_eq!(at(&[("HOME", "")]), None);
    }
}
