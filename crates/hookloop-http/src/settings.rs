//! The proxy and the certificates of the user: from the environment, else from the user's own file.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use ureq::http::Uri;

use crate::NetworkError;
use crate::certificates::CertificateSources;
use crate::proxy::{ProxyExceptions, ProxyRoute, ProxyServer, is_loopback};

/// The variables that name a proxy. The lower-case name of each takes precedence.
pub(crate) const PROXY_VARIABLES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];
const NO_PROXY: &str = "NO_PROXY";
const CERTIFICATE_FILE: &str = "SSL_CERT_FILE";
const CERTIFICATE_DIRECTORY: &str = "SSL_CERT_DIR";
/// Set if a web server runs the program. Then a header named `Proxy` arrives as `HTTP_PROXY`.
const CGI: &str = "REQUEST_METHOD";
/// The name of the key in messages.
const PROXY_KEY: &str = "network.proxy in your config.yaml";

/// `network:` in the user's own file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserNetwork {
    pub proxy: Option<ProxyServer>,
    /// The address of the proxy, for programs that read it from their environment.
    pub proxy_address: Option<String>,
    /// Hosts that are reached without the proxy.
    pub no_proxy: Vec<String>,
    /// Additional root certificates.
    pub ca_file: Option<PathBuf>,
}

impl UserNetwork {
    /// Checks the address of a proxy as the user's file has it.
    pub fn proxy(text: &str) -> Result<ProxyServer, NetworkError> {
        ProxyServer::parse(text, PROXY_KEY)
    }

    /// Adds the user's proxy to an environment that names none, for agents and git.
    pub fn add_to(&self, environment: &mut Vec<(OsString, OsString)>) {
        let around = Variables(environment);
        let has_proxy = PROXY_VARIABLES.iter().any(|name| around.get(name).is_some());
        let has_exceptions = around.get(NO_PROXY).is_some();
        let mut set = |name: &str, value: &str| {
            for name in [name.to_ascii_lowercase(), name.to_owned()] {
                environment.retain(|(known, _)| known.as_os_str() != OsStr::new(&name));
                environment.push((name.into(), value.into()));
            }
        };
        if let Some(address) = &self.proxy_address
            && !has_proxy
        {
            set("HTTPS_PROXY", address);
            set("HTTP_PROXY", address);
        }
        if !self.no_proxy.is_empty() && !has_exceptions {
            set(NO_PROXY, &self.no_proxy.join(","));
        }
    }
}

/// The user's network settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    https: Option<ProxyServer>,
    http: Option<ProxyServer>,
    exceptions: ProxyExceptions,
    pub certificates: CertificateSources,
}

impl NetworkSettings {
    /// Combines the environment and the user's file.
    ///
    /// For the proxy, the exceptions and the certificates, the environment takes precedence.
    pub fn new(
        environment: &[(OsString, OsString)],
        user: &UserNetwork,
    ) -> Result<NetworkSettings, NetworkError> {
        let around = Variables(environment);
        let is_cgi = around.exact(CGI).is_some();
        let named = |name: &str| -> Result<Option<ProxyServer>, NetworkError> {
            let found = match name {
                "HTTP_PROXY" if is_cgi => around.exact("http_proxy").map(|value| (name, value)),
                _ => around.get(name),
            };
            found.map(|(name, value)| ProxyServer::parse(value, name)).transpose()
        };
        let all = named("ALL_PROXY")?;
        let mut https = named("HTTPS_PROXY")?.or_else(|| all.clone());
        let mut http = named("HTTP_PROXY")?.or(all);
        if https.is_none() && http.is_none() {
            https.clone_from(&user.proxy);
            http.clone_from(&user.proxy);
        }
        let exceptions = match around.get(NO_PROXY) {
            Some((_, list)) => ProxyExceptions::new(list.split([',', ' '])),
            None => ProxyExceptions::new(user.no_proxy.iter().map(String::as_str)),
        };
        let path = |name: &str| around.path(name);
        let certificates = CertificateSources {
            file: path(CERTIFICATE_FILE).map(PathBuf::from),
            directories: path(CERTIFICATE_DIRECTORY)
                .map(|list| std::env::split_paths(list).collect())
                .unwrap_or_default(),
            ca_file: user.ca_file.clone(),
        };
        Ok(NetworkSettings { https, http, exceptions, certificates })
    }

    pub(crate) fn route(&self, uri: &Uri) -> ProxyRoute<'_> {
        let server = match uri.scheme_str() {
            Some("https") => &self.https,
            _ => &self.http,
        };
        match server {
            None => ProxyRoute::Direct,
            Some(_) if is_loopback(uri) => ProxyRoute::Loopback,
            Some(_) if self.exceptions.has(uri) => ProxyRoute::Excepted,
            Some(server) => ProxyRoute::Proxy(server),
        }
    }

    /// Returns the proxies for https and for http.
    pub fn proxies(&self) -> (Option<&ProxyServer>, Option<&ProxyServer>) {
        (self.https.as_ref(), self.http.as_ref())
    }

    /// Returns the hosts that are reached without a proxy, separated by commas.
    pub fn no_proxy(&self) -> String {
        self.exceptions.to_string()
    }
}

/// An environment in which an empty variable counts as unset.
struct Variables<'e>(&'e [(OsString, OsString)]);

impl<'e> Variables<'e> {
    fn path(&self, name: &str) -> Option<&'e OsStr> {
        let found = self.0.iter().find(|(known, _)| known.as_os_str() == OsStr::new(name))?;
        Some(found.1.as_os_str()).filter(|value| !value.is_empty())
    }

    fn exact(&self, name: &str) -> Option<&'e str> {
        self.path(name)?.to_str().map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns a variable in lower case, else in upper case, with the name that was found.
    fn get<'n>(&self, name: &'n str) -> Option<(&'n str, &'e str)> {
        let lower = self.exact(&name.to_ascii_lowercase());
        lower.or_else(|| self.exact(name)).map(|value| (name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn own(address: &str) -> UserNetwork {
        UserNetwork {
            proxy: Some(UserNetwork::proxy(address).unwrap()),
            proxy_address: Some(address.to_owned()),
            no_proxy: vec!["own.example".to_owned()],
            ca_file: None,
        }
    }

    fn way(pairs: &[(&str, &str)], user: &UserNetwork, url: &str) -> String {
        let settings = NetworkSettings::new(&environment(pairs), user).unwrap();
        match settings.route(&url.parse().unwrap()) {
            ProxyRoute::Proxy(server) => server.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_proxy_is_chosen_by_scheme_and_the_environment_comes_first() {
        let none = UserNetwork::default();
        let (https, http) = (("HTTPS_PROXY", "http://s:1"), ("http_proxy", "http://p:2"));
        let all = ("ALL_PROXY", "socks5h://a:3");
        let (tls, plain) = ("https://git.example", "http://git.example");
        for (pairs, user, url, expected) in [
            (&[][..], &none, tls, "Direct"),
            (&[https, http], &none, tls, "http://s:1"),
            (&[https, http], &none, plain, "http://p:2"),
            (&[https], &none, plain, "Direct"),
            (&[https, all], &none, plain, "socks5h://a:3"),
            (&[https, all], &none, tls, "http://s:1"),
            (&[("HTTPS_PROXY", "")], &none, tls, "Direct"),
            (&[("HTTPS_PROXY", "u:1"), ("https_proxy", "l:2")], &none, tls, "http://l:2"),
            (&[], &own("http://f:4"), tls, "http://f:4"),
            (&[], &own("http://f:4"), plain, "http://f:4"),
            (&[], &own("http://f:4"), "https://own.example", "Excepted"),
            (&[https], &own("http://f:4"), tls, "http://s:1"),
            (&[https], &own("http://f:4"), plain, "Direct"),
            (&[("NO_PROXY", "x")], &own("http://f:4"), "https://own.example", "http://f:4"),
            (&[https, ("no_proxy", "git.example")], &none, tls, "Excepted"),
            (&[https], &none, "https://127.0.0.1:1", "Loopback"),
            (&[("HTTP_PROXY", "e:1"), ("REQUEST_METHOD", "GET")], &none, plain, "Direct"),
        ] {
            assert_eq!(way(pairs, user, url), expected, "{pairs:?} {url}");
        }
    }

    #[test]
    fn a_proxy_that_can_not_be_read_is_an_error_without_its_value() {
        let pairs = environment(&[("HTTPS_PROXY", "gopher://me:hunter2@p")]);
        let error = NetworkSettings::new(&pairs, &UserNetwork::default()).unwrap_err().to_string();
        assert!(error.contains("HTTPS_PROXY") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn programs_get_the_users_proxy_unless_they_have_one() {
        let user = own("http://me:pw@f:4");
        let mut variables = environment(&[("PATH", "/bin")]);
        user.add_to(&mut variables);
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
            assert_eq!(Variables(&variables).exact(name), Some("http://me:pw@f:4"), "{name}");
        }
        assert_eq!(Variables(&variables).exact("no_proxy"), Some("own.example"));
        let mut given = environment(&[("all_proxy", "http://e:1"), ("NO_PROXY", "z")]);
        let before = given.clone();
        user.add_to(&mut given);
        assert_eq!(given, before);
    }
}
