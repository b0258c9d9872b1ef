//! How connections are encrypted, and what the server must show for it: `sslmode`, `sslrootcert`, `sslcert` and `sslkey` of
//! the URL, with the meanings that libpq gives them. Files are read once, when the store connects.
//!
//! Two differences, both on the safe side. A root certificate beside a mode that would not use it is refused. And a server's
//! name must stand among its certificate's alternative names: the common name does not count.

mod connect;
mod refusal;
mod verify;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use servo_store::{Error, Result};
use tokio_postgres::config::SslMode;

pub(crate) use self::connect::Stream;
pub(crate) use self::refusal::Refusal;
use self::verify::{Check, Roots, Verifier};

/// Files of certificates and keys are kilobytes; all roots of a system are a quarter of a megabyte.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What libpq calls the roots of the system.
const SYSTEM: &str = "system";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Mode::Disable,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }

    /// What of it the driver does.
    pub(crate) fn driver(self) -> SslMode {
        match self {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }
}

/// The parameters of the URL that the driver does not know, or knows too little of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) mode: Option<String>,
    pub(crate) root: Option<String>,
    pub(crate) cert: Option<String>,
    pub(crate) key: Option<String>,
}

impl Settings {
    /// The field of this name, if it is one of ours.
    pub(crate) fn field(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "sslmode" => Some(&mut self.mode),
            "sslrootcert" => Some(&mut self.root),
            "sslcert" => Some(&mut self.cert),
            "sslkey" => Some(&mut self.key),
            _ => None,
        }
    }
}

/// Makes encrypted connections of the driver's plain ones.
#[derive(Clone)]
pub(crate) struct Tls {
    mode: Mode,
    /// Somebody is asked who the server is.
    verifies: bool,
    client: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Tls {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let mode = mode(settings)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let check = check(mode, settings)?;
        let verifies = !matches!(check, Check::Nothing);
        let verifier = Arc::new(Verifier::new(check, &provider));
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = versions.map_err(|_| invalid("sslmode", "this build has no version of TLS"))?;
        // Not dangerous where the verifier verifies: it is the only way to leave the name, or all, unverified as the modes ask.
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut client = match (&settings.cert, &settings.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let (chain, secret) = (certificates("sslcert", cert)?, private_key(key)?);
                let pair = builder.with_client_auth_cert(chain, secret);
                pair.map_err(|_| invalid("sslkey", "is not the key of the certificate in sslcert"))?
            }
            (Some(_), None) => return Err(invalid("sslkey", "is missing: sslcert needs the file of its key")),
            (None, Some(_)) => return Err(invalid("sslcert", "is missing: sslkey needs the file of its certificate")),
        };
        // Servers from version 17 on ask for it where TLS begins without a request for it.
        client.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self { mode, verifies, client: Arc::new(client) })
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn verifies(&self) -> bool {
        self.verifies
    }
}

fn mode(settings: &Settings) -> Result<Mode> {
    let given = settings.mode.as_deref().map(|text| {
        let words = "is disable, prefer, require, verify-ca or verify-full";
        Mode::parse(text).ok_or_else(|| invalid("sslmode", words))
    });
    let given = given.transpose()?;
    let is_system = settings.root.as_deref() == Some(SYSTEM);
    match given {
        // Anybody can get a certificate that the system trusts, for a name of their own.
        None if is_system => Ok(Mode::VerifyFull),
        Some(weaker) if is_system && weaker != Mode::VerifyFull => {
            Err(invalid("sslrootcert", "system needs sslmode=verify-full"))
        }
        None | Some(Mode::Disable | Mode::Prefer) if settings.root.is_some() => {
            let words = "is of no use with this sslmode: say sslmode=verify-full (or verify-ca, or require) beside it";
            Err(invalid("sslrootcert", words))
        }
        Some(Mode::Disable) if settings.cert.is_some() || settings.key.is_some() => {
            Err(invalid("sslcert", "is of no use with sslmode=disable: say sslmode=verify-full beside it"))
        }
        given => Ok(given.unwrap_or_default()),
    }
}

fn check(mode: Mode, settings: &Settings) -> Result<Check> {
    Ok(match (mode, settings.root.as_deref()) {
        (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None) => Check::Nothing,
        (Mode::Require | Mode::VerifyCa, root) => Check::Chain(roots(root)?),
        (Mode::VerifyFull, root) => Check::ChainAndName(roots(root)?),
    })
}

fn roots(file: Option<&str>) -> Result<Roots> {
    let mut store = RootCertStore::empty();
    let Some(file) = file.filter(|file| *file != SYSTEM) else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(invalid("sslrootcert", "this system has no root certificates: name the file of the server's"));
        }
        return Ok(Roots { store, given: Vec::new() });
    };
    let given = certificates("sslrootcert", file)?;
    for certificate in &given {
        let added = store.add(certificate.clone());
        added.map_err(|_| invalid("sslrootcert", &format!("{file}: holds something that is no certificate")))?;
    }
    Ok(Roots { store, given })
}

fn certificates(field: &str, file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let text = read(field, file)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<std::result::Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(invalid(field, &format!("{file}: holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"))),
    }
}

fn private_key(file: &str) -> Result<PrivateKeyDer<'static>> {
    let text = read("sslkey", file)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        invalid("sslkey", &format!("{file}: holds no private key in PEM form, or an encrypted one: decrypt it first"))
    })
}

fn read(field: &str, file: &str) -> Result<Vec<u8>> {
    let fail = |what: &str| invalid(field, &format!("{file}: {what}"));
    let mut text = Vec::new();
    let opened = std::fs::File::open(Path::new(file));
    let read = opened.and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut text));
    match read {
        Err(error) => {
            let reason = error.kind();
            Err(fail(&format!("cannot be read ({reason}): name a PEM file that this process may read")))
        }
        Ok(_) if text.len() as u64 > FILE_BYTES_MAX => Err(fail("is larger than a megabyte")),
        Ok(_) => Ok(text),
    }
}

fn invalid(field: &str, reason: &str) -> Error {
    Error::Invalid { field: field.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mode: Option<&str>, root: Option<&str>) -> Settings {
        Settings { mode: mode.map(str::to_owned), root: root.map(str::to_owned), ..Settings::default() }
    }

    #[test]
    fn modes_mean_what_libpq_says() {
        for (given, expected) in [
            (None, Mode::Prefer),
            (Some("disable"), Mode::Disable),
            (Some("require"), Mode::Require),
            (Some("verify-ca"), Mode::VerifyCa),
            (Some("verify-full"), Mode::VerifyFull),
        ] {
            assert_eq!(mode(&settings(given, None)).unwrap(), expected, "{given:?}");
        }
        assert_eq!(mode(&settings(None, Some("system"))).unwrap(), Mode::VerifyFull);
        assert!(matches!(check(Mode::Require, &settings(None, None)), Ok(Check::Nothing)));
    }

    #[test]
    fn what_would_be_weaker_than_it_looks_is_refused() {
        for (mode, root, field) in [
            (Some("allow"), None, "sslmode"),
            (Some("VERIFY-FULL"), None, "sslmode"),
            (Some("require"), Some("system"), "sslrootcert"),
            (Some("prefer"), Some("/roots.pem"), "sslrootcert"),
            (Some("disable"), Some("/roots.pem"), "sslrootcert"),
            (None, Some("/roots.pem"), "sslrootcert"),
        ] {
            let error = Tls::new(&settings(mode, root)).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { field: found, .. } if found == field),
                "{mode:?} {root:?}: {error}"
            );
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = std::env::temp_dir().join(format!("servo-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let other = folder.join("other.pem");
        std::fs::write(&other, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
        let other = other.to_str().unwrap();
        for (root, word) in [("/no/such/file.pem", "cannot be read"), (other, "holds no certificate")] {
            let error = Tls::new(&settings(Some("verify-full"), Some(root))).unwrap_err().to_string();
            assert!(error.contains("sslrootcert") && error.contains(root) && error.contains(word), "{error}");
        }
        for (cert, key, field) in [(Some("a"), None, "sslkey"), (None, Some("a"), "sslcert")] {
            let (cert, key) = (cert.map(str::to_owned), key.map(str::to_owned));
            let error = Tls::new(&Settings { cert, key, ..settings(Some("require"), None) }).unwrap_err();
            assert!(matches!(&error, Error::Invalid { field: found, .. } if found == field), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
