//! Proxy servers, and the addresses that need none.

use std::fmt;
use std::net::IpAddr;

use hyper_util::client::proxy::matcher::Matcher;
use ureq::http::Uri;
use ureq::{Proxy, ProxyProtocol};

use crate::NetworkError;

/// A proxy, with the variable or key that names it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyServer {
    proxy: Proxy,
    named_by: String,
}

impl ProxyServer {
    /// Parses a URL such as `http://proxy.example:3128`. The default scheme is HTTP.
    pub fn parse(text: &str, named_by: &str) -> Result<ProxyServer, NetworkError> {
        let bad = || NetworkError::BadProxy { name: named_by.to_owned() };
        let proxy = Proxy::new(text.trim()).map_err(|_| bad())?;
        if proxy.host().is_empty() {
            return Err(bad());
        }
        Ok(ProxyServer { proxy, named_by: named_by.to_owned() })
    }

    /// Returns the variable or key that names the proxy.
    pub fn named_by(&self) -> &str {
        &self.named_by
    }

    pub(crate) fn protocol(&self) -> ProxyProtocol {
        self.proxy.protocol()
    }

    pub(crate) fn as_ureq(&self) -> &Proxy {
        &self.proxy
    }
}

/// Writes host and port, never the password.
impl fmt::Display for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.proxy.protocol().to_string().to_ascii_lowercase();
        write!(f, "{scheme}://{}:{}", self.proxy.host(), self.proxy.port())
    }
}

impl fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} by {}", self.named_by)
    }
}

/// The route to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRoute<'s> {
    /// No proxy is set for this kind of address.
    Direct,
    /// The host is this machine: no proxy reaches it.
    Loopback,
    /// The list of exceptions has the host.
    Excepted,
    Proxy(&'s ProxyServer),
}

impl<'s> ProxyRoute<'s> {
    pub fn server(&self) -> Option<&'s ProxyServer> {
        match self {
            ProxyRoute::Proxy(server) => Some(server),
            ProxyRoute::Direct | ProxyRoute::Loopback | ProxyRoute::Excepted => None,
        }
    }
}

/// Whether the host of an address is this machine by its name or number.
pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_name = name == "localhost" || name.ends_with(".localhost");
    is_name || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Hosts that are reached without a proxy, as `NO_PROXY` lists them.
///
/// `hyper-util` decides by hosts, domains with all below them, addresses and networks, as curl does. Entries with
/// a port and `*.domain` are made such entries first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProxyExceptions(Vec<String>);

impl ProxyExceptions {
    pub(crate) fn new<'t>(entries: impl Iterator<Item = &'t str>) -> ProxyExceptions {
        let entries = entries.map(str::trim).filter(|entry| !entry.is_empty());
        ProxyExceptions(entries.map(str::to_owned).collect())
    }

    pub(crate) fn has(&self, uri: &Uri) -> bool {
        let port = uri.port_u16().or_else(|| default_port(uri));
        let entries: Vec<String> =
            self.0.iter().filter_map(|entry| without_port(entry, port)).collect();
        if entries.is_empty() {
            return false;
        }
        let matcher = Matcher::builder().all("http://proxy").no(entries.join(",")).build();
        matcher.intercept(uri).is_none()
    }
}

impl fmt::Display for ProxyExceptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

fn default_port(uri: &Uri) -> Option<u16> {
    match uri.scheme_str() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    }
}

/// Returns an entry without its port, or `None` if it is for another port.
fn without_port(entry: &str, port: Option<u16>) -> Option<String> {
    let (host, wanted) = match entry.rsplit_once(':') {
        // Several colons mean an IPv6 address, whose port follows the brackets.
        Some((host, digits)) if !host.contains(':') || host.ends_with(']') => {
            (host, Some(digits.parse::<u16>().ok()?))
        }
        _ => (entry, None),
    };
    if wanted.is_some() && wanted != port {
        return None;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some(host.strip_prefix("*.").map_or(host.to_owned(), |domain| format!(".{domain}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_excepted(entries: &str, url: &str) -> bool {
        let uri: Uri = url.parse().unwrap();
        ProxyExceptions::new(entries.split(',')).has(&uri)
    }

    #[test]
    fn no_proxy_has_hosts_domains_networks_and_ports() {
        for (entries, url, expected) in [
            ("git.example", "https://git.example/x", true),
            ("git.example", "https://GIT.example/x", true),
            ("git.example", "https://api.git.example", true),
            ("git.example", "https://notgit.example", false),
            (".example", "https://git.example", true),
            ("*.example", "https://git.example", true),
            ("*.example", "https://example.com", false),
            ("*", "https://git.example", true),
            ("10.0.0.0/8", "http://10.1.2.3:4318", true),
            ("10.0.0.0/8", "http://11.1.2.3:4318", false),
            ("192.168.1.5", "http://192.168.1.5", true),
            ("fd00::/8", "http://[fd00::1]:8080", true),
            ("fd00::1", "http://[fd00::1]:8080", true),
            ("[fd00::1]:8080", "http://[fd00::1]:8080", true),
            ("[fd00::1]:8081", "http://[fd00::1]:8080", false),
            ("git.example:8443", "https://git.example:8443", true),
            ("git.example:8443", "https://git.example", false),
            ("git.example:443", "https://git.example", true),
            ("git.example:80", "http://git.example", true),
            ("git.example:port", "https://git.example", false),
            ("other.example, git.example", "https://git.example", true),
            ("", "https://git.example", false),
        ] {
            assert_eq!(is_excepted(entries, url), expected, "{entries} {url}");
        }
    }

    #[test]
    fn loopback_is_known_in_all_its_forms() {
        for (url, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://localhost:8080", true),
            ("http://LOCALHOST", true),
            ("http://app.localhost", true),
            ("http://[::1]:80", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://127.0.0.1.example", false),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&url.parse().unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn a_proxy_is_shown_without_its_password() {
        let server = ProxyServer::parse("http://me:hunter2@proxy.example:3128", "X").unwrap();
        let shown = format!("{server} {server:?}");
        assert!(
            shown.contains("http://proxy.example:3128") && !shown.contains("hunter2"),
            "{shown}"
        );
        for bad in ["", "http://", "ftp://proxy.example", "a b"] {
            let error = ProxyServer::parse(bad, "HTTPS_PROXY").unwrap_err();
            assert_eq!(error, NetworkError::BadProxy { name: "HTTPS_PROXY".to_owned() }, "{bad}");
        }
    }
}
