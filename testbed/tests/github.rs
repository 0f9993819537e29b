//! Tests that the forge serves other processes and records their requests.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A forge process, killed with the test.
struct Forge(Child);

impl Drop for Forge {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn get(address: &str, path: &str, headers: &str) -> (String, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), serde_json::from_str(body).unwrap())
}

#[test]
fn the_fake_forge_prints_its_address_and_records_requests() {
    let repository = std::env::temp_dir().join(format!("github-fake-{}", std::process::id()));
    let made = Command::new("git").args(["init", "-q", "--bare"]).arg(&repository).status();
    assert!(made.unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_github-fake"));
    command.arg(&repository).arg("0").stdout(Stdio::piped());
    let mut forge = Forge(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(forge.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap();
    let path = "/repos/o/r/pulls?state=all";
    assert_eq!(get(address, path, "").0, "401");
    let (status, pulls) = get(address, path, "Authorization: Bearer some-token\r\n");
    assert_eq!((status.as_str(), pulls), ("200", Value::Array(Vec::new())));
    assert_eq!(get(address, "/repos/o/r/secrets", "Authorization: Bearer t\r\n").0, "404");
    let (_, record) = get(address, "/_record", "");
    let rows: Vec<(&str, u64, bool)> = record.as_array().unwrap().iter().map(told).collect();
    let expected = [(path, 401, true), (path, 200, true), ("/repos/o/r/secrets", 404, false)];
    assert_eq!(rows, expected);
    std::fs::remove_dir_all(&repository).unwrap();
}

/// Returns the path of a request, its status, and whether its route exists.
fn told(row: &Value) -> (&str, u64, bool) {
    let path = row["path"].as_str().unwrap();
    (path, row["status"].as_u64().unwrap(), row["route"].is_string())
}
