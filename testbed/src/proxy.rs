//! A proxy in front of a real NATS server that injects faults when a test plans them.
//!
//! It parses just enough of the NATS protocol to recognize the messages of a client and their
//! responses. It removes the addresses of other cluster members, because a client would bypass the
//! proxy.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::wait_for;

/// Timeout for a planned fault to happen.
const HAPPENED: Duration = Duration::from_secs(30);

/// A fault of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The client gets this response, and the server never receives the message.
    Answer(String),
    /// The client gets a no-responders status, and the server never receives the message.
    NoResponders,
    /// The server receives the message, and its response is lost.
    LoseAnswer,
    /// The server receives the message, and the connection closes instead of the response.
    CutAnswer,
    /// The message is lost.
    Lose,
    /// The connection closes instead of the message.
    Cut,
    /// The message is delayed, with everything after it.
    Delay(Duration),
    /// The server delivers an event of this subject to a consumer, and the delivery is lost.
    LoseDelivery,
}

impl Fault {
    /// Returns the response of a server that refuses to store.
    pub fn refusal(err_code: u64, description: &str) -> Fault {
        let error = serde_json::json!({
            "error": { "code": 400, "err_code": err_code, "description": description },
        });
        Fault::Answer(error.to_string())
    }

    /// Returns whether the fault applies only to messages that expect a response.
    fn is_about_answers(&self) -> bool {
        !matches!(self, Fault::Lose | Fault::Cut | Fault::Delay(_))
    }

    /// Returns whether the fault applies to deliveries of the server instead of messages of the
    /// client.
    fn is_about_deliveries(&self) -> bool {
        matches!(self, Fault::LoseDelivery)
    }
}

/// A planned fault.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Prefix of the affected subjects.
    pub subject: String,
    /// Number of matching messages before the first affected one.
    pub after: usize,
    /// Number of affected messages in a row.
    pub times: usize,
    pub fault: Fault,
}

impl Plan {
    /// Plans a fault of the next matching message.
    pub fn next(subject: &str, fault: Fault) -> Plan {
        Plan { subject: subject.to_owned(), after: 0, times: 1, fault }
    }
}

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    plans: Mutex<Vec<Plan>>,
    open: Mutex<Vec<Arc<Connection>>>,
    closed: AtomicBool,
}

impl Proxy {
    pub fn to(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (plans, open) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { server, plans, open, closed: AtomicBool::new(false) });
        let accepting = shared.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Proxy { address, shared }
    }

    /// Returns the client URL: `nats://127.0.0.1:21000`.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Plans a fault, after those that are planned for the same subjects.
    pub fn plan(&self, plan: Plan) {
        self.shared.plans.lock().unwrap().push(plan);
    }

    /// Waits until all planned faults have happened.
    pub fn wait_happened(&self) {
        let left = || self.shared.plans.lock().unwrap().clone();
        wait_for(HAPPENED, || format!("{:?}", left()), || left().is_empty().then_some(()));
    }

    /// Cancels the planned faults that have not happened.
    pub fn cancel_plans(&self) {
        self.shared.plans.lock().unwrap().clear();
    }

    /// Closes every connection.
    pub fn cut(&self) {
        self.shared.open.lock().unwrap().drain(..).for_each(|connection| connection.cut());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that waits for clients.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.closed.load(Ordering::SeqCst) {
                return;
            }
            // A stopped server accepts no connections: the client retries.
            let Ok(connection) = client.and_then(|client| Connection::new(client, self.server))
            else {
                continue;
            };
            let connection = Arc::new(connection);
            self.open.lock().unwrap().push(connection.clone());
            let (plans, answers) = (self.clone(), connection.clone());
            let incoming = self.clone();
            std::thread::spawn(move || {
                let _ = connection.carry_to_server(&plans);
                connection.cut();
            });
            std::thread::spawn(move || {
                let _ = answers.carry_to_client(&incoming);
                answers.cut();
            });
        }
    }

    /// Takes the planned fault of a published message.
    fn fault(&self, subject: &str, wants_answer: bool) -> Option<Fault> {
        self.next_fault(|plan| {
            subject.starts_with(&plan.subject)
                && !plan.fault.is_about_deliveries()
                && (wants_answer || !plan.fault.is_about_answers())
        })
    }

    /// Returns whether the delivery of an event to the client is lost.
    fn loses_delivery(&self, subject: &str) -> bool {
        let concerns =
            |plan: &Plan| plan.fault.is_about_deliveries() && subject.starts_with(&plan.subject);
        self.next_fault(concerns).is_some()
    }

    /// Takes the first planned fault that matches `concerns`.
    fn next_fault(&self, concerns: impl Fn(&Plan) -> bool) -> Option<Fault> {
        let mut plans = self.plans.lock().unwrap();
        let at = plans.iter().position(concerns)?;
        let plan = &mut plans[at];
        if plan.after > 0 {
            plan.after -= 1;
            return None;
        }
        let fault = plan.fault.clone();
        plan.times -= 1;
        if plan.times == 0 {
            plans.remove(at);
        }
        Some(fault)
    }
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
    /// Writes of frames to the client are serialized.
    to_client: Mutex<TcpStream>,
    /// Subjects to which the client is subscribed, with its subscription ids.
    subscriptions: Mutex<Vec<(String, String)>>,
    /// Reply subjects whose responses are lost, and those that close the connection.
    lost: Mutex<HashSet<String>>,
    cutting: Mutex<HashSet<String>>,
}

impl Connection {
    fn new(client: TcpStream, server: SocketAddr) -> io::Result<Connection> {
        let server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(Connection {
            to_client: Mutex::new(client.try_clone()?),
            client,
            server,
            subscriptions: Mutex::default(),
            lost: Mutex::default(),
            cutting: Mutex::default(),
        })
    }

    fn cut(&self) {
        // The connection may already be closed.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    fn carry_to_server(&self, plans: &Shared) -> io::Result<()> {
        let mut from = BufReader::new(self.client.try_clone()?);
        while let Some(frame) = Frame::read(&mut from)? {
            let words = frame.words();
            match words[..] {
                ["SUB", subject, .., number] => {
                    let subscription = (subject.to_owned(), number.to_owned());
                    self.subscriptions.lock().unwrap().push(subscription);
                }
                ["PUB", subject, reply, _] | ["HPUB", subject, reply, _, _] => {
                    if let Some(fault) = plans.fault(subject, true)
                        && !self.suffer(&fault, Some(reply))?
                    {
                        continue;
                    }
                }
                ["PUB", subject, _] | ["HPUB", subject, _, _] => {
                    if let Some(fault) = plans.fault(subject, false)
                        && !self.suffer(&fault, None)?
                    {
                        continue;
                    }
                }
                _ => {}
            }
            (&self.server).write_all(&frame.bytes)?;
        }
        Ok(())
    }

    /// Applies a fault; returns whether the server receives the message.
    fn suffer(&self, fault: &Fault, reply: Option<&str>) -> io::Result<bool> {
        let reply = reply.unwrap_or_default();
        match fault {
            Fault::Answer(payload) => {
                let number = self.number_of(reply);
                let answer = format!("MSG {reply} {number} {}\r\n{payload}\r\n", payload.len());
                self.tell(answer.as_bytes())?;
                Ok(false)
            }
            Fault::NoResponders => {
                let number = self.number_of(reply);
                let headers = "NATS/1.0 503\r\n\r\n";
                let length = headers.len();
                let answer = format!("HMSG {reply} {number} {length} {length}\r\n{headers}\r\n");
                self.tell(answer.as_bytes())?;
                Ok(false)
            }
            Fault::LoseAnswer => {
                self.lost.lock().unwrap().insert(reply.to_owned());
                Ok(true)
            }
            Fault::CutAnswer => {
                self.cutting.lock().unwrap().insert(reply.to_owned());
                Ok(true)
            }
            Fault::Lose | Fault::LoseDelivery => Ok(false),
            Fault::Cut => Err(io::ErrorKind::ConnectionAborted.into()),
            Fault::Delay(time) => {
                std::thread::sleep(*time);
                Ok(true)
            }
        }
    }

    fn carry_to_client(&self, plans: &Shared) -> io::Result<()> {
        let mut from = BufReader::new(self.server.try_clone()?);
        while let Some(frame) = Frame::read(&mut from)? {
            match frame.words()[..] {
                ["MSG" | "HMSG", subject, ..] if self.lost.lock().unwrap().remove(subject) => {}
                ["MSG" | "HMSG", subject, ..] if self.cutting.lock().unwrap().remove(subject) => {
                    return Ok(());
                }
                ["MSG" | "HMSG", subject, ..] if plans.loses_delivery(subject) => {}
                ["INFO", ..] => self.tell(&without_others(&frame.bytes))?,
                _ => self.tell(&frame.bytes)?,
            }
        }
        Ok(())
    }

    fn tell(&self, bytes: &[u8]) -> io::Result<()> {
        self.to_client.lock().unwrap().write_all(bytes)
    }

    /// Returns the client's subscription id for a reply subject.
    fn number_of(&self, reply: &str) -> String {
        let subscriptions = self.subscriptions.lock().unwrap();
        let listens = |(subject, _): &&(String, String)| {
            subject == reply
                || subject.strip_suffix('*').is_some_and(|start| reply.starts_with(start))
        };
        subscriptions.iter().rev().find(listens).expect("somebody listens").1.clone()
    }
}

/// One line of the protocol, with its payload.
struct Frame {
    bytes: Vec<u8>,
    line: usize,
}

impl Frame {
    fn read(from: &mut BufReader<TcpStream>) -> io::Result<Option<Frame>> {
        let mut bytes = Vec::new();
        let line = from.read_until(b'\n', &mut bytes)?;
        if line == 0 {
            return Ok(None);
        }
        let frame = Frame { bytes, line };
        let words = frame.words();
        let payload = match words.first() {
            Some(&"PUB" | &"HPUB" | &"MSG" | &"HMSG") => {
                words.last().and_then(|length| length.parse::<usize>().ok())
            }
            _ => None,
        };
        let Frame { mut bytes, line } = frame;
        if let Some(length) = payload {
            bytes.resize(line + length + 2, 0);
            from.read_exact(&mut bytes[line..])?;
        }
        Ok(Some(Frame { bytes, line }))
    }

    fn words(&self) -> Vec<&str> {
        let line = std::str::from_utf8(&self.bytes[..self.line]).unwrap_or_default();
        line.split_whitespace().collect()
    }
}

fn without_others(info: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(info);
    let json = text.trim().strip_prefix("INFO").unwrap_or_default();
    let mut info: Value = serde_json::from_str(json).expect("a server's INFO is JSON");
    if let Some(fields) = info.as_object_mut() {
        fields.remove("connect_urls");
    }
    format!("INFO {info}\r\n").into_bytes()
}
