//! The addresses of GitHub's API and of its resources.

use std::fmt;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::str::FromStr;

use super::super::remote::is_host;

const GITHUB: &str = "github.com";
/// The path of the API on a self-hosted server.
const ENTERPRISE: &str = "/api/v3";

/// The address of the API. The token is sent there, so the user decides it, never a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address of an API: `https://api.github.com`, or `https://HOST/api/v3` for a server of one's own"
)]
pub struct BadApi(String);

impl Default for ApiAddress {
    fn default() -> Self {
        ApiAddress("https://api.github.com".to_owned())
    }
}

impl FromStr for ApiAddress {
    type Err = BadApi;

    /// Reads an address. Without encryption it must be on this machine.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadApi(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(bad)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = path.strip_suffix('/').unwrap_or(path);
        let is_allowed = match scheme {
            "https" => true,
            "http" => is_loopback(host),
            _ => false,
        };
        let is_part = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !part.is_empty() && part.bytes().all(is_plain)
        };
        let is_path = path.is_empty() || path[1..].split('/').all(is_part);
        match is_allowed && is_host(host) && is_path {
            true => Ok(ApiAddress(format!("{scheme}://{host}{path}"))),
            false => Err(bad()),
        }
    }
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ApiAddress {
    /// Returns the API of a host of repositories; `None` if that is no name of a host.
    pub fn of_host(host: &str) -> Option<ApiAddress> {
        match host {
            GITHUB => Some(ApiAddress::default()),
            host if is_host(host) => format!("https://{host}{ENTERPRISE}").parse().ok(),
            _ => None,
        }
    }

    /// Returns the host whose tokens the API accepts.
    pub fn host(&self) -> &str {
        let host = self.0.split("://").nth(1).unwrap_or_default();
        match host.split('/').next().unwrap_or_default() {
            "api.github.com" => GITHUB,
            host => host,
        }
    }

    pub(super) fn at(&self, route: &ApiRoute) -> String {
        format!("{}{}", self.0, route.0)
    }

    /// Returns the address of GraphQL, which is beside the rest of the API.
    pub(super) fn graphql(&self) -> String {
        match self.0.strip_suffix(ENTERPRISE) {
            Some(host) => format!("{host}/api/graphql"),
            None => format!("{}/graphql", self.0),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The path of a resource below the API's address. Each part stays one part, for any content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiRoute(String);

impl ApiRoute {
    pub(super) fn new(parts: &[&str]) -> ApiRoute {
        let mut route = String::new();
        for part in parts {
            route.push('/');
            match part.bytes().all(|byte| byte == b'.') {
                // A reader of `..` goes up, even if it is encoded. No resource has such a name.
                true => route.push('_'),
                false => encode(part, &mut route),
            }
        }
        ApiRoute(route)
    }

    #[must_use]
    pub(super) fn with(&self, query: &[(&str, &str)]) -> ApiRoute {
        let mut route = self.0.clone();
        for (name, value) in query {
            route.push(if route.contains('?') { '&' } else { '?' });
            encode(name, &mut route);
            route.push('=');
            encode(value, &mut route);
        }
        ApiRoute(route)
    }
}

/// Encodes all characters except those that are unreserved (RFC 3986, 2.3).
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            // Writing to a string can't fail.
            false => drop(write!(out, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_api_addresses_are_parsed() {
        for (text, host, graphql) in [
            ("https://api.github.com", "github.com", "https://api.github.com/graphql"),
            ("https://api.github.com/", "github.com", "https://api.github.com/graphql"),
            ("https://git.example/api/v3", "git.example", "https://git.example/api/graphql"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080/graphql"),
            ("http://localhost:1", "localhost:1", "http://localhost:1/graphql"),
        ] {
            let api: ApiAddress = text.parse().unwrap();
            assert_eq!((api.host(), api.graphql()), (host, graphql.to_owned()), "{text}");
        }
        assert_eq!(ApiAddress::of_host("github.com"), Some(ApiAddress::default()));
        assert_eq!(
            ApiAddress::of_host("git.example").unwrap().to_string(),
            "https://git.example/api/v3"
        );
        assert_eq!(ApiAddress::of_host("x/y"), None);
    }

    #[test]
    fn invalid_api_addresses_are_rejected() {
        for text in [
            "",
            "api.github.com",
            "http://api.github.com",
            "http://127.0.0.1.evil.example",
            "https://user:secret@api.github.com",
            "https://api.github.com/../x",
            "https://api.github.com?x",
            "https://api.github.com#x",
            "https://api.github.com//",
            "https://",
            "file:///x",
            "https://a b",
        ] {
            assert_eq!(text.parse::<ApiAddress>(), Err(BadApi(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn route_segments_and_query_values_are_percent_encoded() {
        let route = ApiRoute::new(&["repos", "o", "a/../b?x#y", "..", "%2e"]);
        assert_eq!(route.0, "/repos/o/a%2F..%2Fb%3Fx%23y/_/%252e");
        let route = route.with(&[("head", "o:a&state=all"), ("x", "é +")]);
        let query = route.0.split_once('?').unwrap().1;
        assert_eq!(query, "head=o%3Aa%26state%3Dall&x=%C3%A9%20%2B");
    }
}
