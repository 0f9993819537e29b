//! TLS in front of a server on loopback, with certificates of an unknown authority.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Maximum length of a request.
const REQUEST_MAX: usize = 64 * 1024 * 1024;

/// A private certificate authority.
pub struct PrivateAuthority {
    name: String,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for PrivateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrivateAuthority {}", self.name)
    }
}

impl PrivateAuthority {
    pub fn new(name: &str) -> PrivateAuthority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        PrivateAuthority { name: name.to_owned(), pem, issuer: Issuer::new(params, key) }
    }

    /// Writes the authority's certificate to a file.
    pub fn write_to(&self, path: &Path) {
        std::fs::write(path, &self.pem).unwrap();
    }

    fn server_config(&self, host: &str) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }
}

/// TLS for `host` in front of a server that closes a connection after one response. Stopped when
/// dropped.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl TlsFront {
    pub fn start(authority: &PrivateAuthority, host: &str, server: SocketAddr) -> TlsFront {
        let config = Arc::new(authority.server_config(host));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let of_thread = Arc::clone(&is_over);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.load(Ordering::SeqCst) {
                    return;
                }
                let config = Arc::clone(&config);
                // A client that refuses the certificate closes the connection.
                std::thread::spawn(move || drop(relay(config, stream, server)));
            }
        });
        TlsFront { address, is_over }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

/// Relays one request and its response.
fn relay(config: Arc<ServerConfig>, stream: TcpStream, server: SocketAddr) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut client = StreamOwned::new(connection, stream);
    let request = read_request(&mut client)?;
    let mut server = TcpStream::connect(server)?;
    server.write_all(&request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    client.write_all(&answer)?;
    client.conn.send_close_notify();
    client.flush()
}

/// Reads a request whose length is in its header.
fn read_request(client: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = [0; 16 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return Ok(bytes);
            }
        }
        let count = client.read(&mut part)?;
        if count == 0 || bytes.len() > REQUEST_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&part[..count]);
    }
}
