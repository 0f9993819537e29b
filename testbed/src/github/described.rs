//! A mock server that responds according to GitHub's own API description, and refuses every request
//! that does not conform to it.
//!
//! A relay in front of it records the requests. The description does not contain GraphQL, for which
//! the relay itself responds.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Recorded, Route};
use crate::http::{self, Asked};
use crate::lease::Lease;
use crate::process::{mortal, spawn};
use crate::wait_for;

/// Timeout of the start: the mock server first parses the description, possibly on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(120);
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A running mock server with its relay, stopped when dropped.
#[derive(Debug)]
pub struct Described {
    address: SocketAddr,
    shared: Arc<Shared>,
    child: Child,
    _port: Lease,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    record: Mutex<Vec<Recorded>>,
    /// Responses that replace those of the description.
    instead: Mutex<Vec<(Route, u16, Value)>>,
    is_over: Mutex<bool>,
}

impl Described {
    /// Starts the mock server from the directory that `.ci/forge-contract` creates.
    pub fn start(directory: &Path) -> Described {
        let port = Lease::port();
        let upstream = SocketAddr::from(([127, 0, 0, 1], port.number));
        let mut command = mortal(None, directory.join("node_modules/.bin/prism"));
        command.args(["mock", "-h", "127.0.0.1", "-p", &port.number.to_string(), "--errors"]);
        command.arg(directory.join("api.json")).stdout(Stdio::null()).stderr(Stdio::null());
        let child = spawn(command);
        let silent = || format!("{} does not listen", directory.display());
        wait_for(START_LIMIT, silent, || TcpStream::connect(upstream).ok());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            upstream,
            record: Mutex::default(),
            instead: Mutex::default(),
            is_over: Mutex::new(false),
        });
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if *of_thread.is_over.lock().unwrap() {
                    return;
                }
                of_thread.relay(stream);
            }
        });
        Described { address, shared, child, _port: port }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the response to the next conforming request of this route.
    pub fn answer_next(&self, route: Route, status: u16, body: Value) {
        self.shared.instead.lock().unwrap().push((route, status, body));
    }

    /// Returns the received requests, with the responses of the description.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.record.lock().unwrap().clone()
    }
}

impl Drop for Described {
    fn drop(&mut self) {
        *self.shared.is_over.lock().unwrap() = true;
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Shared {
    fn relay(&self, mut stream: TcpStream) {
        let Ok(asked) = http::read(&mut stream) else { return };
        let route = Route::of(&asked.method, &asked.path).map(|(route, _)| route);
        let answer = match route {
            Some(Route::GraphQl) => None,
            _ => Some(self.forward(&asked)),
        };
        let status = answer.as_ref().map_or(200, |answer| status_of(answer));
        self.record.lock().unwrap().push(Recorded {
            method: asked.method,
            path: asked.path,
            route,
            status: Some(status),
            body: serde_json::from_slice(&asked.body).unwrap_or_default(),
        });
        let is_meant = |(meant, ..): &(Route, u16, Value)| Some(*meant) == route && status < 300;
        let mut instead = self.instead.lock().unwrap();
        let instead = instead.iter().position(is_meant).map(|at| instead.remove(at));
        match (instead, answer) {
            (Some((_, status, body)), _) => http::answer_json(&mut stream, status, &body),
            (None, Some(answer)) => drop(stream.write_all(&answer)),
            (None, None) => http::answer_json(&mut stream, 200, &json!({ "data": {} })),
        }
    }

    /// Returns the complete response, unchanged.
    fn forward(&self, asked: &Asked) -> Vec<u8> {
        let mut upstream = TcpStream::connect(self.upstream).unwrap();
        upstream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
        let mut head = format!("{} {} HTTP/1.1\r\n", asked.method, asked.path);
        // The description does not contain the media type that GitHub asks clients to accept.
        let own = ["accept", "connection", "content-length", "transfer-encoding", "expect"];
        for (name, value) in &asked.headers {
            if !own.contains(&name.as_str()) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        if !asked.body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", asked.body.len()));
        }
        head.push_str("connection: close\r\n\r\n");
        upstream.write_all(&[head.as_bytes(), &asked.body].concat()).unwrap();
        let mut answer = Vec::new();
        upstream.read_to_end(&mut answer).unwrap();
        answer
    }
}

fn status_of(answer: &[u8]) -> u16 {
    let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\r').next().unwrap());
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("an answer has a status")
}
