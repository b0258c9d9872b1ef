//! TLS of the listener: a certificate and a key from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("certificate and key: {0}")]
    Pair(#[from] rustls::Error),
}

/// What turns a connection into an encrypted one.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |path: &Path, reason: String| TlsError::File { path: path.to_owned(), reason };
        let read = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let certificates = read.map_err(|error| failed(cert, error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed(cert, "holds no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}
