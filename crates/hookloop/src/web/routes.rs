//! Every path that is served. A router is made of this table alone, and the tests go over it.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, any_service};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::guard::{Guard, guard};
use crate::mcp::{Counter, Handler};

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

pub(super) const ROUTES: &[Route] = &[Route { path: MCP, make: mcp }];

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
    any_service(StreamableHttpService::new(move || Ok(handler.clone()), sessions, config))
}
