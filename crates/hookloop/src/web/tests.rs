//! Every route of the table, from outside.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use hookloop_config::paths::ProjectPaths;
use hookloop_engine::log_location::LaunchContext;
use tokio::sync::oneshot;

use super::guard::RouteAccess;
use super::routes::ROUTES;
use super::*;
use crate::mcp::ProjectOpener;

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"];
const TOKEN: &str = "0123";
const OWN: &str = "abcd";

/// Where a server of a test is.
struct At {
    port: u16,
    code: String,
}

/// Runs `ask` against a server that has nothing behind it.
fn with_server(ask: impl FnOnce(At) + Send + 'static) {
    let home = tempfile::tempdir().unwrap();
    let place = ProjectPaths::at(&home.path().join("project"), home.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let service = ToolService::new(ProjectOpener::new(None, None));
        let at = (IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let tokens =
            ServerTokens { agents: AccessToken::new(TOKEN), people: AccessToken::new(OWN) };
        let sites = ProjectSites::new(place, home.path().to_owned(), LaunchContext::default());
        let server = WebServer::bind(at, tokens, service, sites).await.unwrap();
        let at = At { port: server.address().port(), code: server.code.clone() };
        let (done, is_done) = oneshot::channel();
        let asked = std::thread::spawn(move || {
            ask(at);
            let _ = done.send(());
        });
        server.run(async { drop(is_done.await) }).await;
        asked.join().unwrap();
    });
}

/// The whole answer, in lower case.
fn answer(port: u16, method: &str, path: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let head = head.replace("PORT", &port.to_string());
    let length = body.len();
    let start = format!(
        "{method} {path} HTTP/1.1\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(start.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer = answer.to_lowercase();
    assert!(!answer.contains("access-control"), "{answer}");
    answer
}

fn status(port: u16, method: &str, path: &str, head: &str) -> u16 {
    code(&answer(port, method, path, head, ""))
}

fn code(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Returns the cookie of a login.
fn cookie(answer: &str) -> String {
    let line = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    line.split(';').next().unwrap().to_owned()
}

/// A route that is new is here as soon as it is in the table, and there is no other way to serve one.
#[test]
fn every_route_refuses_unauthorized_requests() {
    with_server(|At { port, .. }| {
        let nothing = ("/nothing", RouteAccess::Either);
        let routes = ROUTES.iter().map(|route| (route.path, route.access)).chain([nothing]);
        for (path, access) in routes {
            let (right, other) = match access {
                RouteAccess::Agents => (TOKEN, OWN),
                RouteAccess::People | RouteAccess::Anyone => (OWN, TOKEN),
                RouteAccess::Either => (OWN, "0124"),
            };
            for method in METHODS {
                let check = |head: &str, expected: u16| {
                    let head = head.replace("RIGHT", right).replace("OTHER", other);
                    let found = status(port, method, path, &head);
                    assert_eq!(found, expected, "{method} {path} {head}");
                };
                check("Host: evil.example:PORT\r\nAuthorization: Bearer RIGHT\r\n", 403);
                check("Host: localhost\r\nAuthorization: Bearer RIGHT\r\n", 403);
                check(
                    "Host: localhost:PORT\r\nOrigin: http://127.0.0.1:PORT\r\nAuthorization: Bearer RIGHT\r\n",
                    403,
                );
                if access == RouteAccess::Anyone {
                    continue;
                }
                for other in [
                    "",
                    "Authorization: Bearer OTHER\r\n",
                    "Authorization: Bearer 0124\r\n",
                    "Authorization: RIGHT\r\n",
                    "Cookie: token=RIGHT\r\n",
                    "Cookie: hookloop-PORT=RIGHT\r\n",
                    "Cookie: hookloop-PORT=\r\n",
                ] {
                    check(&format!("Host: localhost:PORT\r\n{other}"), 401);
                }
                let known = format!("Host: localhost:PORT\r\nAuthorization: Bearer {right}\r\n");
                let found = status(port, method, path, &known);
                assert!(![401, 403].contains(&found), "{method} {path}: {found}");
            }
        }
    });
}

#[test]
fn a_browser_is_redirected_to_the_login_with_security_headers() {
    with_server(|At { port, .. }| {
        let page = "Host: localhost:PORT\r\nAccept: text/html,*/*;q=0.8\r\n";
        let sent = answer(port, "GET", "/", page, "");
        assert!(code(&sent) == 303 && sent.contains("location: /login"), "{sent}");
        let login = answer(port, "GET", "/login", page, "");
        for told in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(login.contains(told), "{told}: {login}");
            assert!(sent.contains(told), "{told}: {sent}");
        }
        let style =
            login.split("href=\"").find_map(|rest| rest.strip_prefix("/assets/style")).unwrap();
        let style = format!("/assets/style{}", style.split('"').next().unwrap());
        let style = answer(port, "GET", &style, page, "");
        assert!(style.contains("immutable") && style.contains("content-type: text/css"), "{style}");
        assert_eq!(status(port, "GET", "/assets/style.css", page), 404);
    });
}

#[test]
fn a_login_link_sets_a_protected_cookie_and_works_once() {
    with_server(|At { port, code: link }| {
        let host = "Host: localhost:PORT\r\n";
        let path = format!("/login?code={link}");
        assert_eq!(status(port, "HEAD", &path, host), 200);
        let first = answer(port, "GET", &path, host, "");
        assert_eq!(code(&first), 200, "{first}");
        let line = first.lines().find(|line| line.starts_with("set-cookie: ")).unwrap();
        for flag in ["; httponly", "; samesite=strict", "; path=/", "; max-age=43200"] {
            assert!(line.contains(flag), "{line}");
        }
        assert_eq!(status(port, "GET", &path, host), 403);
        let cookie = cookie(&first);
        let with = |more: &str| format!("{host}Cookie: other=1; {cookie}\r\n{more}");
        assert_eq!(status(port, "GET", "/", &with("")), 200);
        // A cookie that is sent twice is refused.
        assert_eq!(status(port, "GET", "/", &format!("{host}Cookie: {cookie}; {cookie}\r\n")), 401);
        assert_eq!(status(port, "GET", "/mcp", &with("")), 401);
        let json = "Content-Type: application/json\r\n";
        let own = "Origin: http://localhost:PORT\r\n";
        let out = |more: &str| status(port, "POST", "/logout", &with(more));
        // Requests that a foreign page can send.
        assert_eq!(out(""), 403);
        assert_eq!(out(json), 403);
        assert_eq!(out(&format!("{json}Origin: http://localhost:1\r\n")), 403);
        assert_eq!(out(&format!("{json}{own}Sec-Fetch-Site: same-site\r\n")), 403);
        assert_eq!(out(&format!("{own}Content-Type: text/plain\r\n")), 415);
        assert_eq!(out(&format!("{own}Content-Type: application/x-www-form-urlencoded\r\n")), 415);
        let read = |more: &str| status(port, "GET", "/", &with(more));
        assert_eq!(read("Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n"), 403);
        assert_eq!(read("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n"), 403);
        assert_eq!(read("Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\n"), 200);
        assert_eq!(read("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n"), 200);
        assert_eq!(out(&format!("{json}{own}")), 200);
        assert_eq!(status(port, "GET", "/", &with("")), 401);
    });
}

#[test]
fn only_the_users_token_logs_in() {
    with_server(|At { port, .. }| {
        let head = "Host: localhost:PORT\r\nContent-Type: application/json\r\n";
        let tried = |body: &str| answer(port, "POST", "/login", head, body);
        assert_eq!(code(&tried(&format!("{{\"token\":\"{TOKEN}\"}}"))), 403);
        assert_eq!(code(&tried("{\"token\":1}")), 400);
        let right = tried(&format!("{{\"token\":\" {OWN}\\n\"}}"));
        assert_eq!(code(&right), 200, "{right}");
        let head = format!("Host: localhost:PORT\r\nCookie: {}\r\n", cookie(&right));
        assert_eq!(status(port, "GET", "/", &head), 200);
    });
}
