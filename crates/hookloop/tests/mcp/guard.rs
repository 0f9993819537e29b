//! Access control: exact host names and origins, with the token.

use serde_json::json;

use crate::mcp::PLAIN;
use crate::mcp::http::{KINDS, Server};
use crate::support::project_with;

/// Returns header lines with valid, wrong and missing hosts.
fn hosts(port: u16) -> Vec<String> {
    let names = [
        "127.0.0.1:PORT",
        "localhost:PORT",
        "[::1]:PORT",
        // Almost correct names.
        "127.0.0.1",
        "localhost",
        "[::1]",
        "127.0.0.1:80",
        "localhost:80",
        "127.0.0.1:PORT0",
        "LOCALHOST:PORT",
        "Localhost:PORT",
        "localhost.:PORT",
        "127.0.0.1.:PORT",
        "localhost:0PORT",
        "localhost:PORT.",
        "127.1:PORT",
        "0.0.0.0:PORT",
        "2130706433:PORT",
        "0x7f000001:PORT",
        "127.0.0.2:PORT",
        "[::ffff:127.0.0.1]:PORT",
        "[0:0:0:0:0:0:0:1]:PORT",
        "[::]:PORT",
        "user@localhost:PORT",
        // Names that may resolve to this address.
        "evil.example:PORT",
        "localhost.evil.example:PORT",
        "evil.example",
        "localtest.me:PORT",
    ];
    let lines = names.map(|name| format!("Host: {name}\r\n"));
    let more = [
        String::new(),
        "Host: \r\n".to_owned(),
        "Host: localhost:PORT\r\nHost: evil.example:PORT\r\n".to_owned(),
        "Host: localhost:PORT\r\nHost: localhost:PORT\r\n".to_owned(),
        "Host: localhost:PORT, evil.example:PORT\r\n".to_owned(),
    ];
    lines.into_iter().chain(more).map(|line| line.replace("PORT", &port.to_string())).collect()
}

fn origins(port: u16) -> Vec<String> {
    let values = [
        "http://127.0.0.1:PORT",
        "http://localhost:PORT",
        "http://[::1]:PORT",
        "null",
        "http://evil.example",
        "http://evil.example:PORT",
        "https://localhost:PORT",
        "https://127.0.0.1:PORT",
        "http://localhost",
        "http://127.0.0.1",
        "http://localhost:80",
        "http://LOCALHOST:PORT",
        "HTTP://localhost:PORT",
        "http://localhost.:PORT",
        "http://localhost:PORT/",
        "http://user@localhost:PORT",
        "http://localhost:PORT.evil.example",
        "file://",
        "chrome-extension://abc",
        "",
    ];
    let lines = values.map(|value| format!("Origin: {value}\r\n"));
    let more = [
        String::new(),
        "Origin: http://localhost:PORT\r\nOrigin: http://localhost:PORT\r\n".to_owned(),
    ];
    lines.into_iter().chain(more).map(|line| line.replace("PORT", &port.to_string())).collect()
}

#[test]
fn only_exact_host_and_origin_pairs_with_the_token_are_accepted() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let (hosts, origins) = (hosts(server.port), origins(server.port));
    assert!(hosts.len() >= 30 && origins.len() >= 20);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let tokens = [
        String::new(),
        format!("Authorization: Bearer {}\r\n", "0".repeat(64)),
        format!("Authorization: Bearer {}\r\n", server.token),
    ];
    let mut let_in = 0;
    for host in &hosts {
        for origin in &origins {
            let is_named = hosts[..3].contains(host);
            let same = host.replace("Host: ", "Origin: http://");
            let is_pair = is_named && (origin.is_empty() || *origin == same);
            for (i, token) in tokens.iter().enumerate() {
                let head = format!("{host}{origin}{token}{KINDS}");
                let response = server.send("POST", "/mcp", &head, ping.as_bytes());
                let allowed: &[u16] = match (is_pair, i == 2) {
                    (true, true) => &[200],
                    (true, false) => &[401],
                    // hyper itself refuses a missing host and an invalid name.
                    (false, _) => &[400, 403, 421],
                };
                assert!(allowed.contains(&response.status), "{} for {head}", response.status);
                assert!(!response.head.contains("access-control"), "{}", response.head);
                let_in += usize::from(response.status == 200);
            }
        }
    }
    assert_eq!(let_in, 6);
}

#[test]
fn almost_correct_tokens_are_refused() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let token = &server.token;
    let host = format!("Host: localhost:{}\r\n{KINDS}", server.port);
    let right = format!("Authorization: Bearer {token}\r\n");
    for wrong in [
        String::new(),
        "Authorization: \r\n".to_owned(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: Bearer  {token}\r\n"),
        format!("Authorization: Bearer {token}0\r\n"),
        format!("Authorization: Bearer {}\r\n", &token[..63]),
        format!("Authorization: Bearer {}\r\n", token.to_uppercase()),
        format!("Authorization: Bearer {token}, Bearer {token}\r\n"),
        format!("{right}{right}"),
        format!("Cookie: token={token}\r\n"),
        format!("X-Token: {token}\r\n"),
    ] {
        // A token of digits alone is the same in upper case.
        if wrong == right {
            continue;
        }
        let response = server.send("POST", "/mcp", &format!("{host}{wrong}"), b"{}");
        assert_eq!(response.status, 401, "{wrong}");
        assert!(response.head.contains("www-authenticate: bearer"), "{}", response.head);
        assert!(!response.body.contains(token), "{}", response.body);
    }
    let query = format!("/mcp?token={token}&access_token={token}");
    assert_eq!(server.send("POST", &query, &host, b"{}").status, 401);
}

/// An unauthorized client can't learn which paths exist.
#[test]
fn every_path_and_method_requires_authorization() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let host = format!("Host: localhost:{}\r\n", server.port);
    let evil =
        format!("Host: evil.example:{}\r\nAuthorization: Bearer {}\r\n", server.port, server.token);
    for path in [
        "/",
        "/mcp",
        "/mcp/",
        "/mcp/x",
        "/../mcp",
        "//mcp",
        "/metrics",
        "/%6dcp",
        "/.well-known/oauth",
    ] {
        for method in
            ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE", "PROPFIND"]
        {
            assert_eq!(server.send(method, path, &host, b"").status, 401, "{method} {path}");
            assert_eq!(server.send(method, path, &evil, b"").status, 403, "{method} {path}");
        }
    }
    let whole = format!("http://evil.example:{}/mcp", server.port);
    assert_eq!(server.send("POST", &whole, &server.head(), b"{}").status, 403);
    assert_eq!(server.send("GET", "/nothing", &server.head(), b"").status, 404);
}

#[test]
fn cross_origin_requests_without_preflight_are_refused() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let head = |kind: &str| server.head().replace("Content-Type: application/json\r\n", kind);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for kind in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\n",
        "Content-Type: text/plain; application/json\r\n",
        "Content-Type: application/jsonx\r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
    ] {
        assert_eq!(server.send("POST", "/mcp", &head(kind), ping.as_bytes()).status, 415, "{kind}");
    }
    let charset = head("Content-Type: application/json; charset=utf-8\r\n");
    assert_eq!(server.send("POST", "/mcp", &charset, ping.as_bytes()).status, 200);
    let preflight = format!(
        "Host: localhost:{}\r\nOrigin: http://localhost:{}\r\nAccess-Control-Request-Method: POST\r\n",
        server.port, server.port
    );
    let answer = server.send("OPTIONS", "/mcp", &preflight, b"");
    assert_eq!(answer.status, 401);
    assert!(!answer.head.contains("access-control"), "{}", answer.head);
}

#[test]
fn the_size_of_a_request_body_is_limited() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let limit = 4 * 1024 * 1024;
    assert_eq!(server.send("POST", "/mcp", &server.head(), &vec![b' '; limit + 1]).status, 413);
    // A body with a declared length is refused before it is sent; without one, its bytes are
    // counted.
    let told = format!(
        "POST /mcp HTTP/1.1\r\n{}Content-Length: 99999999999\r\nConnection: close\r\n\r\n",
        server.head()
    );
    assert_eq!(server.raw(told.as_bytes()).status, 413);
    let mut chunked = format!(
        "POST /mcp HTTP/1.1\r\n{}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        server.head()
    )
    .into_bytes();
    for _ in 0..5 {
        chunked.extend_from_slice(b"100000\r\n");
        chunked.extend_from_slice(&vec![b' '; 0x10_0000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(server.raw(&chunked).status, 413);
    // The server does not read the body of a request without a token.
    let other = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost:{}\r\nContent-Length: 1000\r\n\r\n",
        server.port
    );
    assert_eq!(server.raw(other.as_bytes()).status, 401);
    assert!(server.call("task_list", json!({})).value.is_object());
}
