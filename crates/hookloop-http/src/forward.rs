//! Plain HTTP through a proxy: connects to the proxy instead of the host, and sends the whole URL.
//!
//! `ureq` tunnels everything with CONNECT, which proxies commonly allow only to port 443.

use std::fmt;

use data_encoding::BASE64;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, NextTimeout, RustlsConnector, TcpConnector, Transport,
};
use ureq::{Agent, Error};

use crate::proxy::ProxyServer;

/// The route to one host with plain HTTP.
#[derive(Clone)]
pub(crate) struct ForwardProxy {
    proxy: Uri,
    /// The scheme and authority of the host, which come before each path.
    origin: String,
    /// A complete header line, if the proxy requires a login.
    authorization: Option<String>,
}

impl fmt::Debug for ForwardProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForwardProxy to {}", self.origin)
    }
}

impl ForwardProxy {
    pub(crate) fn new(server: &ProxyServer, target: &Uri) -> ForwardProxy {
        let proxy = server.as_ureq();
        let authorization = proxy.username().map(|user| {
            let login = format!("{user}:{}", proxy.password().unwrap_or_default());
            format!("Proxy-Authorization: Basic {}\r\n", BASE64.encode(login.as_bytes()))
        });
        let host = target.authority().map_or("", |authority| authority.as_str());
        // A user name is part of the authority, but not of the URL that the proxy gets.
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        ForwardProxy { proxy: proxy.uri().clone(), origin: format!("http://{host}"), authorization }
    }

    pub(crate) fn agent(self, config: Config) -> Agent {
        let connector = ().chain(TcpConnector::default()).chain(self.clone());
        Agent::with_parts(config, connector.chain(RustlsConnector::default()), self)
    }

    /// Returns the head of a request with the whole address in its first line.
    fn rewritten(&self, head: &[u8]) -> Option<Vec<u8>> {
        let space = head.iter().position(|byte| *byte == b' ')?;
        let line_end = head.windows(2).position(|pair| pair == b"\r\n")? + 2;
        let mut new = Vec::with_capacity(head.len() + self.origin.len());
        new.extend_from_slice(&head[..=space]);
        new.extend_from_slice(self.origin.as_bytes());
        new.extend_from_slice(head.get(space + 1..line_end)?);
        new.extend_from_slice(self.authorization.as_deref().unwrap_or_default().as_bytes());
        new.extend_from_slice(&head[line_end..]);
        Some(new)
    }
}

/// Resolves every name to the proxy, which resolves the host's own name.
impl Resolver for ForwardProxy {
    fn resolve(
        &self,
        _: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        DefaultResolver::default().resolve(&self.proxy, config, timeout)
    }
}

impl<In: Transport> Connector<In> for ForwardProxy {
    type Out = ForwardTransport<In>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<ForwardTransport<In>>, Error> {
        let wrap = |inner| ForwardTransport { inner, forward: self.clone(), has_head: false };
        Ok(chained.map(wrap))
    }
}

/// A connection of one request, whose head is rewritten.
pub(crate) struct ForwardTransport<T> {
    inner: T,
    forward: ForwardProxy,
    /// Whether the first line was sent.
    has_head: bool,
}

impl<T: Transport> fmt::Debug for ForwardTransport<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForwardTransport of {:?}", self.forward)
    }
}

impl<T: Transport> Transport for ForwardTransport<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if self.has_head {
            return self.inner.transmit_output(amount, timeout);
        }
        self.has_head = true;
        let head = self.inner.buffers().output()[..amount].to_vec();
        let head = self.forward.rewritten(&head).ok_or(Error::ConnectionFailed)?;
        let size = self.inner.buffers().output().len();
        for part in head.chunks(size) {
            self.inner.buffers().output()[..part.len()].copy_from_slice(part);
            self.inner.transmit_output(part.len(), timeout)?;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxied_request_has_the_absolute_url_and_proxy_credentials() {
        let server = ProxyServer::parse("http://me:pw@proxy.example:3128", "HTTP_PROXY").unwrap();
        let target: Uri = "http://user@collector.example:4318/v1/traces".parse().unwrap();
        let forward = ForwardProxy::new(&server, &target);
        let head = b"POST /v1/traces HTTP/1.1\r\nhost: collector.example:4318\r\n\r\n";
        let head = String::from_utf8(forward.rewritten(head).unwrap()).unwrap();
        let expected = "POST http://collector.example:4318/v1/traces HTTP/1.1\r\n\
                        Proxy-Authorization: Basic bWU6cHc=\r\nhost: collector.example:4318\r\n\r\n";
        assert_eq!(head, expected);
        assert_eq!(forward.rewritten(b"no head"), None);
    }
}
