//! Serves the metrics of a worker with a token, and those of a project for `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use tokio::net::TcpListener;

use super::listen::serve;
use super::token::{AGENTS, AccessToken};
use crate::error::{CliError, CliResult};
use crate::mcp::ToolService;
use crate::metrics::{PATH, TEXT, WorkerTally, project_page};

const BEARER: &str = "Bearer ";

/// An endpoint that is bound to its port.
pub(crate) struct MetricsEndpoint {
    listener: std::net::TcpListener,
    token: AccessToken,
    /// The file of the token.
    pub(crate) token_file: PathBuf,
    pub(crate) address: SocketAddr,
}

impl MetricsEndpoint {
    /// Binds the port; the token is in `state`, and is created there the first time.
    pub(crate) fn bind(address: SocketAddr, state: &std::path::Path) -> CliResult<MetricsEndpoint> {
        let failed = |error: std::io::Error| {
            let hint = format!("hookloop worker … --metrics {}:0", address.ip());
            CliError::system(format!("{address}: {error}")).hint(hint)
        };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (token, token_file) = AccessToken::of(state, AGENTS)?;
        Ok(MetricsEndpoint { listener, token, token_file, address })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until the program ends.
    pub(crate) fn serve(self, tally: Arc<WorkerTally>) -> CliResult {
        let token = Arc::new(self.token);
        let ask = move |headers: HeaderMap| {
            let token = Arc::clone(&token);
            let tally = Arc::clone(&tally);
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

async fn figures(headers: &HeaderMap, token: &AccessToken, tally: Arc<WorkerTally>) -> Response {
    let shown = headers.get(AUTHORIZATION).and_then(|shown| shown.to_str().ok());
    let is_let_in = shown.and_then(|shown| shown.split_at_checked(BEARER.len())).is_some_and(
        |(scheme, shown)| scheme.eq_ignore_ascii_case(BEARER) && token.is(shown.as_bytes()),
    );
    if !is_let_in {
        let how = [(WWW_AUTHENTICATE, "Bearer realm=\"hookloop\"")];
        return (StatusCode::UNAUTHORIZED, how, "the token is missing or wrong\n").into_response();
    }
    // Reading the store blocks.
    match tokio::task::spawn_blocking(move || tally.page()).await {
        Ok(text) => answer(text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Answers with the metrics of the project that `serve` serves.
pub(super) fn route(service: &Arc<ToolService>) -> MethodRouter {
    let service = Arc::clone(service);
    get(move || async move {
        match service.look(project_page).await {
            Some(text) => answer(text),
            None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    })
}

fn answer(text: String) -> Response {
    ([(CONTENT_TYPE, TEXT)], text).into_response()
}
