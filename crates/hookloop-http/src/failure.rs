//! The cause of a failed request in words, with the next step.

use std::io::ErrorKind;

use crate::proxy::ProxyServer;
use crate::without_user;

/// The reason why a request got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure {
    pub cause: FailureCause,
    pub message: String,
    pub hint: Option<String>,
}

/// The part of the connection that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The proxy was not reached, or refused.
    Proxy,
    /// The server's certificate is not accepted.
    Certificate,
    /// No address is known for the host.
    Name,
    Timeout,
    Other,
}

pub(crate) fn explain(
    url: &str,
    proxy: Option<&ProxyServer>,
    error: &ureq::Error,
) -> RequestFailure {
    let host = without_user(url);
    let named_by = proxy.map_or("", ProxyServer::named_by);
    let check_proxy = || format!("check {named_by}, or add the host to NO_PROXY");
    let through = proxy.map_or(String::new(), |proxy| format!(" through the proxy {proxy}"));
    let failure =
        |cause, message: String, hint: Option<String>| RequestFailure { cause, message, hint };
    match (error, proxy) {
        (ureq::Error::ConnectProxyFailed(why), Some(proxy)) => {
            let hint = if why.contains("407") {
                format!(
                    "the proxy wants a login: write {named_by} as http://USER:PASSWORD@HOST:PORT"
                )
            } else {
                check_proxy()
            };
            let message = format!("the proxy {proxy} refused to connect to {host}: {why}");
            failure(FailureCause::Proxy, message, Some(hint))
        }
        (error, Some(proxy)) if is_about_name(error) => {
            let message = format!("the name of the proxy {proxy} is not known");
            failure(FailureCause::Proxy, message, Some(check_proxy()))
        }
        (error, None) if is_about_name(error) => {
            let hint = "behind a company's proxy, set HTTPS_PROXY".to_owned();
            let message = format!("the name {host} is not known");
            failure(FailureCause::Name, message, Some(hint))
        }
        (ureq::Error::Timeout(_), _) => {
            let message = format!("{host} did not answer in time{through}");
            let hint = proxy.map(|_| check_proxy());
            failure(FailureCause::Timeout, message, hint)
        }
        (error, _) if is_about_certificate(error) => {
            let hint = "set SSL_CERT_FILE to a file with the certificates of your company's authorities, or \
                        write `network: {ca_file: PATH}` to ~/.config/hookloop/config.yaml";
            let message = format!("the certificate of {host} is not accepted{through}: {error}");
            failure(FailureCause::Certificate, message, Some(hint.to_owned()))
        }
        (ureq::Error::Io(io), Some(proxy)) if is_unreached(io.kind()) => {
            let message = format!("the proxy {proxy} is not reached: {io}");
            failure(FailureCause::Proxy, message, Some(check_proxy()))
        }
        (error, _) => failure(FailureCause::Other, format!("{error}{through}"), None),
    }
}

/// Whether a name has no address. The system's resolver reports that as an I/O error without a
/// kind.
fn is_about_name(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound => true,
        ureq::Error::Io(io) => io.to_string().contains("failed to lookup address"),
        _ => false,
    }
}

fn is_unreached(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::AddrNotAvailable
    )
}

/// Whether TLS failed because of the other side's certificate. An I/O error may contain the cause.
fn is_about_certificate(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Rustls(_) => error.to_string().contains("certificate"),
        ureq::Error::Io(io) => {
            io.kind() == ErrorKind::InvalidData && io.to_string().contains("certificate")
        }
        _ => false,
    }
}

impl RequestFailure {
    /// Returns message and next step in one line.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }
}
