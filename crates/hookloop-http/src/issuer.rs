//! The issuer of a server's certificate, for a user that has to find the issuer's own certificate.
//!
//! The connection is opened as for a request and ends after the certificate. No data is sent.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme,
};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    ConnectProxyConnector, ConnectionDetails, Connector, SocksConnector, TcpConnector, Transport,
    TransportAdapter,
};
use ureq::{Agent, Error};
use x509_cert::der::Decode;

use crate::proxy::ProxyServer;

/// Returns the name of the issuer, as in its certificates.
pub(crate) fn ask(url: &str, proxy: Option<&ProxyServer>, total: Duration) -> Option<String> {
    let config = Agent::config_builder()
        .timeout_global(Some(total))
        .max_redirects(0)
        .proxy(proxy.map(|proxy| proxy.as_ureq().clone()))
        .build();
    let seen = Arc::<Mutex<Option<Vec<u8>>>>::default();
    let connector =
        ().chain(SocksConnector::default())
            .chain(ConnectProxyConnector::default())
            .chain(TcpConnector::default())
            .chain(CertificateReader(Arc::clone(&seen)));
    // The request always fails. The certificate was seen before that, or not.
    let _ = Agent::with_parts(config, connector, DefaultResolver::default()).get(url).call();
    let last = seen.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    let certificate = x509_cert::Certificate::from_der(&last).ok()?;
    let issuer = certificate.tbs_certificate.issuer.to_string();
    let issuer: String = issuer.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
    Some(issuer).filter(|issuer| !issuer.is_empty())
}

/// The longest name that is shown.
const NAME_MAX: usize = 200;

/// Stores the last certificate of a server's chain, and refuses all.
#[derive(Clone)]
struct CertificateReader(Arc<Mutex<Option<Vec<u8>>>>);

impl fmt::Debug for CertificateReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateReader")
    }
}

impl<In: Transport> Connector<In> for CertificateReader {
    type Out = In;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<In>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        // The same connectors reach a proxy. Without TLS it needs no certificate.
        if !details.needs_tls() {
            return Ok(Some(transport));
        }
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|_| Error::Tls("no name of a server"))?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(self.clone()))
            .with_no_client_auth();
        let mut connection = ClientConnection::new(Arc::new(config), name)?;
        let mut stream = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        stream.set_timeout(details.timeout);
        connection.complete_io(&mut stream)?;
        Err(Error::ConnectionFailed)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl ServerCertVerifier for CertificateReader {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let last = intermediates.last().unwrap_or(end_entity);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(last.to_vec());
        Err(CertificateError::UnknownIssuer.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(CertificateError::UnknownIssuer.into())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(CertificateError::UnknownIssuer.into())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
