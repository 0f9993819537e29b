//! The pages as they are served: found, made on a thread that may block, and answered.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Path, Request};
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use hookloop_hooks::artifacts;
use hookloop_hooks::artifacts::ArtifactStream;
use minijinja::context;
use serde::Deserialize;

use super::actions::act;
use super::assets::Assets;
use super::guard::{BODY_MAX, LOGIN, RequestGuard};
use super::live::FollowerPlaces;
use super::login::NotLoggedIn;
use super::page::Templates;
use super::pages::{self, Make, PageVisit};
use super::query::PageQuery;
use super::sites::{ProjectSite, ProjectSites};
use crate::error::{CliError, CliResult, FailureKind};
use crate::mcp::{BlockingPool, Unanswered, WorkReply};

type Names = Path<HashMap<String, String>>;

/// The state that pages are made from.
pub(super) struct Dashboard {
    templates: Templates,
    assets: Assets,
    sites: ProjectSites,
    pub(super) places: FollowerPlaces,
    pool: BlockingPool,
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dashboard")
    }
}

impl Dashboard {
    pub(super) fn new(sites: ProjectSites) -> CliResult<Dashboard> {
        let assets = Assets::new();
        let templates = Templates::new(assets.clone())?;
        Ok(Dashboard {
            templates,
            assets,
            sites,
            places: FollowerPlaces::new(),
            pool: BlockingPool::new(),
        })
    }

    /// Runs blocking work on its own threads.
    async fn ask<T: Send + 'static>(
        self: &Arc<Dashboard>,
        work: impl FnOnce(&Dashboard) -> CliResult<T> + Send + 'static,
    ) -> std::result::Result<T, Response> {
        let dashboard = Arc::clone(self);
        let work = move |reply: WorkReply<CliResult<T>>| {
            let answer = work(&dashboard);
            reply.send(answer);
        };
        match self.pool.run(pending(), work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.trouble(&error)),
            Err(Unanswered::Busy) => {
                Err(self.trouble(&CliError::system("too many requests at once")))
            }
            Err(_) => Err(self.trouble(&CliError::system("the page could not be rendered"))),
        }
    }

    pub(super) async fn asset(self: Arc<Dashboard>, Path(names): Names) -> Response {
        self.assets.answer(name(&names, "name"))
    }

    pub(super) async fn projects(self: Arc<Dashboard>, request: Request) -> Response {
        let query = PageQuery::parse(request.uri().query().unwrap_or_default());
        let made = move |dashboard: &Dashboard| {
            pages::projects(&dashboard.templates, &dashboard.sites, &query)
        };
        self.ask(made).await.map_or_else(|response| response, |html| Html(html).into_response())
    }

    pub(super) async fn page(
        self: Arc<Dashboard>,
        make: Make,
        Path(names): Names,
        request: Request,
    ) -> Response {
        let query = PageQuery::parse(request.uri().query().unwrap_or_default());
        let made = move |dashboard: &Dashboard| {
            let site = dashboard.site(&names)?;
            let Dashboard { templates, sites, .. } = dashboard;
            let id = name(&names, "id");
            let now = site.project.now();
            make(&PageVisit { templates, sites, site: &site, id, query: &query, now })
        };
        self.ask(made).await.map_or_else(|response| response, |html| Html(html).into_response())
    }

    /// Returns the output of a run.
    pub(super) async fn output(self: Arc<Dashboard>, Path(names): Names) -> Response {
        let made = move |dashboard: &Dashboard| {
            let site = dashboard.site(&names)?;
            let gone = || CliError::refused("this machine does not have that output");
            let run = name(&names, "run").parse().map_err(|_| gone())?;
            let wanted = |stream: &ArtifactStream| stream.name() == name(&names, "stream");
            let stream = ArtifactStream::ALL.into_iter().find(wanted).ok_or_else(gone)?;
            artifacts::read(&site.place.state, run, stream).map_err(|_| gone())
        };
        let plain = |text| ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
        self.ask(made).await.map_or_else(|response| response, plain)
    }

    /// Streams the changes of a project to a page.
    pub(super) async fn live(
        self: Arc<Dashboard>,
        Path(names): Names,
        request: Request,
    ) -> Response {
        let Some(place) = self.places.take() else { return FollowerPlaces::refusal() };
        let query = PageQuery::parse(request.uri().query().unwrap_or_default());
        // A browser that reconnects names the last event that it has received.
        let heard =
            request.headers().get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
        let known = heard.or_else(|| query.number("since")).unwrap_or(0);
        let followed = self.ask(move |dashboard| {
            let site = dashboard.site(&names)?;
            Ok(site.live.follow(&site.project)?)
        });
        match followed.await {
            Ok(told) => self.places.tell(place, told, known, query.subject()),
            Err(response) => response,
        }
    }

    pub(super) async fn act(
        self: Arc<Dashboard>,
        Path(names): Names,
        request: Request,
    ) -> Response {
        // The guard has read it; it is in memory.
        let Ok(body) = to_bytes(request.into_body(), BODY_MAX).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let done = move |dashboard: &Dashboard| Ok(act(&*dashboard.site(&names)?, &body));
        match self.ask(done).await {
            Ok((status, answer)) => (status, [JSON], answer.to_string()).into_response(),
            Err(response) => response,
        }
    }

    fn site(&self, names: &HashMap<String, String>) -> CliResult<Arc<ProjectSite>> {
        let wanted = name(names, "project");
        let none = || CliError::refused(format!("there is no project `{wanted}`"));
        self.sites.get(wanted)?.ok_or_else(none)
    }

    /// Returns a page with the error.
    fn trouble(&self, error: &CliError) -> Response {
        let (status, title) = match error.kind() {
            FailureKind::System => (StatusCode::INTERNAL_SERVER_ERROR, "Error"),
            _ => (StatusCode::NOT_FOUND, "Not found"),
        };
        self.message(status, title, error.message(), error.tip().unwrap_or_default())
    }

    fn message(&self, status: StatusCode, title: &str, text: &str, next: &str) -> Response {
        let values = context! { title, text, next };
        match self.templates.plain("message.html", title, values) {
            Ok(html) => (status, Html(html)).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }

    pub(super) async fn nothing(self: Arc<Dashboard>) -> Response {
        self.message(StatusCode::NOT_FOUND, "Not found", "No page has this address.", "")
    }
}

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");

/// A part of an address; nothing if the route has none of that name.
fn name<'n>(names: &'n HashMap<String, String>, name: &str) -> &'n str {
    names.get(name).map_or("", String::as_str)
}

/// Handles the form of the login page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownPage {
    token: String,
}

impl Dashboard {
    /// The page to log in on, or the login by the link that was printed.
    pub(super) async fn login(
        self: Arc<Dashboard>,
        guard: Arc<RequestGuard>,
        request: Request,
    ) -> Response {
        let query = PageQuery::parse(request.uri().query().unwrap_or_default());
        // A HEAD request does not use up the link.
        let code = query.get("code").filter(|_| request.method() == Method::GET);
        let Some(code) = code else { return self.login_page(StatusCode::OK, "") };
        match guard.logins.by_code(code).await {
            // No redirect: for a browser that follows a link from another site, it would be part of a cross-site
            // request, without the cookie.
            Ok(cookie) => {
                let values = context! { is_in => true, said => "" };
                let html = self.templates.passing("login.html", "Logged in", values);
                match html {
                    Ok(html) => ([(SET_COOKIE, guard.set_cookie(Some(&cookie)))], Html(html))
                        .into_response(),
                    Err(error) => self.trouble(&error.into()),
                }
            }
            Err(why) => {
                let (status, said) =
                    refusal(why, "This link was used, or is older than ten minutes.");
                self.login_page(status, said)
            }
        }
    }

    fn login_page(&self, status: StatusCode, said: &str) -> Response {
        match self.templates.outside("login.html", "Log in", context! { is_in => false, said }) {
            Ok(html) => (status, Html(html)).into_response(),
            Err(error) => self.trouble(&error.into()),
        }
    }

    /// Logs in with a pasted token.
    pub(super) async fn log_in(
        self: Arc<Dashboard>,
        guard: Arc<RequestGuard>,
        request: Request,
    ) -> Response {
        let Ok(body) = to_bytes(request.into_body(), BODY_MAX).await else {
            return StatusCode::PAYLOAD_TOO_LARGE.into_response();
        };
        let Ok(ShownPage { token }) = serde_json::from_slice(&body) else {
            return (StatusCode::BAD_REQUEST, [JSON], r#"{"error":"send {\"token\": …}"}"#)
                .into_response();
        };
        match guard.logins.by_token(&token).await {
            Ok(cookie) => {
                let headers = [
                    (SET_COOKIE, guard.set_cookie(Some(&cookie))),
                    (CONTENT_TYPE, JSON.1.to_owned()),
                ];
                (headers, r#"{"message":"Logged in"}"#).into_response()
            }
            Err(why) => {
                let (status, said) = refusal(why, "This is not the token.");
                (status, [JSON], serde_json::json!({ "error": said }).to_string()).into_response()
            }
        }
    }

    pub(super) async fn log_out(
        self: Arc<Dashboard>,
        guard: Arc<RequestGuard>,
        headers: HeaderMap,
    ) -> Response {
        if let Some(cookie) = guard.cookie(&headers) {
            guard.logins.log_out(cookie);
        }
        let headers = [(SET_COOKIE, guard.set_cookie(None)), (LOCATION, LOGIN.to_owned())];
        (headers, [JSON], r#"{"message":"Logged out"}"#).into_response()
    }
}

fn refusal(why: NotLoggedIn, wrong: &str) -> (StatusCode, &str) {
    match why {
        NotLoggedIn::Wrong => (StatusCode::FORBIDDEN, wrong),
        NotLoggedIn::Busy => {
            (StatusCode::TOO_MANY_REQUESTS, "Too many failed logins at once. Try again.")
        }
        NotLoggedIn::NoRandomness => {
            (StatusCode::INTERNAL_SERVER_ERROR, "The system has no random numbers.")
        }
    }
}
