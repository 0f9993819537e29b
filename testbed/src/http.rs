//! A minimal HTTP server for agents and forges: one request and one response per connection.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Maximum length of a request body.
const BODY_MAX: usize = 64 * 1024 * 1024;

pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Header names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn read(stream: &mut TcpStream) -> Result<Asked> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().ok_or(ErrorKind::InvalidData)?.to_owned();
    let (mut length, mut is_chunked, mut waits) = (0, false, false);
    let mut headers = Vec::new();
    while let Some((name, value)) = line(&mut reader)?.split_once(':') {
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match name.as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = value.to_ascii_lowercase().contains("chunked"),
            "expect" => waits = value.eq_ignore_ascii_case("100-continue"),
            _ => {}
        }
        headers.push((name, value.to_owned()));
    }
    if waits {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = Vec::new();
    while is_chunked {
        let size = line(&mut reader)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| ErrorKind::InvalidData)?;
        append(&mut reader, &mut body, size)?;
        line(&mut reader)?;
        is_chunked = size > 0;
    }
    append(&mut reader, &mut body, length)?;
    Ok(Asked { method, path, headers, body })
}

fn append(reader: &mut impl Read, body: &mut Vec<u8>, size: usize) -> Result<()> {
    if body.len() + size > BODY_MAX {
        return Err(ErrorKind::OutOfMemory.into());
    }
    let from = body.len();
    body.resize(from + size, 0);
    reader.read_exact(&mut body[from..])
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(Error::from(ErrorKind::UnexpectedEof)),
        _ => Ok(line.trim_end().to_owned()),
    }
}

pub(crate) fn answer_json(stream: &mut TcpStream, status: u16, body: &Value) {
    answer_with(stream, status, &[], body.to_string().as_bytes());
}

pub(crate) fn answer_with(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()));
    // The client may close the connection at any time.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

/// Sends events, each with an optional name.
pub(crate) fn answer_events(stream: &mut TcpStream, events: &[(Option<&str>, String)]) {
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            .to_owned();
    for (name, data) in events {
        if let Some(name) = name {
            text.push_str(&format!("event: {name}\n"));
        }
        text.push_str(&format!("data: {data}\n\n"));
    }
    let _ = stream.write_all(text.as_bytes());
}

/// Waits until the peer closes the connection.
pub(crate) fn wait_for_end(stream: &mut TcpStream, limit: Duration) {
    let _ = stream.set_read_timeout(Some(limit));
    let _ = stream.read(&mut [0]);
}
