//! Which server, which key: a flag before a variable, a variable before the profile, the profile before the default. Each
//! setting knows where it came from, because that is the first question when the wrong server answers.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Serialize;

use crate::args::{DEFAULT_SERVER, Global};
use crate::failure::Failure;
use crate::input;
use crate::profiles::{self, Profiles};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) from: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    Profile(String),
    /// The file of profiles, which names the one in use.
    Current(PathBuf),
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::Current(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) server: Setting<String>,
    pub(crate) token: Option<Setting<String>>,
    pub(crate) ca_file: Option<Setting<PathBuf>>,
    pub(crate) profile: Option<Setting<String>>,
    /// Where profiles are kept, if there is a place for them.
    pub(crate) file: Option<PathBuf>,
}

impl Settings {
    /// What this process was told, and what its user's profiles say.
    pub(crate) fn of(global: &Global) -> Result<Self, Failure> {
        let file = profiles::path(variable);
        let known = file.as_deref().map(Profiles::read).transpose()?.unwrap_or_default();
        Self::resolve(global, (variable, first_line), &known, file.as_deref())
    }

    fn resolve(
        global: &Global,
        (variable, key_in): (impl Fn(&str) -> Option<String>, impl Fn(&Path) -> Result<String, Failure>),
        known: &Profiles,
        file: Option<&Path>,
    ) -> Result<Self, Failure> {
        let said = |flag: Option<&String>, names: (&'static str, &'static str)| {
            let flag = flag.filter(|text| !text.is_empty());
            let flag = flag.map(|text| Setting { value: text.clone(), from: Origin::Flag(names.0) });
            flag.or_else(|| variable(names.1).map(|value| Setting { value, from: Origin::Variable(names.1) }))
        };
        let current = || {
            let from = Origin::Current(file?.to_owned());
            Some(Setting { value: known.current.clone()?, from })
        };
        let profile = said(global.profile.as_ref(), ("--profile", "SERVO_PROFILE")).or_else(current);
        let chosen = profile.as_ref().map(|name| known.get(&name.value)).transpose()?;
        let of_profile = || profile.as_ref().map_or(Origin::Default, |name| Origin::Profile(name.value.clone()));
        let server = said(global.server.as_ref(), ("--server", "SERVO_SERVER"))
            .or_else(|| chosen.map(|chosen| Setting { value: chosen.server.clone(), from: of_profile() }))
            .unwrap_or_else(|| Setting { value: DEFAULT_SERVER.to_owned(), from: Origin::Default });
        // A profile's key is for its own server: another one that is named for once must not get to see it.
        let fitting = chosen.filter(|chosen| chosen.server.trim_end_matches('/') == server.value.trim_end_matches('/'));
        let key_file = global.token_file.as_ref().map(|path| path.to_string_lossy().into_owned());
        let of_file =
            |said: Setting<String>| key_in(said.value.as_ref()).map(|value| Setting { value, from: said.from });
        let flag = |text: &String, name| Setting { value: text.clone(), from: Origin::Flag(name) };
        let given = match (global.token.as_ref().filter(|text| !text.is_empty()), &key_file) {
            (Some(key), _) => Some(flag(key, "--token")),
            (None, Some(file)) => Some(of_file(flag(file, "--token-file"))?),
            (None, None) => match said(None, ("--token", "SERVO_TOKEN")) {
                Some(key) => Some(key),
                None => said(None, ("--token-file", "SERVO_TOKEN_FILE")).map(of_file).transpose()?,
            },
        };
        let token = given.or_else(|| Some(Setting { value: fitting?.token.clone()?, from: of_profile() }));
        let ca_flag = global.ca_file.as_ref().map(|path| path.to_string_lossy().into_owned());
        let ca_file = said(ca_flag.as_ref(), ("--ca-file", "SERVO_CA_FILE"))
            .map(|setting| Setting { value: PathBuf::from(setting.value), from: setting.from })
            .or_else(|| Some(Setting { value: fitting?.ca_file.clone()?, from: of_profile() }));
        Ok(Self { server, token, ca_file, profile, file: file.map(Path::to_owned) })
    }

    /// Whether this command was told to ask a server. A profile that is merely in use does not count.
    pub(crate) fn names_a_server(&self) -> bool {
        match &self.server.from {
            Origin::Flag(_) | Origin::Variable(_) => true,
            Origin::Profile(_) => {
                matches!(self.profile.as_ref().map(|name| &name.from), Some(Origin::Flag(_) | Origin::Variable(_)))
            }
            Origin::Current(_) | Origin::Default => false,
        }
    }
}

/// Without the key.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("server", &self.server).field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// The key in a file, or on stdin, which is read once however often it is asked for.
fn first_line(path: &Path) -> Result<String, Failure> {
    static STDIN: OnceLock<String> = OnceLock::new();
    let text = match STDIN.get().filter(|_| path == Path::new("-")) {
        Some(text) => text.clone(),
        None => {
            let text = input::read(path)?;
            if path == Path::new("-") { STDIN.get_or_init(|| text).clone() } else { text }
        }
    };
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(key) => Ok(key.to_owned()),
        None => Err(Failure::usage(format!("--token-file {}: its first line has no key", path.display()))),
    }
}

/// An environment variable; an empty one is none.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use crate::failure::exit;
    use crate::profiles::Profile;
    use clap::Parser;

    fn resolved(line: &[&str], variables: &[(&str, &str)], current: Option<&str>) -> Result<Settings, Failure> {
        let profile = |server: &str, token: &str| Profile {
            server: server.to_owned(),
            token: Some(token.to_owned()),
            ca_file: Some("/ca".into()),
        };
        let known = Profiles {
            current: current.map(str::to_owned),
            profiles: [
                ("a".to_owned(), profile("https://a", "key-a")),
                ("b".to_owned(), profile("https://b/", "key-b")),
            ]
            .into(),
        };
        let line = [&["servo", "whoami"][..], line].concat();
        let global = Cli::try_parse_from(line).unwrap().global;
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let key_in = |path: &Path| match path.to_str() {
            Some("/missing") => Err(Failure::usage("/missing: not there")),
            name => Ok(format!("key in {}", name.unwrap_or_default())),
        };
        Settings::resolve(&global, (variable, key_in), &known, Some(Path::new("/f")))
    }

    fn server(settings: &Settings) -> (&str, String) {
        (&settings.server.value, settings.server.from.to_string())
    }

    #[test]
    fn the_nearest_word_counts_and_is_named() {
        let found = resolved(&[], &[], None).unwrap();
        assert_eq!(server(&found), (DEFAULT_SERVER, "default".to_owned()));
        assert!(found.token.is_none() && found.profile.is_none() && !found.names_a_server());

        let found = resolved(&[], &[], Some("a")).unwrap();
        assert_eq!(server(&found), ("https://a", "profile a".to_owned()));
        assert_eq!(found.profile.as_ref().unwrap().from.to_string(), "/f");
        assert_eq!(found.token.as_ref().unwrap().value, "key-a");
        assert_eq!(found.ca_file.as_ref().unwrap().value, Path::new("/ca"));
        assert!(!found.names_a_server(), "nobody asked for it now");

        let found = resolved(&[], &[("SERVO_PROFILE", "b")], Some("a")).unwrap();
        assert_eq!(server(&found), ("https://b/", "profile b".to_owned()));
        assert_eq!(found.profile.as_ref().unwrap().from.to_string(), "SERVO_PROFILE");
        assert!(found.names_a_server());

        let found = resolved(&["--profile", "a"], &[("SERVO_PROFILE", "b")], None).unwrap();
        assert_eq!(server(&found), ("https://a", "profile a".to_owned()));

        let both = [("SERVO_SERVER", "http://v"), ("SERVO_TOKEN", "key-v")];
        let found = resolved(&[], &both, Some("a")).unwrap();
        assert_eq!(server(&found), ("http://v", "SERVO_SERVER".to_owned()));
        assert_eq!(found.token.unwrap().from, Origin::Variable("SERVO_TOKEN"));

        let found = resolved(&["--server", "http://f", "--token", "key-f"], &both, Some("a")).unwrap();
        assert_eq!(server(&found), ("http://f", "--server".to_owned()));
        assert_eq!(found.token.unwrap().from, Origin::Flag("--token"));
    }

    /// A key in a file shows in no list of processes.
    #[test]
    fn a_key_may_come_from_a_file() {
        let token = |line: &[&str], variables: &[(&str, &str)]| {
            let token = resolved(line, variables, Some("a")).unwrap().token.unwrap();
            (token.value, token.from.to_string())
        };
        let told = |value: &str, from: &str| (value.to_owned(), from.to_owned());
        let both = [("SERVO_TOKEN", "key-v"), ("SERVO_TOKEN_FILE", "/v")];
        assert_eq!(token(&["--token-file", "/t"], &both), told("key in /t", "--token-file"));
        assert_eq!(token(&["--token-file", "-"], &[]), told("key in -", "--token-file"));
        assert_eq!(token(&[], &both), told("key-v", "SERVO_TOKEN"));
        assert_eq!(token(&[], &both[1..]), told("key in /v", "SERVO_TOKEN_FILE"));
        assert!(resolved(&["--token-file", "/missing"], &both, None).is_err(), "another key would be a surprise");
        assert!(Cli::try_parse_from(["servo", "whoami", "--token", "k", "--token-file", "/t"]).is_err());
    }

    /// A key goes to the server it was stored for, and to no other.
    #[test]
    fn the_key_of_a_profile_stays_with_its_server() {
        let found = resolved(&["--server", "http://other"], &[], Some("a")).unwrap();
        assert!(found.token.is_none() && found.ca_file.is_none());
        let found = resolved(&["--server", "https://b"], &[], Some("b")).unwrap();
        assert_eq!(found.token.unwrap().value, "key-b");
    }

    #[test]
    fn an_unknown_profile_is_not_passed_over() {
        let failure = resolved(&["--profile", "c"], &[], None).unwrap_err();
        assert_eq!(failure.exit, exit::NOT_FOUND);
        assert!(failure.to_string().contains("c"), "{failure}");
    }
}
