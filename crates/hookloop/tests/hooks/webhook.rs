//! Hooks that send HTTP requests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::cli::Project;

const UNTRUSTED: i32 = 3;

/// Answers every request with `answer`; sends the posted data to `seen`.
fn server(
    answer: impl Fn(&mut TcpStream) + Send + 'static,
) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream);
            // The test may have dropped the receiver already.
            let _ = send.send(request);
            answer(&mut stream);
        }
    });
    (url, seen)
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.to_lowercase().split("content-length: ").nth(1).map_or(0, |rest| {
                    rest.lines().next().unwrap().trim().parse::<usize>().unwrap()
                });
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut chunk).unwrap() {
            0 => return text,
            n => request.extend(&chunk[..n]),
        }
    }
}

fn reply(status: &str, headers: &str, body: &str) -> impl Fn(&mut TcpStream) + Send + use<> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    move |stream| drop(stream.write_all(text.as_bytes()))
}

fn run(url: &str) -> Value {
    let project = Project::with_config(&format!(
        "hooks:\n  stop:\n    - {{name: ask, http: '{url}', timeout: 2s}}\n"
    ));
    let before_trust = project.json_with(UNTRUSTED, &["hooks", "run", "ask"]);
    assert_eq!(before_trust["status"], "not_started", "{before_trust}");
    project.trust();
    project.try_hook(&["ask"])
}

#[test]
fn a_webhook_has_the_input_and_output_of_a_command() {
    let (url, seen) = server(reply("200 OK", "", r#"{"decision":"block","reason":"not yet"}"#));
    let answer = run(&url);
    assert_eq!((&answer["verdict"], &answer["feedback"]), (&json!("block"), &json!("not yet")));
    let request = seen.recv().unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        (&body["hook_event_name"], &body["hookloop"]["hook"]),
        (&json!("Stop"), &json!("ask"))
    );
    let (url, _) = server(reply("204 No Content", "", ""));
    assert_eq!(run(&url)["verdict"], "pass");
}

#[test]
fn a_webhook_that_fails_times_out_or_redirects_does_not_pass() {
    let check = |answer: Box<dyn Fn(&mut TcpStream) + Send>, status: &str| {
        let (url, _) = server(answer);
        let run = run(&url);
        assert_eq!((&run["status"], &run["verdict"]), (&json!(status), &json!("block")), "{run}");
    };
    check(Box::new(reply("500 Oops", "", "sorry")), "failed");
    check(Box::new(reply("200 OK", "", "{broken}")), "failed");
    check(Box::new(reply("200 OK", "", &"x".repeat(2 * 1024 * 1024))), "not_started");
    check(Box::new(|_| std::thread::sleep(std::time::Duration::from_secs(5))), "timed_out");
    let (elsewhere, seen) = server(reply("200 OK", "", ""));
    check(Box::new(reply("302 Found", &format!("location: {elsewhere}\r\n"), "")), "failed");
    assert!(seen.try_recv().is_err(), "a redirect was followed");
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(run(&format!("http://{unused}/"))["status"], "not_started");
}
