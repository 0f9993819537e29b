//! Servers whose names only the proxy can resolve.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use hookloop_testbed::github::GitHub;
use hookloop_testbed::http_proxy::RecordingProxy;
use hookloop_testbed::tls::{PrivateAuthority, TlsFront};

use crate::delivery_project::{DeliveryProject, GREEN};

pub(crate) const AUTHORITY: &str = "Example Company Root";
pub(crate) const FORGE: &str = "https://forge.example";

/// A project on a forge that is reachable only by its name through the proxy.
pub(crate) struct Company {
    pub(crate) project: DeliveryProject,
    pub(crate) forge: GitHub,
    pub(crate) proxy: RecordingProxy,
    pub(crate) authority: PrivateAuthority,
    fronts: Vec<TlsFront>,
}

impl Company {
    /// Returns a company without any network settings for hookloop.
    pub(crate) fn new(config: &str) -> Company {
        let config = format!(
            "delivery: {{}}\nhooks:\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n{config}"
        );
        let (mut project, forge) = DeliveryProject::on_forge(&config, &[("a.txt", "a\n")]);
        let (proxy, authority) = (RecordingProxy::start(), PrivateAuthority::new(AUTHORITY));
        authority.write_to(&project.beside("ca.pem"));
        project.set_variable("HOOKLOOP_GITHUB_API", FORGE);
        let address = forge.address();
        let mut company = Company { project, forge, proxy, authority, fronts: Vec::new() };
        company.encrypted("forge.example", address);
        company
    }

    /// Makes `https://NAME` lead to this server.
    pub(crate) fn encrypted(&mut self, name: &str, server: SocketAddr) {
        let front = TlsFront::start(&self.authority, name, server);
        self.proxy.host(&format!("{name}:443"), front.address());
        self.fronts.push(front);
    }

    pub(crate) fn ca_file(&self) -> String {
        self.project.beside("ca.pem").display().to_string()
    }
}

/// Starts a server that answers every request with an empty object.
pub(crate) fn agreeable() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that disconnects gets no answer.
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    address
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n";
    write!(reader.get_mut(), "{head}Connection: close\r\n\r\n{{}}")
}
