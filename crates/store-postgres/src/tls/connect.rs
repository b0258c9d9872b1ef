//! The driver's view of TLS: a handshake over a socket, and a stream that knows which certificate it was made with.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

use super::Tls;

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        // Asked for before it is known whether TLS will be used: a name that cannot be one is no error yet.
        let name = ServerName::try_from(domain.to_owned()).ok();
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.client)), name })
    }
}

pub(crate) struct Handshake {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let unnamed = || io::Error::other("the host in the URL is neither a name nor an address");
            let name = self.name.ok_or_else(unnamed)?;
            Ok(Stream(Box::new(self.connector.connect(name, socket).await?)))
        })
    }
}

pub(crate) struct Stream(Box<client::TlsStream<Socket>>);

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

impl TlsStream for Stream {
    /// The password's proof is bound to the certificate (RFC 5929, `tls-server-end-point`), so that somebody in between, who
    /// has another, cannot pass the proof on: also where the certificate itself is not verified.
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let hash = certificate.and_then(|certificate| {
            let algorithm = signature_hash(certificate)?;
            Some(digest(algorithm, certificate).as_ref().to_vec())
        });
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Object identifiers of signatures, and the hash that each uses; SHA-1 is replaced, as the RFC asks.
const SIGNATURES: [(&[u8], &Algorithm); 7] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &SHA384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &SHA512),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], &SHA256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], &SHA384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], &SHA512),
];

/// The hash with which a certificate is signed. `None` for signatures that name none: those connections are not bound.
fn signature_hash(certificate: &[u8]) -> Option<&'static Algorithm> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_ID: u8 = 6;
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (_, after_body) = element(certificate, SEQUENCE)?;
    let (signature, _) = element(after_body, SEQUENCE)?;
    let (id, _) = element(signature, OBJECT_ID)?;
    SIGNATURES.iter().find(|(known, _)| *known == id).map(|(_, hash)| *hash)
}

/// The content of the first DER element, which has this tag, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 4)?;
        (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
    };
    rest.split_at_checked(length).filter(|_| found == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_signature_is_found_and_rubbish_has_none() {
        let id = SIGNATURES[5].0;
        let mut body =
            vec![0x30, 3, 2, 1, 7, 0x30, u8::try_from(id.len()).unwrap() + 2, 6, u8::try_from(id.len()).unwrap()];
        body.extend(id);
        let mut certificate = vec![0x30, 0x81, u8::try_from(body.len()).unwrap()];
        certificate.extend(&body);
        assert_eq!(signature_hash(&certificate), Some(&SHA384));
        for length in 0..certificate.len() {
            assert_eq!(signature_hash(&certificate[..length]), None, "{length}");
        }
        assert_eq!(signature_hash(&[0x30, 0xff, 1, 2, 3]), None);
    }
}
