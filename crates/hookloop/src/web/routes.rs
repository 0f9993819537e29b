//! Every path that is served. The router is built from this table, and the tests check each entry.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, any_service, get, post};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::dashboard::Dashboard;
use super::guard::{BODY_MAX, LOGIN, RequestGuard, RouteAccess, guard};
use super::pages::{self, Make};
use super::{headers, metrics_endpoint};
use crate::mcp::{McpHandler, ToolService, refuse};
use crate::metrics;

pub(crate) const MCP: &str = "/mcp";

/// The state that routes answer from.
#[derive(Debug)]
pub(super) struct ServerParts {
    pub(super) service: Arc<ToolService>,
    pub(super) dashboard: Arc<Dashboard>,
    pub(super) guard: Arc<RequestGuard>,
}

pub(super) struct WebRoute {
    pub(super) path: &'static str,
    pub(super) access: RouteAccess,
    make: fn(&ServerParts) -> MethodRouter,
}

impl WebRoute {
    const fn people(path: &'static str, make: fn(&ServerParts) -> MethodRouter) -> WebRoute {
        WebRoute { path, access: RouteAccess::People, make }
    }

    const fn anyone(path: &'static str, make: fn(&ServerParts) -> MethodRouter) -> WebRoute {
        WebRoute { path, access: RouteAccess::Anyone, make }
    }
}

pub(super) const ROUTES: &[WebRoute] = &[
    WebRoute { path: MCP, access: RouteAccess::Agents, make: mcp },
    WebRoute {
        path: metrics::PATH,
        access: RouteAccess::Agents,
        make: |parts| metrics_endpoint::route(&parts.service),
    },
    WebRoute::anyone(LOGIN, login),
    WebRoute::anyone("/assets/{name}", |parts| {
        let dashboard = Arc::clone(&parts.dashboard);
        get(move |names: RouteNames| Arc::clone(&dashboard).asset(names))
    }),
    WebRoute::people("/logout", logout),
    WebRoute::people("/", |parts| {
        let dashboard = Arc::clone(&parts.dashboard);
        get(move |request| Arc::clone(&dashboard).projects(request))
    }),
    WebRoute::people("/p/{project}/", |parts| page(parts, pages::overview)),
    WebRoute::people("/p/{project}/sessions", |parts| page(parts, pages::sessions)),
    WebRoute::people("/p/{project}/sessions/{id}", |parts| page(parts, pages::session)),
    WebRoute::people("/p/{project}/sessions/{id}/undo", |parts| page(parts, pages::undo)),
    WebRoute::people("/p/{project}/tasks", |parts| page(parts, pages::tasks)),
    WebRoute::people("/p/{project}/tasks/{id}", |parts| page(parts, pages::task)),
    WebRoute::people("/p/{project}/graph", |parts| page(parts, pages::graph)),
    WebRoute::people("/p/{project}/usage", |parts| page(parts, pages::usage)),
    WebRoute::people("/p/{project}/hooks", |parts| page(parts, pages::hooks)),
    WebRoute::people("/p/{project}/fleet", |parts| page(parts, pages::fleet)),
    WebRoute::people("/p/{project}/log", |parts| page(parts, pages::log)),
    WebRoute::people("/p/{project}/output/{run}/{stream}", |parts| {
        let dashboard = Arc::clone(&parts.dashboard);
        get(move |names: RouteNames| Arc::clone(&dashboard).output(names))
    }),
    WebRoute::people("/p/{project}/live", |parts| {
        let dashboard = Arc::clone(&parts.dashboard);
        get(move |names: RouteNames, request: Request| Arc::clone(&dashboard).live(names, request))
    }),
    WebRoute::people("/p/{project}/do", |parts| {
        let dashboard = Arc::clone(&parts.dashboard);
        post(move |names: RouteNames, request: Request| Arc::clone(&dashboard).act(names, request))
    }),
];

type RouteNames = Path<HashMap<String, String>>;

pub(super) fn router(parts: &ServerParts) -> Router {
    let guarded = |routes: MethodRouter, access: RouteAccess| {
        let state = (Arc::clone(&parts.guard), access);
        let routes = routes.layer(from_fn_with_state(state, guard));
        match access {
            RouteAccess::Agents => routes,
            RouteAccess::People | RouteAccess::Either | RouteAccess::Anyone => {
                routes.layer(from_fn(headers::add))
            }
        }
    };
    let add = |router: Router, route: &WebRoute| {
        router.route(route.path, guarded((route.make)(parts), route.access))
    };
    let dashboard = Arc::clone(&parts.dashboard);
    let nothing = any(move || Arc::clone(&dashboard).nothing());
    ROUTES.iter().fold(Router::new(), add).fallback_service(guarded(nothing, RouteAccess::Either))
}

fn page(parts: &ServerParts, make: Make) -> MethodRouter {
    let dashboard = Arc::clone(&parts.dashboard);
    get(move |names: RouteNames, request: Request| {
        Arc::clone(&dashboard).page(make, names, request)
    })
}

fn login(parts: &ServerParts) -> MethodRouter {
    let [one, other] = [(); 2].map(|()| (Arc::clone(&parts.dashboard), Arc::clone(&parts.guard)));
    get(move |request: Request| Arc::clone(&one.0).login(Arc::clone(&one.1), request))
        .post(move |request: Request| Arc::clone(&other.0).log_in(Arc::clone(&other.1), request))
}

fn logout(parts: &ServerParts) -> MethodRouter {
    let dashboard = Arc::clone(&parts.dashboard);
    let guard = Arc::clone(&parts.guard);
    post(move |headers: HeaderMap| Arc::clone(&dashboard).log_out(Arc::clone(&guard), headers))
}

/// Requests are independent: all state is in the project, so no MCP session can be lost, expire or be stolen.
fn mcp(parts: &ServerParts) -> MethodRouter {
    let handler = McpHandler::new(Arc::clone(&parts.service));
    let hosts = parts.guard.hosts();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(hosts.iter().cloned())
        .with_allowed_origins(hosts.iter().map(|host| format!("http://{host}")))
        .enforce_origin_validation();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    any_service(service).layer(from_fn(messages))
}

/// Answers bodies that are no messages, as over stdio.
async fn messages(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    // The guard has read the body into memory.
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
