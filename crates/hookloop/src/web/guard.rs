//! Who may ask. Decided from the head of a request alone, before its body is read.
//!
//! A page in a browser reaches loopback too, also under a name of its own that leads there. So the
//! names that are answered to are few, an origin has to be the same as the name, and the token is
//! asked for in any case.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN,
    WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

use super::token::Token;

/// The longest body.
pub(super) const BODY_MAX: usize = 4 * 1024 * 1024;
/// How long a body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an answer may take: gates run for as long as they are allowed to.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(super) struct Guard {
    /// What a client may call this server.
    hosts: [String; 3],
    token: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denied {
    Host,
    Origin,
    Token,
    ContentType,
    TooLarge,
}

impl Guard {
    pub(super) fn new(port: u16, token: Token) -> Guard {
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        Guard { hosts, token }
    }

    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    fn judge(&self, head: &Parts) -> Result<(), Denied> {
        let host = self.host(head).ok_or(Denied::Host)?;
        match only(&head.headers, &ORIGIN) {
            Only::None => {}
            Only::One(origin) if origin.strip_prefix(b"http://") == Some(host.as_bytes()) => {}
            Only::One(_) | Only::Many => return Err(Denied::Origin),
        }
        if !self.shows_token(&head.headers) {
            return Err(Denied::Token);
        }
        // A form, or a script that asked nobody, can't send this type.
        if head.method == Method::POST && !is_json(&head.headers) {
            return Err(Denied::ContentType);
        }
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        match length.and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if length > BODY_MAX as u64 => Err(Denied::TooLarge),
            _ => Ok(()),
        }
    }

    /// The name that the client used, if it is one of ours to the letter.
    fn host(&self, head: &Parts) -> Option<&String> {
        let Only::One(host) = only(&head.headers, &HOST) else { return None };
        // A whole address as the path is for proxies.
        if head.uri.authority().is_some() {
            return None;
        }
        self.hosts.iter().find(|name| name.as_bytes() == host)
    }

    fn shows_token(&self, headers: &HeaderMap) -> bool {
        let Only::One(shown) = only(headers, &AUTHORIZATION) else { return false };
        let Some((scheme, token)) = shown.split_at_checked(BEARER.len()) else { return false };
        scheme.eq_ignore_ascii_case(BEARER) && self.token.is(token)
    }
}

const BEARER: &[u8] = b"Bearer ";

enum Only<'a> {
    None,
    One(&'a [u8]),
    /// Who says two things may mean either.
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

impl IntoResponse for Denied {
    /// Who was denied has to come again: what it sent along is not looked at.
    fn into_response(self) -> Response {
        let mut response = match self {
            Denied::Host => (StatusCode::FORBIDDEN, "not a name of this server\n").into_response(),
            Denied::Origin => (StatusCode::FORBIDDEN, "not for pages of others\n").into_response(),
            Denied::Token => {
                let how = [(WWW_AUTHENTICATE, "Bearer realm=\"hookloop\"")];
                (StatusCode::UNAUTHORIZED, how, "the token is missing or wrong\n").into_response()
            }
            Denied::ContentType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json\n").into_response()
            }
            Denied::TooLarge => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        };
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Around every route, and around what is none.
pub(super) async fn guard(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    if let Err(denied) = guard.judge(&head) {
        return denied.into_response();
    }
    let body = match timeout(BODY_TIME_MAX, axum::body::to_bytes(body, BODY_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Denied::TooLarge.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let answer = next.run(Request::from_parts(head, Body::from(body)));
    timeout(ANSWER_TIME_MAX, answer)
        .await
        .unwrap_or_else(|_| StatusCode::GATEWAY_TIMEOUT.into_response())
}
