//! One request to GitHub and its answer. Without a valid answer, the error names the next action.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use hookloop_config::known_secrets;
use hookloop_core::redact::Redactor;
use hookloop_http::failure::FailureCause;
use hookloop_http::{HttpClient, NetworkError, RequestLimits};
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{HeaderMap, HeaderValue, Method, Request, header};

use super::super::ForgeError;
use super::address::{ApiAddress, ApiRoute};
use super::refusal::GithubRefusal;
use super::token::ForgeToken;

/// The longest answer that is read: a page of requests, each with a text of up to 256 KiB.
const ANSWER_MAX: u64 = 16 * 1024 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The items on a page, and the most pages that are read.
const PAGE: usize = 50;
const PAGES_MAX: usize = 20;
/// The most of a text of the server that is passed on.
const WORDS_MAX: usize = 500;

/// A connection to GitHub.
pub(super) struct GithubClient {
    agent: ureq::Agent,
    http: HttpClient,
    api: ApiAddress,
    authorization: HeaderValue,
    redactor: Redactor,
}

impl std::fmt::Debug for GithubClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client of {}", self.api)
    }
}

/// Items of several pages.
#[derive(Debug)]
pub(super) struct PagedItems<T> {
    pub(super) things: Vec<T>,
    /// All pages were read.
    pub(super) is_whole: bool,
}

impl GithubClient {
    pub(super) fn new(
        api: ApiAddress,
        token: &ForgeToken,
        http: HttpClient,
    ) -> Result<GithubClient, ForgeError> {
        let limits = RequestLimits {
            connect: Some(CONNECT_WITHIN),
            total: Some(ANSWER_WITHIN),
            only_ca_file: None,
        };
        let unusable = |error: NetworkError| ForgeError::NeedsHuman {
            why: error.to_string(),
            hint: "run `hookloop doctor`".to_owned(),
        };
        let agent = http.agent(&api.to_string(), &limits).map_err(unusable)?;
        let bad_token = || ForgeError::NeedsHuman {
            why: "the token can't be used".to_owned(),
            hint: format!("make another for {}", api.host()),
        };
        known_secrets::remember([("token", OsStr::new(token.reveal()))]);
        let redactor = Redactor::new([("token", token.reveal())]).map_err(|_| bad_token())?;
        let authorization = format!("Bearer {}", token.reveal());
        let mut authorization = HeaderValue::from_str(&authorization).map_err(|_| bad_token())?;
        authorization.set_sensitive(true);
        Ok(GithubClient { agent, http, api, authorization, redactor })
    }

    pub(super) fn get<T: DeserializeOwned>(&self, route: &ApiRoute) -> Result<T, GithubRefusal> {
        self.ask(&Method::GET, self.api.at(route), None)
    }

    pub(super) fn post<T: DeserializeOwned>(
        &self,
        route: &ApiRoute,
        body: &Value,
    ) -> Result<T, GithubRefusal> {
        self.ask(&Method::POST, self.api.at(route), Some(body))
    }

    pub(super) fn patch<T: DeserializeOwned>(
        &self,
        route: &ApiRoute,
        body: &Value,
    ) -> Result<T, GithubRefusal> {
        self.ask(&Method::PATCH, self.api.at(route), Some(body))
    }

    pub(super) fn put<T: DeserializeOwned>(
        &self,
        route: &ApiRoute,
        body: &Value,
    ) -> Result<T, GithubRefusal> {
        self.ask(&Method::PUT, self.api.at(route), Some(body))
    }

    pub(super) fn graphql(&self, body: &Value) -> Result<Value, GithubRefusal> {
        let answer: Value = self.ask(&Method::POST, self.api.graphql(), Some(body))?;
        match answer["errors"].as_array().and_then(|errors| errors.first()) {
            Some(error) => Err(GithubRefusal::of_graphql(error, |text| self.words(text))),
            None => Ok(answer),
        }
    }

    /// Returns all items of a list, page by page. `things` extracts them from a page.
    pub(super) fn list<P: DeserializeOwned, T>(
        &self,
        route: &ApiRoute,
        things: impl Fn(P) -> Vec<T>,
    ) -> Result<PagedItems<T>, GithubRefusal> {
        let mut all = Vec::new();
        for number in 1..=PAGES_MAX {
            let place = [("per_page", PAGE.to_string()), ("page", number.to_string())];
            let place = place.each_ref().map(|(name, value)| (*name, value.as_str()));
            let page = things(self.get(&route.with(&place))?);
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(PagedItems { things: all, is_whole: true });
            }
        }
        Ok(PagedItems { things: all, is_whole: false })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &Method,
        url: String,
        body: Option<&Value>,
    ) -> Result<T, GithubRefusal> {
        let (status, headers, answer) = self.exchange(method, url, body)?;
        if !(200..300).contains(&status) {
            return Err(GithubRefusal::of_answer(status, &headers, &answer, |text| {
                self.words(text)
            }));
        }
        let unread = |_| self.lost("GitHub's answer is not what its API promises");
        serde_json::from_slice(&answer).map_err(unread)
    }

    fn exchange(
        &self,
        method: &Method,
        url: String,
        body: Option<&Value>,
    ) -> Result<(u16, HeaderMap, Vec<u8>), GithubRefusal> {
        let began = Instant::now();
        let request = Request::builder()
            .method(method)
            .uri(&url)
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::ACCEPT, "application/vnd.github+json")
            .header(header::USER_AGENT, "hookloop")
            .header("x-github-api-version", "2022-11-28");
        let answer = match body {
            None => self.agent.run(request.body(()).map_err(|error| self.unsent(&error))?),
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                let request = request.body(body.to_string());
                self.agent.run(request.map_err(|error| self.unsent(&error))?)
            }
        };
        let failed = |error: ureq::Error| self.failed(&error);
        let mut answer = answer.map_err(failed)?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let address = url.split('?').next().unwrap_or_default();
        tracing::debug!(%method, address, status, took = ?began.elapsed(), "request to the forge");
        let body = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        Ok((status, headers, body.map_err(failed)?))
    }

    fn failed(&self, error: &ureq::Error) -> GithubRefusal {
        match error {
            ureq::Error::BodyExceedsLimit(_) => {
                let why = format!("GitHub's answer is longer than {ANSWER_MAX} bytes");
                GithubRefusal::plain(ForgeError::Permanent { why })
            }
            error => {
                let failure = self.http.explain(&self.api.to_string(), error);
                let why = format!("GitHub can't be reached: {}", failure.message);
                match (failure.cause, failure.hint) {
                    (FailureCause::Certificate, Some(hint)) => {
                        let why = self.words(&why);
                        GithubRefusal::plain(ForgeError::NeedsHuman { why, hint })
                    }
                    (_, Some(hint)) => self.lost(&format!("{why}; {hint}")),
                    (_, None) => self.lost(&why),
                }
            }
        }
    }

    fn lost(&self, why: &str) -> GithubRefusal {
        GithubRefusal::plain(ForgeError::Retry { why: self.words(why), after: None })
    }

    fn unsent(&self, error: &ureq::http::Error) -> GithubRefusal {
        let why = self.words(&format!("there is no such address at {}: {error}", self.api));
        GithubRefusal::plain(ForgeError::Permanent { why })
    }

    /// Returns a text that is safe to show. The token is removed before the text is cut, because a cut could leave
    /// half of it.
    fn words(&self, text: &str) -> String {
        let text = self.redactor.text(text);
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX).collect()
    }
}
