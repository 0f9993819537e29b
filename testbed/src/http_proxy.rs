//! An HTTP proxy that records its traffic: tunnels, and plain requests with absolute URLs.
//!
//! Host names resolve only as a test defines them, so a request that bypasses the proxy reaches no
//! server.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Maximum length of a request's header section.
const HEAD_MAX: usize = 64 * 1024;

/// A running proxy, stopped when dropped.
#[derive(Debug)]
pub struct RecordingProxy {
    address: SocketAddr,
    shared: Arc<Mutex<ProxyRecord>>,
}

#[derive(Debug, Default)]
struct ProxyRecord {
    /// The servers of host names, as `host:port`.
    hosts: HashMap<String, SocketAddr>,
    passed: Vec<String>,
    /// The required value of `Proxy-Authorization`.
    login: Option<String>,
    refusal: Option<u16>,
    is_over: bool,
}

impl RecordingProxy {
    pub fn start() -> RecordingProxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Mutex<ProxyRecord>>::default();
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.lock().unwrap().is_over {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                // A client may close the connection after its response.
                std::thread::spawn(move || drop(serve(&shared, stream)));
            }
        });
        RecordingProxy { address, shared }
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns `http://USER:PASSWORD@127.0.0.1:PORT`.
    pub fn url_with_login(&self, login: &str) -> String {
        format!("http://{login}@{}", self.address)
    }

    /// Maps `host:port` to this server.
    pub fn host(&self, name: &str, server: SocketAddr) {
        self.shared.lock().unwrap().hosts.insert(name.to_owned(), server);
    }

    /// Makes the proxy refuse every request with this status.
    pub fn refuse(&self, status: u16) {
        self.shared.lock().unwrap().refusal = Some(status);
    }

    /// Requires this `Proxy-Authorization` of every request.
    pub fn want_login(&self, authorization: &str) {
        self.shared.lock().unwrap().login = Some(authorization.to_owned());
    }

    /// Returns the method and address of each request, as received: `CONNECT host:port`, `POST
    /// http://host:port/path`.
    pub fn passed(&self) -> Vec<String> {
        self.shared.lock().unwrap().passed.clone()
    }

    pub fn forget(&self) {
        self.shared.lock().unwrap().passed.clear();
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        if let Ok(mut shared) = self.shared.lock() {
            shared.is_over = true;
        }
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(shared: &Mutex<ProxyRecord>, mut client: TcpStream) -> io::Result<()> {
    let (head, rest) = read_head(&mut client)?;
    let first = head.lines().next().unwrap_or_default();
    let mut words = first.split(' ');
    let (method, address) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_tunnel = method == "CONNECT";
    let (name, path) = match address.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => (address, ""),
    };
    let name = if name.contains(':') { name.to_owned() } else { format!("{name}:80") };
    let (server, status) = {
        let mut shared = shared.lock().unwrap();
        shared.passed.push(format!("{method} {address}"));
        let is_let_in = shared.login.as_ref().is_none_or(|login| {
            head.lines().any(|line| line == format!("Proxy-Authorization: {login}"))
        });
        let status = if is_let_in { shared.refusal } else { Some(407) };
        (shared.hosts.get(&name).copied(), status)
    };
    let answer = |client: &mut TcpStream, status: u16| {
        write!(client, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    };
    if let Some(status) = status {
        return answer(&mut client, status);
    }
    let Some(server) = server else { return answer(&mut client, 502) };
    let mut server = TcpStream::connect(server)?;
    if is_tunnel {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        let path = if path.is_empty() { "/" } else { path };
        let headers = head.split_once("\r\n").map_or("", |(_, headers)| headers);
        write!(server, "{method} {path} HTTP/1.1\r\n{headers}")?;
    }
    server.write_all(&rest)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let upwards = std::thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = upwards.join();
    Ok(())
}

/// Returns the header section of a request with its final empty line, and the bytes after it.
fn read_head(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        let count = stream.read(&mut part)?;
        if count == 0 || bytes.len() > HEAD_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&part[..count]);
    }
}
