//! Where the bus is and how it lets us in. Every credential that is given is used, or refused here: one that is dropped in silence
//! would leave a bus open that was meant to be closed.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::ConfigError;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BusConfig {
    /// `nats://host:4222`, or `tls://host:4222` where nothing may go unencrypted; absent means that events stay in the process. May
    /// hold a user and a password, or a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nats_url: Option<String>,
    /// A user's JWT and seed, as `nsc` writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_file: Option<PathBuf>,
    /// The seed of an nkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nkey_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Whose password is in `password_file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// PEM: who signs the server's certificate, in place of the system's roots. With it nothing goes unencrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// PEM: the certificate that this program shows, and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
}

/// What the configuration says, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct BusAddress {
    /// Without credentials.
    pub url: String,
    pub login: BusLogin,
    /// Whether nothing may go unencrypted.
    pub encrypts: bool,
    /// Whether the server is on this machine.
    pub is_local: bool,
}

/// How the bus lets us in.
#[derive(Clone, PartialEq, Eq)]
pub enum BusLogin {
    Nobody,
    Password { user: String, password: String },
    PasswordFile { user: String, file: PathBuf },
    Token(String),
    TokenFile(PathBuf),
    NkeyFile(PathBuf),
    CredentialsFile(PathBuf),
}

/// Where, and never as whom.
impl fmt::Debug for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusAddress").field("url", &self.url).field("encrypts", &self.encrypts).finish_non_exhaustive()
    }
}

impl fmt::Debug for BusLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BusLogin::Nobody => "Nobody",
            BusLogin::Password { .. } => "Password",
            BusLogin::PasswordFile { .. } => "PasswordFile",
            BusLogin::Token(_) => "Token",
            BusLogin::TokenFile(_) => "TokenFile",
            BusLogin::NkeyFile(_) => "NkeyFile",
            BusLogin::CredentialsFile(_) => "CredentialsFile",
        })
    }
}

impl BusConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.address().map(|_| ())
    }

    /// `None` where events stay in the process.
    pub fn address(&self) -> Result<Option<BusAddress>, ConfigError> {
        let wrong = |key: &str, reason: &str| Err(ConfigError::new(format!("bus.{key}"), reason));
        let files = [
            ("credentials_file", &self.credentials_file),
            ("nkey_file", &self.nkey_file),
            ("token_file", &self.token_file),
            ("password_file", &self.password_file),
            ("ca_file", &self.ca_file),
            ("cert_file", &self.cert_file),
            ("key_file", &self.key_file),
        ];
        let given = || files.iter().filter(|(_, file)| file.is_some()).map(|(key, _)| *key);
        let Some(url) = &self.nats_url else {
            return match given().next().or(self.user.as_ref().map(|_| "user")) {
                Some(key) => wrong(key, "is of no use without bus.nats_url"),
                None => Ok(None),
            };
        };
        // Nothing of the URL is repeated: it may hold a password.
        let Ok(mut parsed) = Url::parse(url) else {
            return wrong("nats_url", "is no address such as nats://host:4222");
        };
        if !matches!(parsed.scheme(), "nats" | "tls") {
            return wrong("nats_url", "begins with nats:// or tls://; other protocols are not spoken");
        }
        let Some(host) = parsed.host_str().filter(|host| !host.is_empty()).map(str::to_owned) else {
            return wrong("nats_url", "names no host; it is an address such as nats://host:4222");
        };
        if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() || parsed.fragment().is_some() {
            return wrong("nats_url", "ends with the host and its port: nats://host:4222");
        }
        match (&self.user, &self.password_file) {
            (Some(_), None) => return wrong("user", "needs bus.password_file"),
            (None, Some(_)) => return wrong("password_file", "needs bus.user"),
            _ => {}
        }
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => return wrong("cert_file", "needs bus.key_file"),
            (None, Some(_)) => return wrong("key_file", "needs bus.cert_file"),
            _ => {}
        }
        let logins = ["credentials_file", "nkey_file", "token_file", "password_file"];
        let mut ways = given().filter(|key| logins.contains(key));
        let way = ways.next();
        if let Some(second) = ways.next() {
            return wrong(second, &format!("stands beside bus.{}: one of them is used", way.unwrap_or_default()));
        }
        let in_url = login(&parsed)?;
        if let Some(way) = way.filter(|_| in_url != BusLogin::Nobody) {
            return wrong(way, "stands beside credentials in bus.nats_url: one of them is used");
        }
        let encrypts = parsed.scheme() == "tls" || self.ca_file.is_some() || self.cert_file.is_some();
        // Neither fails for an address with a host.
        let _ = parsed.set_username("");
        let _ = parsed.set_password(None);
        let file = |file: &Option<PathBuf>| file.clone().unwrap_or_default();
        let login = match way {
            Some("credentials_file") => BusLogin::CredentialsFile(file(&self.credentials_file)),
            Some("nkey_file") => BusLogin::NkeyFile(file(&self.nkey_file)),
            Some("token_file") => BusLogin::TokenFile(file(&self.token_file)),
            Some(_) => {
                BusLogin::PasswordFile { user: self.user.clone().unwrap_or_default(), file: file(&self.password_file) }
            }
            None => in_url,
        };
        let url = parsed.as_str().trim_end_matches('/').to_owned();
        Ok(Some(BusAddress { url, login, encrypts, is_local: is_local(&host) }))
    }
}

/// `user:password@`, or a token alone.
fn login(url: &Url) -> Result<BusLogin, ConfigError> {
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded
            .map(|text| text.into_owned())
            .map_err(|_| ConfigError::new("bus.nats_url", "has credentials that are not UTF-8"))
    };
    let user = decode(url.username())?;
    match url.password().map(decode).transpose()? {
        None if user.is_empty() => Ok(BusLogin::Nobody),
        None => Ok(BusLogin::Token(user)),
        Some(_) if user.is_empty() => Err(ConfigError::new("bus.nats_url", "has a password and no user")),
        Some(password) => Ok(BusLogin::Password { user, password }),
    }
}

pub(super) fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(url: &str) -> BusConfig {
        BusConfig { nats_url: Some(url.to_owned()), ..BusConfig::default() }
    }

    fn address(config: &BusConfig) -> BusAddress {
        config.address().unwrap_or_else(|error| panic!("{error}")).expect("an address")
    }

    #[test]
    fn credentials_of_the_url_are_taken_out_of_it() {
        let password =
            |user: &str, password: &str| BusLogin::Password { user: user.to_owned(), password: password.to_owned() };
        for (text, plain, login) in [
            ("nats://bus:4222", "nats://bus:4222", BusLogin::Nobody),
            ("nats://bob:HUNTER2@bus:4222", "nats://bus:4222", password("bob", "HUNTER2")),
            ("tls://b%40b:p%3A%2Fw@bus", "tls://bus", password("b@b", "p:/w")),
            ("nats://s3cret@[::1]:4222/", "nats://[::1]:4222", BusLogin::Token("s3cret".to_owned())),
            // To the standard of URLs an empty password is none.
            ("nats://bob:@bus", "nats://bus", BusLogin::Token("bob".to_owned())),
        ] {
            let found = address(&url(text));
            assert!(found.url == plain && found.login == login, "{text}");
            assert_eq!(found.encrypts, text.starts_with("tls"), "{text}");
        }
        for (text, local) in
            [("nats://localhost", true), ("nats://127.0.0.2", true), ("nats://[::1]", true), ("nats://10.0.0.1", false)]
        {
            assert_eq!(address(&url(text)).is_local, local, "{text}");
        }
    }

    #[test]
    fn what_would_not_be_used_is_refused_without_repeating_it() {
        let file = || Some(PathBuf::from("/f"));
        let with = |change: fn(&mut BusConfig)| {
            let mut config = url("nats://bus");
            change(&mut config);
            config
        };
        for (config, key) in [
            (url("ws://u:HUNTER2@bus"), "bus.nats_url"),
            (url("wss://u:HUNTER2@bus"), "bus.nats_url"),
            (url("http://u:HUNTER2@bus"), "bus.nats_url"),
            (url("bus:4222"), "bus.nats_url"),
            (url("HUNTER2@bus:4222"), "bus.nats_url"),
            (url("nats://u:HUNTER2@"), "bus.nats_url"),
            (url("nats://u:HUNTER2@bus/path"), "bus.nats_url"),
            (url("nats://u:HUNTER2@bus?tls=1"), "bus.nats_url"),
            (url("nats://:HUNTER2@bus"), "bus.nats_url"),
            (url("nats://u:HUNTER2@bus:99999"), "bus.nats_url"),
            (BusConfig { token_file: file(), ..url("nats://u:HUNTER2@bus") }, "bus.token_file"),
            (BusConfig { nats_url: None, ..with(|config| config.nkey_file = Some("/f".into())) }, "bus.nkey_file"),
            (BusConfig { user: Some("u".to_owned()), ..BusConfig::default() }, "bus.user"),
            (BusConfig { token_file: file(), nkey_file: file(), ..url("nats://bus") }, "bus.token_file"),
            (with(|config| config.user = Some("u".to_owned())), "bus.user: needs"),
            (with(|config| config.password_file = Some("/f".into())), "bus.password_file: needs"),
            (with(|config| config.cert_file = Some("/f".into())), "bus.cert_file: needs"),
            (with(|config| config.key_file = Some("/f".into())), "bus.key_file: needs"),
        ] {
            let error = config.address().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with(key) && !error.contains("HUNTER2"), "{config:?}: {error}");
        }
    }

    #[test]
    fn certificates_mean_that_nothing_goes_unencrypted() {
        assert!(address(&BusConfig { ca_file: Some("/f".into()), ..url("nats://bus") }).encrypts);
        let shown = BusConfig { cert_file: Some("/c".into()), key_file: Some("/k".into()), ..url("nats://bus") };
        assert!(address(&shown).encrypts);
    }
}
