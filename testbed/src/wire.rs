//! Single requests over the NATS protocol, and the monitoring pages: enough to query a server
//! without a client library.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the INFO message that the server sends to a new client.
pub fn info(address: SocketAddr) -> io::Result<Value> {
    hello(&mut connect(address)?)
}

/// Sends `body` to `subject` and returns the response as JSON.
pub fn request(address: SocketAddr, subject: &str, body: &str) -> io::Result<Value> {
    let mut stream = connect(address)?;
    hello(&mut stream)?;
    let length = body.len();
    write!(
        stream.get_mut(),
        "CONNECT {{\"verbose\":false,\"headers\":true,\"no_responders\":true}}\r\n\
         SUB answer 1\r\nPUB {subject} answer {length}\r\n{body}\r\n"
    )?;
    loop {
        let line = line(&mut stream)?;
        let mut words = line.split_whitespace();
        match words.next() {
            Some("PING") => stream.get_mut().write_all(b"PONG\r\n")?,
            Some("MSG") => {
                let length = words.next_back().and_then(|word| word.parse().ok()).unwrap_or(0);
                let mut payload = vec![0; length];
                stream.read_exact(&mut payload)?;
                return Ok(serde_json::from_slice(&payload)?);
            }
            Some("PONG" | "+OK" | "INFO") => (),
            _ => return Err(io::Error::other(line)),
        }
    }
}

/// Returns a page of the monitoring port: its status and its JSON.
pub fn page(address: SocketAddr, path: &str) -> io::Result<(u16, Value)> {
    let mut stream = connect(address)?;
    write!(stream.get_mut(), "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    Ok((status, serde_json::from_str(body)?))
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

fn hello(stream: &mut BufReader<TcpStream>) -> io::Result<Value> {
    let line = line(stream)?;
    let info = line.strip_prefix("INFO ").ok_or(io::ErrorKind::InvalidData)?;
    Ok(serde_json::from_str(info)?)
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}
