//! A collector on loopback: it parses requests with OpenTelemetry's own types, and answers as
//! configured.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// The answer to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// With a status, and with the seconds to wait.
    Status(u16, Option<u32>),
    /// No answer, until the client gives up.
    Silent,
    /// Success, but with this number of rejected spans.
    Picky(i64),
}

#[derive(Clone, Debug, Default)]
struct Heard {
    requests: Vec<ExportTraceServiceRequest>,
    heads: Vec<String>,
    refused: usize,
}

pub(crate) struct Collector {
    port: u16,
    mood: Arc<Mutex<Mood>>,
    heard: Arc<Mutex<Heard>>,
}

impl Collector {
    pub(crate) fn start(mood: Mood) -> Collector {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mood, heard) = (Arc::new(Mutex::new(mood)), Arc::<Mutex<Heard>>::default());
        let (of_thread, hears) = (Arc::clone(&mood), Arc::clone(&heard));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mood, heard) = (Arc::clone(&of_thread), Arc::clone(&hears));
                std::thread::spawn(move || {
                    // A client may close the connection early.
                    let _ = answer(stream.unwrap(), &mood, &heard);
                });
            }
        });
        Collector { port, mood, heard }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn turn(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Returns the number of rejected requests.
    pub(crate) fn refused(&self) -> usize {
        self.heard.lock().unwrap().refused
    }

    /// Returns the heads of accepted requests: first line and headers.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heard.lock().unwrap().heads.clone()
    }

    /// Returns all accepted spans, in the order of their arrival.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let heard = self.heard.lock().unwrap();
        let resources = heard.requests.iter().flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns the resource attributes of the sender.
    pub(crate) fn resource(&self) -> BTreeMap<String, String> {
        let heard = self.heard.lock().unwrap();
        let resource = heard.requests[0].resource_spans[0].resource.clone().unwrap();
        attributes(&resource.attributes)
    }
}

fn answer(mut stream: TcpStream, mood: &Mutex<Mood>, heard: &Mutex<Heard>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let (head, body) = request(&mut stream)?;
    let mood = *mood.lock().unwrap();
    let mut reply = ExportTraceServiceResponse::default();
    match mood {
        Mood::Well | Mood::Picky(_) => {
            let mut heard = heard.lock().unwrap();
            heard.requests.push(ExportTraceServiceRequest::decode(&body[..]).unwrap());
            heard.heads.push(head);
        }
        Mood::Status(..) => heard.lock().unwrap().refused += 1,
        Mood::Silent => {
            heard.lock().unwrap().refused += 1;
            // The read ends when the client gives up.
            let _ = stream.read(&mut [0]);
            return Ok(());
        }
    }
    if let Mood::Picky(rejected_spans) = mood {
        let error_message = "not these".to_owned();
        reply.partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message });
    }
    let (status, after) = match mood {
        Mood::Status(status, after) => (status, after),
        _ => (200, None),
    };
    let after = after.map_or(String::new(), |seconds| format!("Retry-After: {seconds}\r\n"));
    let body = reply.encode_to_vec();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/x-protobuf\r\nContent-Length: {length}\r\n{after}Connection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
}

/// Returns the head and the body of a request.
fn request(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body)?;
    Ok((head, body))
}

/// Returns attributes as text.
pub(crate) fn attributes(list: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &KeyValue| match value.value.clone().unwrap().value.unwrap() {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        other => panic!("{other:?}"),
    };
    list.iter().map(|pair| (pair.key.clone(), text(pair))).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
