//! Every path that is served. A router is made of this table alone, and the tests go over it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any_service};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::guard::{BODY_MAX, Guard, guard};
use crate::mcp::{Counter, Handler, refuse};
use crate::metrics;

pub(crate) const MCP: &str = "/mcp";

/// What routes answer from.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) counter: Arc<Counter>,
}

pub(super) struct Route {
    pub(super) path: &'static str,
    make: fn(&Parts, &Guard) -> MethodRouter,
}

pub(super) const ROUTES: &[Route] = &[
    Route { path: MCP, make: mcp },
    Route { path: metrics::PATH, make: |parts, _| metrics::route(&parts.counter) },
];

pub(super) fn router(parts: &Parts, watch: &Arc<Guard>) -> Router {
    let add = |router: Router, route: &Route| router.route(route.path, (route.make)(parts, watch));
    let router = ROUTES.iter().fold(Router::new(), add);
    // Last, so that it is around all of them and what is none of them.
    router.layer(from_fn_with_state(Arc::clone(watch), guard))
}

/// Each request stands for itself: all state is the project's, so there is no session to lose when the
/// server is started again, to expire, or to steal.
fn mcp(parts: &Parts, guard: &Guard) -> MethodRouter {
    let handler = Handler::new(Arc::clone(&parts.counter));
    let origins = guard.hosts().iter().map(|host| format!("http://{host}"));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(guard.hosts().iter().cloned())
        .with_allowed_origins(origins)
        .enforce_origin_validation();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    any_service(service).layer(from_fn(messages))
}

/// Answers what is no message, as over stdio.
async fn messages(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    // The guard has read it; it is in memory.
    let Ok(body) = to_bytes(body, BODY_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    match refuse(&body).filter(|_| head.method == Method::POST) {
        Some(answer) => {
            let is_a_call = !answer["id"].is_null();
            let status = if is_a_call { StatusCode::OK } else { StatusCode::BAD_REQUEST };
            (status, [(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
        }
        None => next.run(Request::from_parts(head, Body::from(body))).await,
    }
}
