//! Where a worker is asked for its figures: one path, with a token, on a thread of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::{PATH, Tally, answer};
use crate::error::CliError;
use crate::output::Result;
use crate::web::{AGENTS, Token, serve};

const BEARER: &str = "Bearer ";

/// An endpoint that has its port.
pub(crate) struct Endpoint {
    listener: std::net::TcpListener,
    token: Token,
    /// Where that is to be found.
    pub(crate) token_file: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Endpoint {
    /// Has the port; the token is in `state`, and made there the first time.
    pub(crate) fn bind(address: SocketAddr, state: &std::path::Path) -> Result<Endpoint> {
        let failed = |error: std::io::Error| {
            let hint = format!("hookloop worker … --metrics {}:0", address.ip());
            CliError::system(format!("{address}: {error}")).hint(hint)
        };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (token, token_file) = Token::of(state, AGENTS)?;
        Ok(Endpoint { listener, token, token_file, address })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Answers until the program ends.
    pub(crate) fn serve(self, tally: Arc<Tally>) -> Result {
        let token = Arc::new(self.token);
        let ask = move |headers: HeaderMap| {
            let (token, tally) = (Arc::clone(&token), Arc::clone(&tally));
            async move { figures(&headers, &token, tally).await }
        };
        let router = Router::new().route(PATH, get(ask));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = self.listener;
        std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            runtime.block_on(async {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    serve(listener, router, std::future::pending()).await;
                }
            });
        })?;
        Ok(())
    }
}

async fn figures(headers: &HeaderMap, token: &Token, tally: Arc<Tally>) -> Response {
    let shown = headers.get(AUTHORIZATION).and_then(|shown| shown.to_str().ok());
    let is_let_in = shown.and_then(|shown| shown.split_at_checked(BEARER.len())).is_some_and(
        |(scheme, shown)| scheme.eq_ignore_ascii_case(BEARER) && token.is(shown.as_bytes()),
    );
    if !is_let_in {
        let how = [(WWW_AUTHENTICATE, "Bearer realm=\"hookloop\"")];
        return (StatusCode::UNAUTHORIZED, how, "the token is missing or wrong\n").into_response();
    }
    // The store blocks.
    match tokio::task::spawn_blocking(move || tally.page()).await {
        Ok(text) => answer(text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
