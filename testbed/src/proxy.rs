//! A way to a real server on which things go wrong when a test says so.
//!
//! It reads just enough of the NATS protocol to know the messages of a client and their answers.
//! The addresses of other members of the cluster are removed: a client would bypass the proxy.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::wait_for;

/// How long a fault may take to happen.
const HAPPENED: Duration = Duration::from_secs(30);

/// A fault of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The client is answered this, and the server never sees it.
    Answer(String),
    /// The client is told that nobody listens, and nobody does.
    NoResponders,
    /// The server has it, and its answer gets lost.
    LoseAnswer,
    /// The server has it, and the connection ends instead of the answer.
    CutAnswer,
    /// It gets lost.
    Lose,
    /// The connection ends instead.
    Cut,
    /// It arrives later, and everything behind it.
    Delay(Duration),
    /// The server delivers an event of this subject to a consumer, and the delivery gets lost.
    LoseDelivery,
}

impl Fault {
    /// The answer of a server that stores nothing.
    pub fn refusal(err_code: u64, description: &str) -> Fault {
        let error = serde_json::json!({
            "error": { "code": 400, "err_code": err_code, "description": description },
        });
        Fault::Answer(error.to_string())
    }

    /// Whether the fault happens only to messages that want an answer.
    fn is_about_answers(&self) -> bool {
        !matches!(self, Fault::Lose | Fault::Cut | Fault::Delay(_))
    }

    /// Whether the fault happens to deliveries of the server, not to messages of the client.
    fn is_about_deliveries(&self) -> bool {
        matches!(self, Fault::LoseDelivery)
    }
}

/// A fault that is to happen.
#[derive(Clone, Debug)]
pub struct Plan {
    /// To subjects that begin so.
    pub subject: String,
    /// After so many that it could have happened to.
    pub after: usize,
    /// To so many in a row.
    pub times: usize,
    pub fault: Fault,
}

impl Plan {
    /// Once, to the next that it can happen to.
    pub fn next(subject: &str, fault: Fault) -> Plan {
        Plan { subject: subject.to_owned(), after: 0, times: 1, fault }
    }
}

/// A proxy, for as long as it is not dropped.
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

    /// For a client: `nats://127.0.0.1:21000`.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Lets a fault happen, behind those that are planned for the same subjects.
    pub fn plan(&self, plan: Plan) {
        self.shared.plans.lock().unwrap().push(plan);
    }

    /// Waits until everything has happened that was planned.
    pub fn wait_happened(&self) {
        let left = || self.shared.plans.lock().unwrap().clone();
        wait_for(HAPPENED, || format!("{:?}", left()), || left().is_empty().then_some(()));
    }

    /// Ends every connection.
    pub fn cut(&self) {
        self.shared.open.lock().unwrap().drain(..).for_each(|connection| connection.cut());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes up the thread that waits for clients.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.closed.load(Ordering::SeqCst) {
                return;
            }
            // A server that is down takes no connections: the client comes again.
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

    /// Whether the delivery of an event to the client is to get lost.
    fn loses_delivery(&self, subject: &str) -> bool {
        let concerns =
            |plan: &Plan| plan.fault.is_about_deliveries() && subject.starts_with(&plan.subject);
        self.next_fault(concerns).is_some()
    }

    /// Takes the first planned fault that `concerns` something.
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
    /// Frames to the client are written one at a time.
    to_client: Mutex<TcpStream>,
    /// Subjects that the client listens on, with its numbers for them.
    subscriptions: Mutex<Vec<(String, String)>>,
    /// Subjects of answers that get lost, and of those that end the connection.
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
        // It may be over already.
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

    /// Lets a fault happen; returns whether the server gets the message.
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

    /// The client's number for the subject of an answer.
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
