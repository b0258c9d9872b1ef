//! How the server lets us in, and how the connection is encrypted. Files are read once, at the start; what stands in them is in no
//! message.

use std::fmt;
use std::path::{Path, PathBuf};

use async_nats::{ConnectOptions, ServerAddr};
/// Who we are to the server.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Login {
    #[default]
    Nobody,
    Password {
        user: String,
        password: String,
    },
    /// The first line of the file.
    PasswordFile {
        user: String,
        file: PathBuf,
    },
    Token(String),
    TokenFile(PathBuf),
    /// The seed of a key.
    NkeyFile(PathBuf),
    /// A JWT and the seed of its key.
    CredentialsFile(PathBuf),
}

/// Names the way, never a secret.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Login::Nobody => "Nobody",
            Login::Password { .. } | Login::PasswordFile { .. } => "Password",
            Login::Token(_) | Login::TokenFile(_) => "Token",
            Login::NkeyFile(_) => "Nkey",
            Login::CredentialsFile(_) => "Credentials",
        })
    }
}

/// PEM files, and whether nothing may go unencrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    pub is_required: bool,
    /// Trusted in place of the system's roots.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// What is wrong with the address or the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable(pub(crate) String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// The client takes URLs with credentials and drops them, and speaks no other protocol than NATS under any name.
pub(crate) fn check_url(url: &str) -> Result<(), Unusable> {
    let refused = |words: &str| Err(Unusable(words.to_owned()));
    let Ok(address) = url.parse::<ServerAddr>() else { return refused("no address such as nats://host:4222") };
    if !matches!(address.scheme(), "nats" | "tls") {
        return refused("the address begins with nats:// or tls://");
    }
    if address.has_user_pass() || address.password().is_some() {
        return refused("the address holds credentials that would not be used");
    }
    Ok(())
}

pub(crate) async fn login(options: ConnectOptions, login: &Login) -> Result<ConnectOptions, Unusable> {
    Ok(match login {
        Login::Nobody => options,
        Login::Password { user, password } => options.user_and_password(user.clone(), password.clone()),
        Login::PasswordFile { user, file } => options.user_and_password(user.clone(), first_line(file).await?),
        Login::Token(token) => options.token(token.clone()),
        Login::TokenFile(file) => options.token(first_line(file).await?),
        Login::NkeyFile(file) => options.nkey(seed(file, &read(file).await?)?),
        Login::CredentialsFile(file) => {
            let text = read(file).await?;
            let wrong = |_| unreadable(file, "holds no JWT and seed of a user");
            options.credentials(&text).map_err(wrong)?
        }
    })
}

pub(crate) async fn tls(options: ConnectOptions, files: &TlsFiles, url: &str) -> Result<ConnectOptions, Unusable> {
    let TlsFiles { is_required, ca, own } = files;
    // Said of every server: the others that a first one names are addressed without a scheme.
    let is_required = *is_required || url.starts_with("tls://") || ca.is_some() || own.is_some();
    let mut options = options.require_tls(is_required);
    if let Some(ca) = ca {
        has_pem(ca, "CERTIFICATE").await?;
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((cert, key)) = own {
        has_pem(cert, "CERTIFICATE").await?;
        has_pem(key, "PRIVATE KEY").await?;
        options = options.add_client_certificate(cert.clone(), key.clone());
    }
    Ok(options)
}

/// The client looks at these files when it connects, and would then go on trying for ever.
async fn has_pem(file: &Path, kind: &str) -> Result<(), Unusable> {
    let is_there = read(file).await?.lines().any(|line| line.starts_with("-----BEGIN ") && line.contains(kind));
    if is_there { Ok(()) } else { Err(unreadable(file, &format!("holds no {kind} in PEM"))) }
}

async fn read(file: &Path) -> Result<String, Unusable> {
    let owned = file.to_owned();
    let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(owned)).await;
    text.map_err(|_| unreadable(file, "was not read"))?.map_err(|error| unreadable(file, &error.to_string()))
}

async fn first_line(file: &Path) -> Result<String, Unusable> {
    let text = read(file).await?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() { Err(unreadable(file, "is empty")) } else { Ok(line.to_owned()) }
}

/// As `nk` writes it: a line that begins with S, alone or between others.
fn seed(file: &Path, text: &str) -> Result<String, Unusable> {
    let is_seed = |line: &&str| {
        line.len() >= 50 && line.starts_with('S') && line.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let seed = text.lines().map(str::trim).find(is_seed);
    seed.map(str::to_owned).ok_or_else(|| unreadable(file, "holds no seed of an nkey, which begins with SU"))
}

fn unreadable(file: &Path, why: &str) -> Unusable {
    Unusable(format!("{}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_credentials_or_another_protocol_are_refused_without_repeating_them() {
        for url in
            ["nats://u:HUNTER2@h", "nats://HUNTER2@h", "wss://h", "ws://u:HUNTER2@h", "http://h", "nats://:HUNTER2@h"]
        {
            let error = check_url(url).unwrap_err().to_string();
            assert!(!error.contains("HUNTER2"), "{error}");
        }
        for url in ["nats://h:4222", "tls://h", "nats://[::1]:4222"] {
            check_url(url).unwrap();
        }
    }

    #[test]
    fn a_login_prints_no_secret() {
        let login = Login::Password { user: "bob".to_owned(), password: "HUNTER2".to_owned() };
        assert_eq!(format!("{login:?} {:?}", Login::Token("HUNTER2".to_owned())), "Password Token");
    }
}
