//! What a server's certificate is held against.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

#[derive(Debug)]
pub(super) enum Check {
    /// Whoever answers is talked to, in a way that nobody else can read.
    Nothing,
    Chain(Roots),
    ChainAndName(Roots),
}

#[derive(Debug)]
pub(super) struct Roots {
    pub(super) store: RootCertStore,
    /// Those of a file, as they stand in it.
    pub(super) given: Vec<CertificateDer<'static>>,
}

#[derive(Debug)]
pub(super) struct Verifier {
    check: Check,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(check: Check, provider: &CryptoProvider) -> Self {
        Self { check, algorithms: provider.signature_verification_algorithms }
    }

    fn chain(
        &self,
        roots: &Roots,
        server: &ParsedCertificate<'_>,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let all = self.algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(server, &roots.store, intermediates, now, all) {
            // A certificate that signed itself, as most guides make one, says that it is an authority, and authorities are
            // taken for no server's. It is trusted where it is itself what the file holds; its time was looked at first.
            Err(error) if is_authority(&error) && roots.given.iter().any(|given| given == end_entity) => Ok(()),
            result => result,
        }
    }
}

/// Rustls has no name of its own for this finding.
fn is_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other))
        if other.0.to_string().contains("CaUsedAsEndEntity"))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (roots, is_named) = match &self.check {
            Check::Nothing => return Ok(ServerCertVerified::assertion()),
            Check::Chain(roots) => (roots, false),
            Check::ChainAndName(roots) => (roots, true),
        };
        let server = ParsedCertificate::try_from(end_entity)?;
        self.chain(roots, &server, end_entity, intermediates, now)?;
        if is_named {
            verify_server_name(&server, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
