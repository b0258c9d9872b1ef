//! Why no encrypted connection came about, in words that say what to do. They name no host, no file and no user.

use std::error::Error as _;
use std::{fmt, io};

use rustls::{AlertDescription, CertificateError};

/// The driver's words, which are all it gives.
const NOT_SPOKEN: &str = "server does not support TLS";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server has no TLS.
    NotSpoken,
    /// No root that we know has signed the certificate.
    Untrusted,
    WrongName,
    /// Its time is over, or has not come.
    Expired,
    /// The server does not take our certificate, or wants to see one.
    Client,
    /// The two found no way to encrypt that both know, or something else that both parties' logs have more about.
    Handshake(String),
}

impl Refusal {
    /// `None` if it was not about TLS.
    pub(crate) fn of(error: &tokio_postgres::Error) -> Option<Self> {
        if let Some(found) = rustls_error(error) {
            return Some(Self::of_rustls(found));
        }
        let is_handshake = error.to_string() == "error performing TLS handshake";
        let source = error.source().filter(|_| is_handshake)?.to_string();
        Some(if source == NOT_SPOKEN { Refusal::NotSpoken } else { Refusal::Handshake(source) })
    }

    fn of_rustls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(found) => match found {
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Refusal::WrongName
                }
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. } => Refusal::Expired,
                _ => Refusal::Untrusted,
            },
            rustls::Error::AlertReceived(
                AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnknownCA
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::AccessDenied,
            ) => Refusal::Client,
            other => Refusal::Handshake(other.to_string()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotSpoken => f.write_str(
                "the database does not speak TLS: set ssl = on there, or say sslmode=disable if the network is trusted",
            ),
            Refusal::Untrusted => f.write_str(
                "the database's certificate is not trusted: name the certificate of who signed it by sslrootcert, and \
                 make sure that it is this database that answers",
            ),
            Refusal::WrongName => f.write_str(
                "the database's certificate is for another name: use a host that stands among its alternative names, \
                 or say sslmode=verify-ca if its signer is trusted with every name",
            ),
            Refusal::Expired => f.write_str(
                "the database's certificate has expired or is not valid yet: renew it, and look at both clocks",
            ),
            Refusal::Client => f.write_str(
                "the database does not take this program's certificate: name one that it trusts by sslcert and sslkey",
            ),
            Refusal::Handshake(reason) => write!(
                f,
                "the database and this program could not agree on TLS 1.2 or newer ({reason}): its log may say more"
            ),
        }
    }
}

/// Wherever the driver and the system's errors have put it.
fn rustls_error(error: &tokio_postgres::Error) -> Option<&rustls::Error> {
    let mut cause = error.source();
    while let Some(found) = cause {
        if let Some(rustls) = found.downcast_ref::<rustls::Error>() {
            return Some(rustls);
        }
        let inner = found.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(rustls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Some(rustls);
        }
        cause = found.source();
    }
    None
}
