//! Decides whether a request is allowed. The head of a request decides, before its body is read.
//!
//! A foreign page can reach loopback too, even under its own host name. So the server accepts few host names, and the
//! origin must equal the host. Agents send their token; people are logged in, or send theirs. A browser sends cookies
//! with foreign requests, so a request with only a cookie must come from one of the server's own pages.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName,
    LOCATION, ORIGIN, WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use super::login::{LOGIN_LIFE, LoginTable};
use super::token::AccessToken;

/// The longest body.
pub(super) const BODY_MAX: usize = 4 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an answer may take: gates run for as long as they are allowed to.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// The page for clients without a login.
pub(super) const LOGIN: &str = "/login";

/// The clients that a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteAccess {
    Agents,
    People,
    /// Agents and people: only clients with access learn that a path does not exist.
    Either,
    Anyone,
}

#[derive(Debug)]
pub(super) struct RequestGuard {
    /// The host names of this server.
    hosts: [String; 3],
    /// A browser shares cookies between all ports of a machine.
    cookie: String,
    token: AccessToken,
    pub(super) logins: LoginTable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessDenied {
    Host,
    Origin,
    Token,
    /// The client is not logged in.
    NoLogin,
    /// The same, by a browser that shows a page.
    Visitor,
    ContentType,
    TooLarge,
}

impl RequestGuard {
    pub(super) fn new(port: u16, token: AccessToken, logins: LoginTable) -> RequestGuard {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        RequestGuard { hosts, cookie: format!("hookloop-{port}"), token, logins }
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The line that has a browser keep a cookie, or forget it.
    pub(super) fn set_cookie(&self, value: Option<&str>) -> String {
        let (value, age) = value.map_or(("", 0), |value| (value, LOGIN_LIFE.as_secs()));
        format!("{}={value}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict", self.cookie)
    }

    fn judge(&self, head: &Parts, access: RouteAccess) -> Result<(), AccessDenied> {
        let host = self.host(head).ok_or(AccessDenied::Host)?;
        let has_origin = match only(&head.headers, &ORIGIN) {
            Only::None => false,
            Only::One(origin) if origin.strip_prefix(b"http://") == Some(host.as_bytes()) => true,
            Only::One(_) | Only::Many => return Err(AccessDenied::Origin),
        };
        let is_agent = || self.token.is(bearer(&head.headers).unwrap_or_default());
        match access {
            RouteAccess::Anyone => {}
            RouteAccess::Agents | RouteAccess::Either if is_agent() => {}
            RouteAccess::Agents => return Err(AccessDenied::Token),
            RouteAccess::People | RouteAccess::Either => self.judge_person(head, has_origin)?,
        }
        // A form, or a script without a CORS preflight, can't send this type.
        if head.method == Method::POST && !is_json(&head.headers) {
            return Err(AccessDenied::ContentType);
        }
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        match length.and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if length > BODY_MAX as u64 => Err(AccessDenied::TooLarge),
            _ => Ok(()),
        }
    }

    /// Returns the host name that the client used, if it is exactly one of the server's.
    fn host(&self, head: &Parts) -> Option<&String> {
        let Only::One(host) = only(&head.headers, &HOST) else { return None };
        // A whole address as the path is for proxies.
        if head.uri.authority().is_some() {
            return None;
        }
        self.hosts.iter().find(|name| name.as_bytes() == host)
    }

    fn judge_person(&self, head: &Parts, has_origin: bool) -> Result<(), AccessDenied> {
        if bearer(&head.headers).is_some_and(|shown| self.logins.is_token(shown)) {
            return Ok(());
        }
        let cookie = self.cookie(&head.headers);
        if !cookie.is_some_and(|cookie| self.logins.knows(cookie)) {
            let is_page =
                matches!(head.method, Method::GET | Method::HEAD) && wants_page(&head.headers);
            return Err(if is_page { AccessDenied::Visitor } else { AccessDenied::NoLogin });
        }
        // Another server of this machine is another origin but the same site: requests from its pages carry the cookie.
        let is_ours = match only(&head.headers, &FETCH_SITE) {
            Only::None => true,
            Only::One(b"same-origin" | b"none") => true,
            Only::One(_) => {
                matches!(only(&head.headers, &FETCH_MODE), Only::One(b"navigate"))
                    && head.method == Method::GET
            }
            Only::Many => false,
        };
        let changes = !matches!(head.method, Method::GET | Method::HEAD);
        if is_ours && (has_origin || !changes) { Ok(()) } else { Err(AccessDenied::Origin) }
    }

    /// The value of our cookie, if a request has one of that name.
    pub(super) fn cookie<'h>(&self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let lines = headers.get_all(COOKIE).iter();
        let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        let value = |pair: &'h [u8]| {
            pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?.strip_prefix(b"=")
        };
        let mut values = pairs.filter_map(value);
        values.next().filter(|_| values.next().is_none())
    }
}

const BEARER: &[u8] = b"Bearer ";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The token that a request shows.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let Only::One(shown) = only(headers, &AUTHORIZATION) else { return None };
    let (scheme, token) = shown.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then_some(token)
}

fn wants_page(headers: &HeaderMap) -> bool {
    let Only::One(kinds) = only(headers, &ACCEPT) else { return false };
    kinds.split(|byte| *byte == b',').any(|kind| kind.trim_ascii().starts_with(b"text/html"))
}

enum Only<'a> {
    None,
    One(&'a [u8]),
    /// A header that is given twice is ambiguous.
    Many,
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Only<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Only::None,
        (Some(value), None) => Only::One(value.as_bytes()),
        (Some(_), Some(_)) => Only::Many,
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Only::One(kind) = only(headers, &CONTENT_TYPE) else { return false };
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

impl IntoResponse for AccessDenied {
    /// A denied client has to connect again: the rest of its request is not read.
    fn into_response(self) -> Response {
        let mut response = match self {
            AccessDenied::Host => {
                (StatusCode::FORBIDDEN, "not a name of this server\n").into_response()
            }
            AccessDenied::Origin => {
                (StatusCode::FORBIDDEN, "not for pages of others\n").into_response()
            }
            AccessDenied::Token => {
                let how = [(WWW_AUTHENTICATE, "Bearer realm=\"hookloop\"")];
                (StatusCode::UNAUTHORIZED, how, "the token is missing or wrong\n").into_response()
            }
            AccessDenied::NoLogin => (StatusCode::UNAUTHORIZED, "log in first\n").into_response(),
            AccessDenied::Visitor => (StatusCode::SEE_OTHER, [(LOCATION, LOGIN)]).into_response(),
            AccessDenied::ContentType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json\n").into_response()
            }
            AccessDenied::TooLarge => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        };
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Around every route, and around what is none.
pub(super) async fn guard(
    State((guard, access)): State<(Arc<RequestGuard>, RouteAccess)>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    if let Err(denied) = guard.judge(&head, access) {
        return denied.into_response();
    }
    let body = match timeout(BODY_TIME_MAX, axum::body::to_bytes(body, BODY_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return AccessDenied::TooLarge.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let answer = next.run(Request::from_parts(head, Body::from(body)));
    timeout(ANSWER_TIME_MAX, answer)
        .await
        .unwrap_or_else(|_| StatusCode::GATEWAY_TIMEOUT.into_response())
}
