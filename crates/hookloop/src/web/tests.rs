//! Every route of the table, from outside.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use tokio::sync::oneshot;

use super::routes::ROUTES;
use super::*;
use crate::mcp::Door;

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"];
const TOKEN: &str = "0123";

/// Runs `ask` against a server that has nothing behind it.
fn with_server(ask: impl FnOnce(u16) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let counter = Counter::new(Door::new(None, None));
        let at = (IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let server = Server::bind(at, Token::new(TOKEN), counter).await.unwrap();
        let port = server.address().port();
        let (done, is_done) = oneshot::channel();
        let asked = std::thread::spawn(move || {
            ask(port);
            let _ = done.send(());
        });
        server.run(async { drop(is_done.await) }).await;
        asked.join().unwrap();
    });
}

fn status(port: u16, method: &str, path: &str, head: &str) -> u16 {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let head = head.replace("PORT", &port.to_string());
    write!(stream, "{method} {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A route that is new is here as soon as it is in the table, and there is no other way to serve one.
#[test]
fn no_route_answers_who_may_not_ask() {
    with_server(|port| {
        for route in ROUTES {
            for method in METHODS {
                for (head, expected) in [
                    ("Host: localhost:PORT\r\n", 401),
                    ("Host: localhost:PORT\r\nAuthorization: Bearer 0124\r\n", 401),
                    ("Host: localhost:PORT\r\nCookie: token=0123\r\n", 401),
                    ("Host: evil.example:PORT\r\nAuthorization: Bearer 0123\r\n", 403),
                    ("Host: localhost\r\nAuthorization: Bearer 0123\r\n", 403),
                    (
                        "Host: localhost:PORT\r\nOrigin: http://127.0.0.1:PORT\r\nAuthorization: Bearer 0123\r\n",
                        403,
                    ),
                ] {
                    let found = status(port, method, route.path, head);
                    assert_eq!(found, expected, "{method} {} {head}", route.path);
                }
                let right = "Host: localhost:PORT\r\nAuthorization: Bearer 0123\r\n";
                let found = status(port, method, route.path, right);
                assert!(![401, 403].contains(&found), "{method} {}: {found}", route.path);
            }
        }
    });
}
