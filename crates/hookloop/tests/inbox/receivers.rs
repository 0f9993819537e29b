//! Receivers of notifications: a minimal HTTP server and a minimal mail server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request that was received.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) path: String,
    /// The id of the message.
    pub(crate) id: String,
    pub(crate) body: Value,
}

/// A server that answers each request with the same status; with 0 it never answers.
pub(crate) struct Hook {
    port: u16,
    posted: Arc<Mutex<Vec<Posted>>>,
    status: Arc<AtomicU16>,
}

impl Hook {
    pub(crate) fn start() -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (posted, status) =
            (Arc::<Mutex<Vec<Posted>>>::default(), Arc::new(AtomicU16::new(200)));
        let hook = Hook { port, posted: posted.clone(), status: status.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (posted, status) = (posted.clone(), status.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &posted, &status));
            }
        });
        hook
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) fn answers(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub(crate) fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    /// Returns the keys of the problems of each message.
    pub(crate) fn told(&self) -> Vec<Vec<String>> {
        let keys = |posted: &Posted| crate::cli::strings(&posted.body["problems"], "key");
        self.posted().iter().map(keys).collect()
    }
}

fn serve(mut stream: TcpStream, posted: &Mutex<Vec<Posted>>, status: &AtomicU16) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut id) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "idempotency-key" => id = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap();
    posted.lock().unwrap().push(Posted { path, id, body });
    match status.load(Ordering::SeqCst) {
        0 => drop(stream.read(&mut [0])),
        status => {
            let answer =
                format!("HTTP/1.1 {status} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    }
}

/// A mail that was received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Letter {
    /// The recipients of the envelope.
    pub(crate) to: Vec<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Letter {
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    fn read(to: Vec<String>, lines: &[String]) -> Letter {
        let mut letter = Letter { to, ..Letter::default() };
        let mut lines = lines.iter();
        for line in lines.by_ref() {
            match (line.is_empty(), line.split_once(": "), letter.headers.last_mut()) {
                (true, ..) => break,
                (_, _, Some((_, last))) if line.starts_with([' ', '\t']) => last.push_str(line),
                (_, Some((name, value)), _) => {
                    letter.headers.push((name.to_owned(), value.to_owned()));
                }
                _ => panic!("no header: {line}"),
            }
        }
        letter.body = lines.map(|line| format!("{line}\n")).collect();
        letter
    }
}

/// A mail server that requires a password.
pub(crate) struct Post {
    pub(crate) port: u16,
    letters: Arc<Mutex<Vec<Letter>>>,
}

impl Post {
    /// Accepts `login` in base64; repeats any other login in its answer, as a bad server might.
    pub(crate) fn start(login: &str) -> Post {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let letters = Arc::<Mutex<Vec<Letter>>>::default();
        let post = Post { port, letters: letters.clone() };
        let login = data_encoding::BASE64.encode(login.as_bytes());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (letters, login) = (letters.clone(), login.clone());
                std::thread::spawn(move || converse(stream.unwrap(), &letters, &login));
            }
        });
        post
    }

    pub(crate) fn letters(&self) -> Vec<Letter> {
        self.letters.lock().unwrap().clone()
    }
}

fn converse(mut stream: TcpStream, letters: &Mutex<Vec<Letter>>, login: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut to, mut data) = (Vec::new(), None::<Vec<String>>);
    let mut say = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    say("220 here");
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        let text = line.trim_end_matches(['\r', '\n']).to_owned();
        line.clear();
        if let Some(lines) = &mut data {
            if text != "." {
                lines.push(text.strip_prefix('.').unwrap_or(&text).to_owned());
                continue;
            }
            letters.lock().unwrap().push(Letter::read(std::mem::take(&mut to), lines));
            data = None;
            say("250 taken");
            continue;
        }
        let answered = match text.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => say("250-here") && say("250 AUTH PLAIN"),
            "AUTH" if text.ends_with(&format!(" {login}")) => say("235 in"),
            "AUTH" => say(&format!("535 no such login: {text}")),
            "RCPT" => {
                to.push(text);
                say("250 yes")
            }
            "DATA" => {
                data = Some(Vec::new());
                say("354 go on")
            }
            "QUIT" => say("221 bye"),
            _ => say("250 yes"),
        };
        if !answered {
            return;
        }
    }
}
