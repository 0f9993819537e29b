//! A server of the program for one project.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use hookloop_testkit::TestProject;

use crate::support::serving::Serving;
use crate::web::browser::{Browser, PATIENCE};

pub(crate) struct Server {
    pub(crate) serving: Serving,
    pub(crate) port: u16,
    /// A link that logs in once.
    pub(crate) link: String,
}

impl Server {
    pub(crate) fn start(project: &TestProject) -> Server {
        Server::spawn(project.json_command(&["serve", "--port", "0"]))
    }

    pub(crate) fn spawn(command: Command) -> Server {
        let serving = Serving::spawn(command);
        let link = serving.said["dashboard"].as_str().unwrap().to_owned();
        let port = link.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once('/'));
        let port = port.unwrap().0.parse().unwrap();
        Server { serving, port, link }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.serving.pid()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn token(&self) -> String {
        let path = self.serving.said["dashboard_token_file"].as_str().unwrap();
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// Returns a browser that is logged in, on the first page of the project.
    pub(crate) fn visited(&self) -> (Browser, String) {
        let mut browser = Browser::start();
        browser.go(&self.link);
        browser.until("location.pathname == '/' && !!document.querySelector('tbody a')");
        let path = browser.text("document.querySelector('tbody a').getAttribute('href')");
        browser.go(&self.url(&path));
        (browser, self.url(&path))
    }

    /// Returns the token for agents.
    pub(crate) fn agent_token(&self) -> String {
        let path = self.serving.said["token_file"].as_str().unwrap();
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// Returns a connection that has sent a request with the token, and read nothing yet.
    pub(crate) fn asking(&self, method: &str, path: &str, body: &str) -> TcpStream {
        self.asking_with(&self.token(), method, path, body)
    }

    fn asking_with(&self, token: &str, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (port, length) = (self.port, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Returns the status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_with(&self.token(), method, path, body)
    }

    /// Returns the status and the body of the answer to a request with this token.
    pub(crate) fn ask_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, String) {
        let mut answer = Vec::new();
        self.asking_with(token, method, path, body).read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Returns the address of the project's pages, which ends with a slash.
    pub(crate) fn project(&self) -> String {
        let (_, page) = self.ask("GET", "/", "");
        let start = page.find("href=\"/p/").unwrap() + 6;
        page[start..].split('"').next().unwrap().to_owned()
    }

    pub(crate) fn terminate(&mut self) -> Option<i32> {
        self.serving.terminate();
        self.serving.ended(PATIENCE)
    }
}
